// The verdicts in words: what breaks first, and what to change. Every figure in them is the module's.

import { plan as planned, size, type PlanInput } from "fencegate";
import { attempt, big, Problem } from "../model/module";
import { duration, grouped } from "../model/format";
import type { Answer } from "../model/question";
import type { SizeState } from "../state/state";

export interface Verdict {
  level: "bad" | "warn" | "good";
  title: string;
  words: string;
}

export function verdicts(answer: Answer, typed: SizeState): Verdict[] {
  const { plan, ttl, work, rtt, pause } = answer;
  const said: Verdict[] = [];
  const add = (level: Verdict["level"], title: string, words: string) => said.push({ level, title, words });
  const window = big(plan.window_us);
  if (!plan.safe) {
    add(
      "bad",
      "There is no window",
      `The margin of ${duration(big(plan.margin_us))} takes all of the ${duration(ttl)}. Lengthen the TTL, take better clocks${answer.start === "grant" ? ", or start the timer before sending" : ""}.`,
    );
    return [...said, ...purpose(typed)];
  }
  if (!answer.renews) return [...purpose(typed), ...unrenewed(answer)];
  if (big(plan.work_deadline_us) === 0n && work > 0n) {
    const renewed = plan.sustainable && plan.renewals_in_window !== 0;
    const sized = attempt(() => size(answer.sizeInput));
    const least =
      sized instanceof Problem || sized.ttl_us === null
        ? "no TTL carries it whole with these clocks and heartbeats"
        : `carried whole it needs a TTL of at least ${duration(big(sized.ttl_us))}`;
    add(
      "bad",
      "The work breaks first",
      `Work of ${duration(work)} does not fit a window of ${duration(window)}: no permit for it can ever be given. ${renewed ? "Renewal does not help an action that cannot be checked in between: cut" : "Cut"} the work into steps of less than ${duration(window)} that check the lease again and renew in between; ${least}.`,
    );
  }
  if (!plan.sustainable) {
    add(
      "bad",
      "Heartbeats cannot keep up",
      `Every answer comes after cancellation: a round trip of ${duration(rtt)} is a third of the TTL or more. Lengthen the TTL or shorten the round trip.`,
    );
  } else if (plan.renewals_in_window === 0) {
    add(
      "bad",
      "Heartbeats cannot keep up",
      `No renewal is answered inside the window of ${duration(window)}: the first one leaves after ${duration(big(plan.heartbeat_us))}.`,
    );
  } else if (plan.misses_before_cancel === 0) {
    add(
      "warn",
      "One lost renewal trips cancellation",
      `Cancellation comes ${duration(big(plan.cancel_after_us))} after the last answer, and the next heartbeat is no sooner than ${duration(big(plan.heartbeat_us))}. The lease itself survives; the work in hand does not. ${secondTry(answer)}`,
    );
  } else {
    add(
      "good",
      "A lost renewal is ridden through",
      `${plan.misses_before_cancel === 1 ? "One" : `${grouped(big(plan.misses_before_cancel))} in a row`} may go unanswered before the work in hand is cancelled.`,
    );
  }
  if (answer.attempts < 3n) {
    add(
      "warn",
      "Fewer than three heartbeats",
      `The schedule is cut to what cancellation allows: one every ${duration(big(plan.heartbeat_us))}.`,
    );
  }
  if (pause > 0n && big(plan.stall_tolerance_us) <= pause) {
    add(
      "bad",
      "The pause breaks it",
      `A stall of ${duration(pause)} can lose the lease: it rides through less than ${duration(big(plan.stall_tolerance_us))}.`,
    );
  } else if (pause > 0n) {
    add("good", "The pause is ridden through", `A stall of less than ${duration(big(plan.stall_tolerance_us))} keeps the lease.`);
  }
  if (answer.start === "grant") {
    add(
      "warn",
      "The timer starts late",
      `Started before sending, the window would be ${duration(rtt)} longer: latency then needs no allowance.`,
    );
  }
  if (!said.some(({ level }) => level === "bad")) {
    const last = big(plan.work_deadline_us);
    add(
      "good",
      "What breaks first",
      work > 0n
        ? `Time for work: nothing of ${duration(work)} may begin from ${duration(last)} on, unless a renewal has been answered.`
        : "The window itself. Say how long the work takes, from its last check until its effect is over.",
    );
  }
  return [...purpose(typed), ...said];
}

/** A lease that nobody renews: the whole job has to fit it. */
function unrenewed(answer: Answer): Verdict[] {
  const { plan, planInput, ttl, work, shortest, pause } = answer;
  const [window, last] = [big(plan.window_us), big(plan.work_deadline_us)];
  const said: Verdict[] = [];
  if (work === 0n) {
    said.push({
      level: "warn",
      title: "What breaks first",
      words: `Whatever takes ${duration(window)} or longer: it goes on without a lease. Say how long the work takes.`,
    });
  } else if (last === 0n) {
    const from = shortest > 0n && shortest < work ? shortest : undefined;
    const some =
      from === undefined
        ? ""
        : from < window
          ? ` A job of ${duration(from)} still ends in time, so that it shows only now and then.`
          : " Not even the shortest one fits.";
    const fits = (t: bigint) => answered(planInput, { ttl_us: t })?.work_deadline_us;
    const least = lowest(ttl, LONGEST, (t) => (fits(t) ?? 0) > 0);
    const instead = least === undefined ? undefined : answered(planInput, { ttl_us: least });
    said.push({
      level: "bad",
      title: "The work breaks first",
      words: `Nobody renews the lease, and of jobs of ${from === undefined ? "" : `${duration(from)} to `}${duration(work)} whatever takes ${duration(window)} or longer outlives it: from ${duration(ttl)} on somebody else may begin beside it.${some} Renew it while the work runs, a heartbeat every ${duration(big(plan.heartbeat_us))}; ${
        instead && least !== undefined
          ? `or take a TTL of at least ${duration(least)}, and wait up to ${duration(big(instead.takeover_us))} for a dead holder`
          : "no TTL alone is long enough with these clocks"
      }.`,
    });
  } else {
    said.push({
      level: "good",
      title: "The longest job fits",
      words: `Begun earlier than ${duration(last)} after the start of the timer, a job of ${duration(work)} ends inside the window. A dead holder is waited for up to ${duration(big(plan.takeover_us))}.`,
    });
  }
  if (pause > 0n) {
    said.push({
      level: "warn",
      title: "A pause is part of the job",
      words: `Without renewal nothing rides through ${duration(pause)} but the work: count it in there.`,
    });
  }
  return said;
}

/** No field takes more. */
const LONGEST = 2n ** 63n - 1n;

const answered = (input: PlanInput, other: Partial<PlanInput>) => {
  const tried = attempt(() => planned({ ...input, ...other }));
  return tried instanceof Problem ? undefined : tried;
};

/** The lowest value above `not` with which it is enough, where more of it is never less. */
function lowest(not: bigint, limit: bigint, enough: (n: bigint) => boolean): bigint | undefined {
  let most = not;
  do [not, most] = [most, most * 2n < limit ? most * 2n : limit];
  while (most < limit && !enough(most));
  if (!enough(most)) return undefined;
  while (most - not > 1n) {
    const middle = (not + most) / 2n;
    if (enough(middle)) most = middle;
    else not = middle;
  }
  return most;
}

/** The fewest heartbeats per TTL with which one may be lost. More of them never leave less time for it. */
function secondTry({ planInput, attempts, ttl }: Answer): string {
  // A plan has a microsecond for each heartbeat.
  const most = lowest(attempts, ttl, (n) => (answered(planInput, { attempts: n })?.misses_before_cancel ?? 0) > 0);
  return most === undefined
    ? "No number of heartbeats per TTL gives a second try: lengthen the TTL or shorten the round trip."
    : `From ${grouped(most)} heartbeats per TTL on there is a second try.`;
}

/** What a double run costs, and what is left where no token can be checked. */
function purpose({ cost, token }: SizeState): Verdict[] {
  if (cost === "wasted") {
    return [
      {
        level: "good",
        title: "An efficiency lock",
        words:
          "A double run wastes work and breaks nothing: a lease without fencing will do. These figures say for how long it may be relied on, and not how often it fails.",
      },
    ];
  }
  const unasked: Verdict[] =
    cost === ""
      ? [
          {
            level: "warn",
            title: "First: what does a double run cost?",
            words: "Say it above. Until then this is judged as a lock that correctness depends on.",
          },
        ]
      : [];
  if (token === "yes") {
    return [
      ...unasked,
      {
        level: "good",
        title: "A correctness lock, with a fence",
        words:
          "No window protects from a pause between the check and the write. What does is a resource that refuses every token below the highest it has seen.",
      },
    ];
  }
  const unsaid: Verdict[] =
    token === ""
      ? [
          {
            level: "warn",
            title: "Can the resource check a token?",
            words: "Say it above. Until then this is judged as if it could not.",
          },
        ]
      : [];
  return [
    ...unasked,
    ...unsaid,
    {
      level: "bad",
      title: "A correctness lock that nothing enforces",
      words:
        "A resource that cannot check a token takes whatever arrives. What is left: writes that may be repeated without harm (idempotent, or conditional on what was read), jobs that collide softly and are reconciled afterwards, or a gate in front that checks for it.",
    },
  ];
}
