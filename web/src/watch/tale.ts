// A whole story, told by the module once: each event with how everything stood at it. What is shown at an instant is the
// last frame before it.

import { Story, type Scenario, type StoryEvent, type StoryMessage, type StoryState } from "fencegate";
import scenarios from "fencegate/scenarios.json";
import { attempt, big, compact, Problem, readDrift, readDuration } from "../model/module";
import type { Problems } from "../model/question";
import type { WatchState } from "../state/state";

export interface Ready {
  name: string;
  title: string;
  about: string;
  scenario: Scenario;
}

export const READY = scenarios as Ready[];

export const chosen = (name: string): Ready => READY.find((one) => one.name === name) ?? (READY[0] as Ready);

export interface Frame {
  at: bigint;
  event: StoryEvent | undefined;
  state: StoryState;
}

export interface Tale {
  scenario: Scenario;
  /** Where it ends: as its scenario has it, or where more happens than is shown. */
  until: bigint;
  whole: boolean;
  frames: Frame[];
  messages: StoryMessage[];
}

/** The story as the visitor has changed it. */
export function change(typed: WatchState): Scenario | Problems {
  const { scenario } = chosen(typed.story);
  const problems: Problems = {};
  const take = (read: bigint | Problem): bigint => {
    if (!(read instanceof Problem)) return read;
    problems[read.field] = read.words;
    return 0n;
  };
  const asked = fields(scenario);
  const time = (field: "ttl" | "delay" | "freeze") =>
    asked.includes(field) && typed[field].trim() ? take(readDuration(typed[field], field === "ttl" ? "down" : "up", field)) : undefined;
  const [ttl, delay, freeze] = [time("ttl"), time("delay"), time("freeze")];
  const slow = typed.drift.trim().startsWith("-");
  const drift = asked.includes("drift") && typed.drift.trim() ? take(readDrift(compact(typed.drift).replace(/^[-+−]/, ""), "drift")) : undefined;
  if (Object.keys(problems).length) return problems;
  const jobs = [typed.a, typed.b].map((text) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  );
  return {
    ...scenario,
    fencing: typed.fencing === "on",
    ...(ttl === undefined ? {} : { ttl_us: ttl }),
    workers: (scenario.workers ?? []).map((worker, at) => ({
      ...worker,
      ...(jobs[at]?.length ? { job: jobs[at] } : {}),
      ...(delay === undefined ? {} : { delay_us: delay }),
      ...(drift === undefined || at > 0 ? {} : { drift_ppb: slow ? -drift : drift }),
    })),
    happenings: (scenario.happenings ?? []).map((one) =>
      freeze === undefined || !LASTS.includes(one.what) ? one : { ...one, for_us: freeze },
    ),
  };
}

/** What the visitor's "freeze" is the length of. */
const LASTS = ["freeze", "hang", "hold"];
export const struck = ({ happenings = [] }: Scenario) => happenings.find(({ what }) => LASTS.includes(what));

/** The fields that are on the page with this story. */
export const fields = (scenario: Scenario): string[] => [
  ...(scenario.workers ?? []).map((_, at) => (at ? "b" : "a")),
  ...(scenario.workers?.length ? ["delay", "drift", ...(scenario.expires === false ? [] : ["ttl"])] : []),
  ...(scenario.workers?.length && struck(scenario)?.for_us !== undefined ? ["freeze"] : []),
];

/** Which field of the page an input of the story's is. */
const PLACES: [RegExp, string][] = [
  [/^(ttl_us|rtt_us)$/, "ttl"],
  [/delay_us$/, "delay"],
  [/drift_ppb$/, "drift"],
  [/for_us$/, "freeze"],
  [/workers\[1\]\.job/, "b"],
  [/job/, "a"],
];

/** More than anybody looks through; and so many are told and drawn before a hand has left the key. */
const MOST_FRAMES = 600;

export function tell(scenario: Scenario): Tale | Problems {
  const story = attempt(() => new Story(scenario));
  if (story instanceof Problem) return { [PLACES.find(([field]) => field.test(story.field))?.[1] ?? "ttl"]: story.words };
  const frames: Frame[] = [{ at: 0n, event: undefined, state: story.state() }];
  const messages = new Map<string, StoryMessage>();
  let whole = true;
  for (let event = story.step(); event; event = story.step()) {
    if (frames.length > MOST_FRAMES) {
      whole = false;
      break;
    }
    const state = story.state();
    frames.push({ at: big(event.at_us), event, state });
    for (const message of state.messages)
      messages.set(`${message.from} ${message.to} ${message.kind} ${message.sent_us}`, message);
  }
  story.free();
  const until = whole ? big(scenario.until_us) : (frames.at(-1)?.at ?? 0n);
  return { scenario, until, whole, frames, messages: [...messages.values()] };
}

/** The last frame that is not after `at`. */
export function frameAt({ frames }: Tale, at: bigint): number {
  let [low, high] = [0, frames.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((frames[middle]?.at ?? 0n) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
