// The width of an element, as it changes.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export function useWidth<E extends Element>(least: number) {
  const ref = useRef<E>(null);
  const [width, setWidth] = useState(least);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const read = () => setWidth(Math.max(Math.floor(element.getBoundingClientRect().width), least));
    const observer = new ResizeObserver(read);
    observer.observe(element);
    read();
    return () => observer.disconnect();
  }, [least]);
  return { ref, width };
}

let context: CanvasRenderingContext2D | null | undefined;
const widths = new Map<string, number>();

/** How wide words are in the picture's font. To ask for that font is to have the page laid out: so once, not each time. */
export function measure(words: string): number {
  const known = widths.get(words);
  if (known !== undefined) return known;
  if (context === undefined) {
    context = document.createElement("canvas").getContext("2d");
    if (context) context.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  }
  const width = context?.measureText(words).width ?? words.length * 7;
  if (widths.size > 2_000) widths.clear();
  widths.set(words, width);
  return width;
}
