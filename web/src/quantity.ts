// Text to whole microseconds and parts per billion: exact, rounded to the side that the caller says is safe.

/** What was typed, as a number; or a sentence that says why it is none. */
export type Reading = { value: bigint } | { problem: string };

/** To which side what lies between two whole units goes. */
export type Rounding = "down" | "up";

/** Thousandths of a microsecond in each unit. */
const NANOSECONDS: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // micro sign
  μs: 1_000n, // Greek mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
};

const PPB: Record<string, bigint> = { ppb: 1n, ppm: 1_000n, "%": 10_000_000n };

/** More than any 64-bit answer has, and short enough to be computed while somebody types. */
const LONGEST = 60;

/** `10s`, `1m30s`, `1.5s`, `0`; spaces do not count. */
export function readDuration(text: string, rounding: Rounding): Reading {
  const compact = text.replace(/\s+/g, "");
  if (/^0+$/.test(compact)) return { value: 0n };
  if (/^\d+(\.\d+)?$/.test(compact)) return { problem: `A unit is missing: ${compact}s, ${compact}ms?` };
  const parts = [...compact.matchAll(/(\d+)(?:\.(\d+))?(ns|us|µs|μs|ms|s|m|h|d)/gy)];
  if (compact.length > LONGEST || parts.map(([part]) => part).join("") !== compact || !parts.length) {
    return { problem: "This is no duration: write it as 10s, 250ms or 1m30s." };
  }
  return { value: add(parts, NANOSECONDS, 1_000n, rounding) };
}

/** `500ppm`, `0.05%`, `20 ppb`, or a bare number of ppm. A bound rounds up. */
export function readDrift(text: string): Reading {
  const compact = text.replace(/\s+/g, "");
  const part = /^(\d+)(?:\.(\d+))?(ppb|ppm|%)?$/.exec(compact);
  if (!part || compact.length > LONGEST) return { problem: "This is no drift: write it as 500ppm, 20ppb or 0.05%." };
  return { value: add([part], PPB, 1n, "up") };
}

/** Σ whole.fraction · unit, divided by `per` and rounded; a power of ten keeps the fractions whole until then. */
function add(parts: RegExpExecArray[], units: Record<string, bigint>, per: bigint, rounding: Rounding): bigint {
  const digits = Math.max(...parts.map(([, , fraction = ""]) => fraction.length));
  const sum = parts.reduce((sum, [, whole = "", fraction = "", unit = "ppm"]) => {
    return sum + BigInt(whole + fraction.padEnd(digits, "0")) * (units[unit] ?? 0n);
  }, 0n);
  const divisor = per * 10n ** BigInt(digits);
  return rounding === "down" ? sum / divisor : (sum + divisor - 1n) / divisor;
}
