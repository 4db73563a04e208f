// The examples of wasm/README.md, as they stand there.

import { readFile } from "node:fs/promises";

const text = await readFile(new URL("../../wasm/README.md", import.meta.url), "utf8");

/** Every fenced block in that language. */
export function examples(language) {
  const blocks = [...text.matchAll(new RegExp("^```" + language + "\\n(.*?)^```$", "gms"))];
  if (!blocks.length) throw new Error(`wasm/README.md has no example in ${language}`);
  return blocks.map(([, block]) => block);
}

/** The first of them. */
export const example = (language) => examples(language)[0];
