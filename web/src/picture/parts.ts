// The parts of the picture: where each lies, what it is, its formula with the numbers in it, and its source. Where they lie
// is in microseconds since the request was sent: the module's lengths laid end to end. What is said of them is not: that
// is the module's figures as they are.

import { big } from "../model/module";
import type { Answer } from "../model/question";
import { drift, duration, grouped } from "../model/format";

export interface Part {
  id: string;
  name: string;
  from: bigint;
  to: bigint;
  /** What it is. */
  words: string;
  formula: string;
  source: string;
}

const CONTRACT = "fencegate, core/src/plan.rs";
const WINDOW = "fencegate, core/src/window.rs";

export interface Story {
  ttl: bigint;
  /** Start of the holder's timer, end of new work, end of the window, the latest takeover. */
  start: bigint;
  workEnd: bigint;
  windowEnd: bigint;
  takeover: bigint;
  cancelled: bigint;
  /** What the labels say: the module's own figures, from the start of the holder's timer; the cancellation's from the answer. */
  said: { workEnd: bigint; window: bigint; cancel: bigint };
  /** How far heartbeats are apart, and how many of them help; none where nobody renews. */
  beats: { every: bigint; help: bigint } | undefined;
  parts: Record<string, Part>;
}

export function tell(answer: Answer): Story {
  const { plan, ttl, rtt, drift: ppb, driftMargin, offset, work } = answer;
  const start = answer.start === "grant" ? rtt : 0n;
  const windowEnd = start + big(plan.window_us);
  const workEnd = start + big(plan.work_deadline_us);
  const takeover = big(plan.takeover_us);
  const [heartbeat, cancel, renewals] = [big(plan.heartbeat_us), big(plan.cancel_after_us), big(plan.renewals_in_window)];
  const trips = rtt + cancel < windowEnd ? rtt + cancel : windowEnd;

  const beat =
    plan.sustainable && heartbeat + rtt === cancel
      ? `c − d = ${duration(cancel)} − ${duration(rtt)}`
      : `⌊T / n⌋ = ⌊${duration(ttl)} / ${grouped(answer.attempts)}⌋`;
  const parts: Part[] = [
    {
      id: "lease",
      name: "Lease on the coordinator's clock",
      from: 0n,
      to: ttl,
      words: "As the coordinator grants it. It may begin at the very moment at which the request is sent.",
      formula: `T = ${duration(ttl)}`,
      source: "The coordinator's configuration",
    },
    {
      id: "window",
      name: "Window on the holder's clock",
      from: start,
      to: windowEnd,
      words: "For this long the holder may rely on its lease. At the end itself it is over.",
      formula: `max(0, T − margin) = ${duration(ttl)} − ${duration(big(plan.margin_us))} = ${duration(big(plan.window_us))}`,
      source: WINDOW,
    },
    {
      id: "work",
      name: "Time in which work may begin",
      from: start,
      to: workEnd,
      words: "New work begins strictly before its end, so that the longest work ends inside the window.",
      formula: `max(0, window − W) = ${duration(big(plan.window_us))} − ${duration(work)} = ${duration(big(plan.work_deadline_us))}`,
      source: CONTRACT,
    },
    {
      id: "drift",
      name: "Margin for drift",
      from: windowEnd,
      to: windowEnd + driftMargin,
      words: "What the two clocks may differ by after a whole lease: both bounds added.",
      formula: `⌈T · ε⌉ = ⌈${duration(ttl)} · ${drift(ppb)}⌉ = ${duration(driftMargin)}`,
      source: WINDOW,
    },
    {
      id: "latency",
      name: "Margin for the round trip",
      from: 0n,
      to: start,
      words:
        "The timer starts at the reply, and the lease may have begun a whole round trip before. Started at send, this is nothing.",
      formula: `d = ${duration(start)}`,
      source: WINDOW,
    },
    {
      id: "offset",
      name: "Margin for wall clocks",
      from: windowEnd + driftMargin,
      to: windowEnd + driftMargin + offset,
      words: "For a deadline that one machine writes and another reads: how far their wall clocks may be apart.",
      formula: `offset = ${duration(offset)}`,
      source: WINDOW,
    },
    {
      id: "heartbeat",
      name: "Heartbeats",
      from: start,
      to: windowEnd,
      words: `Renewals leave this far apart. ${help(renewals)}; what leaves later is drawn hollow.`,
      formula: `h = ${beat} = ${duration(heartbeat)}; k · ${duration(heartbeat)} + ${duration(rtt)} < ${duration(big(plan.window_us))} for k ≤ ${grouped(renewals)}`,
      source: CONTRACT,
    },
    {
      id: "cancel",
      name: "Cancellation",
      from: trips,
      to: trips,
      words: `Work in hand stops once more than this has passed since the last answer, and at the end of the window at the latest. Renewals that may go unanswered before: ${plan.misses_before_cancel}.`,
      formula: `c = ⌊T / 3⌋ = ⌊${duration(ttl)} / 3⌋ = ${duration(cancel)}`,
      source: CONTRACT,
    },
    {
      id: "last",
      name: "Last moment to begin work",
      from: workEnd,
      to: windowEnd,
      words: "From here on nothing new begins; what is in hand may end.",
      formula: `W = ${duration(work)}`,
      source: CONTRACT,
    },
    {
      id: "takeover",
      name: "Takeover",
      from: ttl,
      to: takeover,
      words: `The next holder has the lease after ${duration(ttl)} at the earliest, and at the latest here, where this one dies just after sending a renewal.`,
      formula: `⌈T / (1 − ε)⌉ + 2 d + poll = ⌈${duration(ttl)} / (1 − ${drift(ppb)})⌉ + 2 · ${duration(rtt)} + ${duration(answer.poll)} = ${duration(takeover)}`,
      source: CONTRACT,
    },
  ];
  const known = Object.fromEntries(parts.map((part) => [part.id, part]));
  const said = { workEnd: big(plan.work_deadline_us), window: big(plan.window_us), cancel };
  const beats = answer.renews ? { every: heartbeat, help: renewals } : undefined;
  // Nobody who does not renew waits for answers.
  const cancelled = answer.renews ? trips : windowEnd;
  return { ttl, start, workEnd, windowEnd, takeover, cancelled, said, beats, parts: known };
}

/** How many heartbeats help, in words. */
export const help = (renewals: bigint): string =>
  `${renewals === 1n ? "One of them is" : `${grouped(renewals)} of them are`} answered inside the window and still help${renewals === 1n ? "s" : ""}`;

