// Whole microseconds as people read them: exact, in the largest units that fit.

const UNITS: [name: string, us: bigint][] = [
  ["d", 86_400_000_000n],
  ["h", 3_600_000_000n],
  ["min", 60_000_000n],
];

const NARROW = "\u202f"; // narrow no-break space: thousands
const FIXED = "\u00a0"; // no-break space: between a number and its unit

/** 9990000 → "9.99 s"; 90000000 → "1 min 30 s". Nothing is rounded. */
export function duration(us: bigint): string {
  const parts: string[] = [];
  for (const [name, unit] of UNITS) {
    if (us >= unit) parts.push(`${grouped(us / unit)}${FIXED}${name}`);
    us %= unit;
  }
  if (us > 0n || !parts.length) parts.push(seconds(us, parts.length > 0));
  return parts.join(" ");
}

/** 9990000 → "9 990 000 µs". */
export function exactly(us: bigint): string {
  return `${grouped(us)}${FIXED}µs`;
}

export function grouped(whole: bigint): string {
  return whole.toString().replace(/\B(?=(\d{3})+$)/g, NARROW);
}

function seconds(us: bigint, afterLarger: boolean): string {
  if (us >= 1_000_000n || afterLarger) return `${decimal(us, 6)}${FIXED}s`;
  if (us >= 1_000n) return `${decimal(us, 3)}${FIXED}ms`;
  return us === 0n ? `0${FIXED}s` : `${us}${FIXED}µs`;
}

function decimal(us: bigint, places: number): string {
  const digits = us.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  return digits.slice(0, -places) + (fraction && `.${fraction}`);
}

/** 500000 → "500 ppm"; 1500 → "1.5 ppm"; 20 → "20 ppb". */
export function drift(ppb: bigint): string {
  if (ppb >= 10_000_000n) return `${decimal(ppb, 7)}${FIXED}%`;
  return ppb >= 1_000n ? `${decimal(ppb, 3)}${FIXED}ppm` : `${ppb}${FIXED}ppb`;
}

/** As the core's parser takes it. */
export function typedDrift(ppb: bigint): string {
  return drift(ppb).replace(FIXED, "");
}

/** 1500000 µm → "1.5 m". */
export function length(um: bigint): string {
  if (um >= 1_000_000n) return `${decimal(um, 6)}${FIXED}m`;
  return um >= 1_000n ? `${decimal(um, 3)}${FIXED}mm` : `${um}${FIXED}µm`;
}

/** As the core's parser takes it: "9.99s", "90s". */
export function typedDuration(us: bigint): string {
  if (us >= 1_000_000n) return `${decimal(us, 6)}s`;
  return us >= 1_000n ? `${decimal(us, 3)}ms` : us === 0n ? "0s" : `${us}us`;
}

/** 10000000 ppb → "0.01". */
export const inOnes = (ppb: bigint): string => decimal(ppb, 9);

export const [MILLISECOND, SECOND] = [1_000n, 1_000_000n];

/** In whole units, for what shows or takes no parts of one: down, or up for a setting. */
export const whole = (us: bigint, unit: bigint): bigint => us - (us % unit);
export const upTo = (us: bigint, unit: bigint): bigint => whole(us + unit - 1n, unit);

/** 123 → "12.3". */
export const tenths = (n: bigint): string => decimal(n, 1);

/** 1500000 → "1.5". */
export const inSeconds = (us: bigint): string => decimal(us, 6);
