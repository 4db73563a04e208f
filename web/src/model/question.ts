// From what was typed to what the module answers: a plan, or sentences at the fields that are to blame.

import { plan, size, window as leaseWindow, type Plan, type PlanInput, type SizeInput } from "fencegate";
import type { SizeState } from "../state/state";
import { attempt, big, compact, Problem, readCount, readDrift, readDuration } from "./module";

/** The lease that everything is drawn and said of, all of it the module's or typed. */
export interface Answer {
  plan: Plan;
  ttl: bigint;
  drift: bigint;
  rtt: bigint;
  work: bigint;
  pause: bigint;
  poll: bigint;
  attempts: bigint;
  lost: bigint;
  start: "send" | "grant";
  offset: bigint;
  /** Whether it is renewed while the work runs; where it is not, the shortest job, if that was said. */
  renews: boolean;
  shortest: bigint;
  /** The part of the margin that drift takes: the margin of the same lease with nothing else in it. */
  driftMargin: bigint;
  sized: boolean;
  planInput: PlanInput;
  sizeInput: SizeInput;
}

/** That there is no TTL for this work. */
export interface NoTtl {
  none: true;
  sizeInput: SizeInput;
}

export type Problems = Partial<Record<string, string>>;

/** Which field of the page an input of the module is. */
const PLACES: Record<string, string> = {
  ttl_us: "ttl",
  drift_ppb: "drift",
  rtt_us: "rtt",
  work_us: "work",
  pause_us: "pause",
  poll_us: "poll",
  attempts: "attempts",
  lost: "lost",
  granularity_us: "granularity",
  clock_offset_us: "offset",
};

export function ask(typed: SizeState): Answer | NoTtl | { problems: Problems } {
  const problems: Problems = {};
  const take = (read: bigint | Problem): bigint => {
    if (!(read instanceof Problem)) return read;
    problems[read.field] = read.words;
    return 0n;
  };
  const time = (field: keyof SizeState): bigint => (typed[field].trim() ? take(readDuration(typed[field], "up", field)) : 0n);
  const sizing = typed.from === "work";
  for (const clock of ["holder", "coordinator"] as const) take(readDrift(typed[clock], clock));
  const drift = problems["holder"] || problems["coordinator"] ? 0n : take(readDrift([typed.holder, typed.coordinator], "drift"));
  const [rtt, work, pause, poll] = [time("rtt"), time("work"), time("pause"), time("poll")];
  const attempts = take(readCount(typed.attempts, "attempts"));
  // From a TTL nobody is asked for it; it only goes into what is drawn beside.
  const given = readCount(typed.lost, "lost");
  const lost = sizing ? take(given) : given instanceof Problem ? 1n : given;
  const ttl = sizing ? 0n : take(readDuration(typed.ttl, "down", "ttl"));
  const offset = sizing ? 0n : time("offset");
  const renews = sizing || typed.renews === "yes";
  const shortest = renews ? 0n : time("shortest");
  const granularity = sizing && typed.granularity.trim() ? time("granularity") : 1n;
  if (Object.keys(problems).length) return { problems };

  const blame = ({ field, words }: Problem) => ({ problems: { [PLACES[field] ?? (sizing ? "work" : "ttl")]: words } });
  const shared = { drift_ppb: drift, rtt_us: rtt, attempts, work_us: work, pause_us: pause, poll_us: poll };
  const sizeInput = { ...shared, lost, granularity_us: granularity };
  let answer: Plan;
  let answerTtl = ttl;
  const start = sizing ? "send" : typed.start;
  if (sizing) {
    const sized = attempt(() => size(sizeInput));
    if (sized instanceof Problem) return sized.field === "ttl_us" ? { problems: { work: sized.words } } : blame(sized);
    if (sized.ttl_us === null) return { none: true, sizeInput };
    answerTtl = big(sized.ttl_us);
    answer = sized;
  } else {
    const planned = attempt(() => plan({ ...shared, ttl_us: ttl, start, clock_offset_us: offset }));
    if (planned instanceof Problem) return blame(planned);
    answer = planned;
  }
  const driftOnly = attempt(() => leaseWindow({ ttl_us: answerTtl, drift_ppb: drift }));
  if (driftOnly instanceof Problem) return blame(driftOnly);
  return {
    plan: answer,
    ttl: answerTtl,
    ...{ drift, rtt, work, pause, poll, attempts, lost, start, offset, renews, shortest },
    driftMargin: big(driftOnly.margin_us),
    sized: sizing,
    planInput: { ...shared, ttl_us: answerTtl, start, clock_offset_us: offset },
    sizeInput,
  };
}

/** The command that answers the same question. Only for settings that can be read. */
export function command(typed: SizeState): string {
  const time = (text: string) => compact(text).replace(/^0+$/, "0s");
  const drift = (text: string) => compact(text).replace(/^0+$/, "0ppm");
  const words = ["fencegate", typed.from === "ttl" ? "plan" : "size"];
  const put = (flag: string, text: string, unless = "") => {
    if (text && text !== unless) words.push(flag, text);
  };
  if (typed.from === "ttl") put("--ttl", time(typed.ttl));
  put("--work", time(typed.work));
  put("--pause", time(typed.pause));
  put("--drift", drift(typed.holder));
  put("--drift", drift(typed.coordinator));
  put("--rtt", time(typed.rtt));
  put("--poll", time(typed.poll));
  put("--attempts", compact(typed.attempts), "3");
  if (typed.from === "ttl") {
    put("--start", typed.start, "send");
    put("--clock-offset", time(typed.offset));
  } else {
    put("--lost", compact(typed.lost), "1");
    put("--granularity", time(typed.granularity));
  }
  return words.join(" ");
}

/** The same for whoever links the core. */
export function rust(answer: Answer): string {
  const us = (value: bigint) => `Duration::from_micros(${rustNumber(value)})`;
  const lines = [`Plan::for_ttl(${us(answer.ttl)})`, `    .drift(Drift::from_ppb(${rustNumber(answer.drift)}))`];
  if (answer.rtt) lines.push(`    .round_trip(${us(answer.rtt)})`);
  if (answer.start === "grant") lines.push("    .start(Start::Grant)");
  if (answer.attempts !== 3n) lines.push(`    .attempts(${answer.attempts})`);
  if (answer.work) lines.push(`    .work(${us(answer.work)})`);
  if (answer.poll) lines.push(`    .poll(${us(answer.poll)})`);
  const uses = ["Drift", "Duration", "Plan", ...(answer.start === "grant" ? ["Start"] : [])];
  const set = [
    ...(answer.offset ? [`input.clock_offset = ${us(answer.offset)};`] : []),
    ...(answer.pause ? [`input.pause = ${us(answer.pause)};`] : []),
  ];
  return [
    `use fencegate::{${uses.join(", ")}};`,
    "",
    `let ${set.length ? "mut " : ""}input = ${lines.join("\n")};`,
    ...set,
    `let plan = input.plan()?; // window ${answer.plan.window_us} µs`,
  ].join("\n");
}

export const rustNumber = (value: bigint): string => value.toString().replace(/\B(?=(\d{3})+$)/g, "_");
