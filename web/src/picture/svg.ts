// SVG elements with attributes and classes only: the page's policy allows no inline style.

const NAMESPACE = "http://www.w3.org/2000/svg";

export type Attributes = Record<string, string | number>;

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes,
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  made.append(...children);
  return made;
}

export const line = (cls: string, x1: number, y1: number, x2: number, y2: number) =>
  svg("line", { class: cls, x1, y1, x2, y2 });

export const text = (cls: string, x: number, y: number, words: string) => svg("text", { class: cls, x, y }, words);

/** Measures words in the font that the picture's text has. */
export function ruler(host: HTMLElement): (words: string) => number {
  const context = document.createElement("canvas").getContext("2d");
  const { fontFamily } = getComputedStyle(host);
  if (context) context.font = `13px ${fontFamily}`;
  return (words) => context?.measureText(words).width ?? words.length * 7;
}
