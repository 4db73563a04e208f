// The module, as the page uses it: its wrong inputs as sentences, and what never changes asked for once.

import * as fencegate from "fencegate";
import type { InputError, Presets, Whole } from "fencegate";

let known: Presets | undefined;

export function presets(): Presets {
  known ??= fencegate.presets();
  return known;
}

/** A wrong input: which field is to blame, and what is wrong with it. */
export class Problem {
  constructor(
    readonly field: string,
    readonly words: string,
  ) {}
}

/** What the module answers, or why it does not. */
export function attempt<T>(ask: () => T): T | Problem {
  try {
    return ask();
  } catch (error) {
    if (!isInputError(error)) throw error;
    const { message, field } = error;
    const words = message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
    return new Problem(field, `${words.charAt(0).toUpperCase()}${words.slice(1)}.`);
  }
}

function isInputError(error: unknown): error is InputError {
  return error instanceof Error && "code" in error && "field" in error;
}

/** What was typed without what does not count: spaces, and the two letters that look like µ. */
export const compact = (typed: string): string => typed.replace(/\s+/g, "").replace(/[µμ]/g, "u");

/** A duration as it was typed, by the core's own parser. A bare zero needs no unit. */
export function readDuration(typed: string, round: "down" | "up", field: string): bigint | Problem {
  const text = compact(typed);
  if (!text) return new Problem(field, "Nothing is written there: a duration such as 10s, 250ms or 1m30s is needed.");
  const read = attempt(() => fencegate.parseDuration(/^0+$/.test(text) ? "0s" : text, round, field));
  return read instanceof Problem ? read : BigInt(read);
}

/** A drift as it was typed, or what those of several clocks add up to. */
export function readDrift(typed: string | string[], field: string): bigint | Problem {
  const texts = [typed].flat().map((one) => compact(one).replace(/^0+$/, "0ppm"));
  if (texts.includes("")) return new Problem(field, "Nothing is written there: a drift such as 500ppm, 20ppb or 0.05% is needed.");
  const read = attempt(() => fencegate.parseDrift(texts, field));
  return read instanceof Problem ? read : BigInt(read);
}

export function readCount(typed: string, field: string): bigint | Problem {
  const text = compact(typed);
  return /^\d{1,20}$/.test(text) ? BigInt(text) : new Problem(field, "A whole number such as 3 is needed.");
}

export const big = (whole: Whole): bigint => BigInt(whole);
