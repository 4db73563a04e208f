// The examples of wasm/README.md, as they stand there.

import { readFile } from "node:fs/promises";

const text = await readFile(new URL("../../wasm/README.md", import.meta.url), "utf8");

/** The first fenced block in that language. */
export function example(language) {
  const block = text.match(new RegExp("^```" + language + "\\n(.*?)^```$", "ms"));
  if (!block) throw new Error(`wasm/README.md has no example in ${language}`);
  return block[1];
}
