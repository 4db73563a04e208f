// A picture as a file of its own: with the colours and the font that it has on the page, since it leaves the style
// sheet behind.

const PROPERTIES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  // Words on a bar have a rim of paper, which lies below them.
  "paint-order",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "opacity",
];

/** The drawing with everything written into it. */
export function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const property of PROPERTIES) to[at]?.setAttribute(property, style.getPropertyValue(property));
    for (const attribute of ["class", "tabindex", "style"]) to[at]?.removeAttribute(attribute);
  });
  const { width, height } = svg.getBoundingClientRect();
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({
    width: "100%",
    height: "100%",
    fill: getComputedStyle(document.body).backgroundColor,
  })) {
    paper.setAttribute(name, value);
  }
  copy.prepend(paper);
  for (const [name, value] of Object.entries({
    xmlns: "http://www.w3.org/2000/svg",
    width: String(width),
    height: String(height),
  })) {
    copy.setAttribute(name, value);
  }
  copy.removeAttribute("class");
  copy.removeAttribute("style");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

export const svgFile = (svg: SVGSVGElement): Blob => new Blob([standalone(svg)], { type: "image/svg+xml" });

/** Twice as large as on the page, for screens and slides. */
export async function pngFile(svg: SVGSVGElement): Promise<Blob> {
  const { width, height } = svg.getBoundingClientRect();
  const url = URL.createObjectURL(svgFile(svg));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), {
      width: Math.round(width * 2),
      height: Math.round(height * 2),
    });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}
