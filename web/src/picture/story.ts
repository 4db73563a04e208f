// What the picture shows, in microseconds since the request was sent: the module's lengths laid end to end.

import { duration } from "../format";
import type { Asked } from "../question";

export interface Mark {
  at: bigint;
  words: string;
  cls: string;
}

export interface Story {
  ttl: bigint;
  takeover: bigint;
  /** Start of the holder's timer, end of new work, end of the window. */
  start: bigint;
  workEnd: bigint;
  windowEnd: bigint;
  /** From the first answer to cancellation, if no renewal is answered. */
  answered: bigint;
  cancelled: bigint;
  heartbeat: bigint;
  renewals: bigint;
  coordinator: Mark[];
  holder: Mark[];
}

export function tell({ plan, input }: Asked): Story {
  const { ttl_us: ttl, rtt_us: rtt } = input;
  const window = BigInt(plan.window_us);
  const [deadline, cancel, heartbeat] = [BigInt(plan.work_deadline_us), BigInt(plan.cancel_after_us), BigInt(plan.heartbeat_us)];
  const takeover = BigInt(plan.takeover_us);
  const start = input.start === "grant" ? rtt : 0n;
  const [workEnd, windowEnd] = [start + deadline, start + window];
  const cancelled = rtt + cancel < windowEnd ? rtt + cancel : windowEnd;
  const renewals = BigInt(plan.renewals_in_window);

  const holder: Mark[] = [];
  if (plan.safe) {
    if (start > 0n) holder.push({ at: start, words: "timer starts", cls: "quiet" });
    if (renewals > 0n) holder.push({ at: start + heartbeat, words: `renewal every ${duration(heartbeat)}`, cls: "renewal" });
    if (cancelled < windowEnd) {
      holder.push({ at: cancelled, words: `cancel after ${duration(cancel)}`, cls: "cancel" });
    }
    if (deadline > 0n && deadline < window) holder.push({ at: workEnd, words: `begin no work from ${duration(deadline)} on`, cls: "work" });
    holder.push({ at: windowEnd, words: `window ends after ${duration(window)}`, cls: "window" });
  }
  const coordinator = [
    { at: ttl, words: `earliest takeover: ${duration(ttl)}`, cls: "quiet" },
    { at: takeover, words: `latest: ${duration(takeover)}`, cls: "takeover" },
  ];
  return { ttl, takeover, start, workEnd, windowEnd, answered: rtt, cancelled, heartbeat, renewals, coordinator, holder };
}
