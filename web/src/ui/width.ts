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

/** How wide words are in the picture's font. */
export function measure(words: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return words.length * 7;
  context.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  return context.measureText(words).width;
}
