// Microseconds to pixels, and round numbers along an axis. The only place where a time becomes a fraction.

export interface Scale {
  from: bigint;
  to: bigint;
  x: (us: bigint) => number;
}

export function scale(from: bigint, to: bigint, left: number, right: number): Scale {
  const span = Number(to - from) || 1;
  return { from, to, x: (us) => left + (Number(us - from) / span) * (right - left) };
}

const SECOND = 1_000_000n;
const ROUND_TIMES = [
  ...[1n, 10n, 100n, 1_000n, 10_000n, 100_000n, SECOND].flatMap((ten) => [ten, 2n * ten, 5n * ten]),
  ...[10n, 20n, 30n, 60n, 120n, 300n, 600n, 1_200n, 1_800n, 3_600n, 7_200n, 10_800n, 21_600n, 43_200n].map((s) => s * SECOND),
];
const DAY = 86_400n * SECOND;

/** The finest round steps along the scale whose labels still have room beside one another. */
export function ticks({ from, to, x }: Scale, width: (us: bigint) => number): bigint[] {
  const fits = (step: bigint): boolean => {
    const room = x(from + step) - x(from);
    return room > 24 && multiples(from, to, step, 40).every((us) => width(us) + 20 < room);
  };
  let step = ROUND_TIMES.find(fits);
  for (let days = 1n; !step; days *= 10n) step = [days, 2n * days, 5n * days].map((n) => n * DAY).find(fits);
  return multiples(from, to, step, 40);
}

function multiples(from: bigint, to: bigint, step: bigint, most: number): bigint[] {
  const first = ((from + step - 1n) / step) * step;
  const found: bigint[] = [];
  for (let us = first; us <= to && found.length < most; us += step) found.push(us);
  return found;
}
