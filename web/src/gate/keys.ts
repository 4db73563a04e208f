// A gate's keys: fresh ones, or those of an operator's key file.

import { Keys } from "fencegate-gate";
import type { Secrets } from "./flash";

const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));

/** 64 random bits, never the same twice. */
export const random64 = (): bigint => crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;

/** A new gate's. They are this browser's alone. */
export const fresh = (): Secrets => ({
  gate: random(8),
  id: 0,
  instance: random64(),
  root: random(32),
  operator: random(32),
  provisioned: false,
});

export const keysOf = ({ gate, id, instance, root, operator }: Secrets): Keys => new Keys(gate, id, instance, root, operator);

/**
 * Those of an operator's key file, as `fencegate gate … provision` writes it.
 *
 * @throws what is wrong with it, without a word of what stands there: it may be a secret.
 */
export function read(text: string): Keys {
  let file: Record<string, unknown>;
  try {
    file = JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error("that is no key file: it is no JSON");
  }
  if (file === null || typeof file !== "object" || file.fencegate_key !== 1) throw new Error("that is no key file of a gate");
  if (file.demonstration === true) throw new Error("these keys are for the image without fencing, and no gate obeys them");
  const bytes = (field: string, length: number) => {
    const hex = file[field];
    if (typeof hex !== "string" || hex.length !== 2 * length || !/^[0-9a-f]*$/i.test(hex)) {
      throw new Error(
        field === "gate" ? "the key file names no gate" : "the operator's key file is needed: this one has not all of the keys",
      );
    }
    return Uint8Array.from({ length }, (_, n) => parseInt(hex.slice(2 * n, 2 * n + 2), 16));
  };
  const id = file.key_id ?? 0;
  // An instance has 64 bits: it is read from its digits, since the number that JSON makes of it is rounded.
  const instance = BigInt(/"instance"\s*:\s*(\d{1,20})\s*[,}]/.exec(text)?.[1] ?? -1);
  if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id > 255 || instance < 0n || instance >= 1n << 64n) {
    throw new Error("the operator's key file is needed: this one has not all of the keys");
  }
  return new Keys(bytes("gate", 8), id, instance, bytes("root", 32), bytes("operator", 32));
}
