// The command that cargo built, as a shell runs it.

import { spawnSync } from "node:child_process";
import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseLossless } from "./lossless.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const program = join(target, "debug", process.platform === "win32" ? "fencegate.exe" : "fencegate");
await access(program).catch(() => {
  throw new Error("no command: run `cargo build --bin fencegate` first");
});

/** Its exit status, and its one JSON object; where the input was wrong, the field instead, and what is wrong with it. */
export function command(...words) {
  const { status, stdout, stderr, error } = spawnSync(program, [...words, "--json"], { encoding: "utf8" });
  if (error) throw error;
  if (status !== 2) return { status, answer: parseLossless(stdout) };
  const [, field, reason] = stderr.match(/^error: (\w+): `[^`]*`: (.*)$/m) ?? [];
  return { status, refused: { field, reason } };
}
