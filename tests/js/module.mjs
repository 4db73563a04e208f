// The built package, initialised from its bytes as under Node one does.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export const PACKAGE = new URL("../../wasm/pkg/", import.meta.url);
export const packageFolder = fileURLToPath(PACKAGE);

const built = await import(new URL("fencegate.js", PACKAGE)).catch((cause) => {
  throw new Error("no module in wasm/pkg: run `cargo xtask wasm` first", { cause });
});
await built.default({ module_or_path: await readFile(new URL("fencegate_bg.wasm", PACKAGE)) });

export const { window: leaseWindow, plan, size, redlock, quorum, presets, check, chain, parseDuration, parseDrift, Story } = built;
/** The ready-made stories that the package carries. */
export const scenarios = JSON.parse(await readFile(new URL("scenarios.json", PACKAGE), "utf8"));

export const exported = Object.keys(built);
