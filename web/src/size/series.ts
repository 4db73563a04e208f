// What the plots show. Every point is a question to the module; only pixels are fractions.

import { plan, size } from "fencegate";
import { attempt, big, Problem } from "../model/module";
import type { Answer } from "../model/question";

export interface Point {
  x: bigint;
  values: (bigint | null)[];
}

const STEPS = [1n, 2n, 5n];

/** Round values from one to the other, three a decade, with `here` among them. */
function ladder(from: bigint, to: bigint, here: bigint): bigint[] {
  const found = new Set<bigint>([here]);
  for (let ten = 1n; ten <= to; ten *= 10n) {
    for (const step of STEPS) if (step * ten >= from && step * ten <= to) found.add(step * ten);
  }
  return [...found].filter((x) => x > 0n).sort((a, b) => (a < b ? -1 : 1));
}

/** The window and what is left for work, over the drift or the round trip. */
export function windows({ planInput, drift, rtt, ttl }: Answer, over: "drift" | "rtt"): Point[] {
  const xs = over === "drift" ? ladder(1_000n, 999_999_999n, drift) : ladder(100n, ttl, rtt);
  return xs.map((x) => {
    const planned = attempt(() => plan({ ...planInput, ...(over === "drift" ? { drift_ppb: x } : { rtt_us: x }) }));
    if (planned instanceof Problem) return { x, values: [null, null, null] };
    return { x, values: [big(planned.window_us), big(planned.work_deadline_us), big(planned.stall_tolerance_us)] };
  });
}

/** The least TTL, the takeover and the renewals an hour, over the work. */
export function sizes({ sizeInput, work }: Answer): Point[] {
  const longest = work > 3_600_000_000n ? work : 3_600_000_000n;
  return ladder(1_000n, longest, work > 0n ? work : 1_000n).map((x) => {
    const sized = attempt(() => size({ ...sizeInput, work_us: x }));
    if (sized instanceof Problem || sized.ttl_us === null) return { x, values: [null, null, null] };
    return { x, values: [big(sized.ttl_us), big(sized.takeover_us), big(sized.renewals_per_hour)] };
  });
}
