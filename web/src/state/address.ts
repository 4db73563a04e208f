// The state in the page's address: `#size?ttl=10s&…`. A link may be old, mangled or from a later version: what it says
// and the page knows is taken, and what is wrong with the rest is said.

import { presets } from "../model/module";
import { READY } from "../watch/tale";
import {
  CHECK,
  PACES,
  SIZE,
  START,
  VIEWS,
  WATCH,
  type CheckState,
  type SizeState,
  type State,
  type View,
  type WatchState,
} from "./state";

/** Longer than anything that the fields take. */
const LONGEST = 2_000;

const WORDS: Record<string, readonly string[]> = {
  from: ["ttl", "work"],
  cost: ["", "wasted", "broken"],
  token: ["", "yes", "no"],
  start: ["send", "grant"],
  over: ["drift", "rtt"],
  renews: ["yes", "no"],
  fencing: ["on", "off"],
  pace: PACES,
  story: READY.map(({ name }) => name),
};

/** An instant of a story, in µs. */
const INSTANT = /^\d{0,15}$/;

export function toHash(state: State): string {
  const said = new URLSearchParams();
  const put = (prefix: string, values: object, defaults: object, whole: boolean) => {
    for (const [key, value] of Object.entries(values) as [string, string][]) {
      if (key !== "values" && (whole || value !== (defaults as Record<string, string>)[key])) said.set(prefix + key, value);
    }
  };
  put("", state.size, SIZE, state.view === "size");
  put("check.", state.check, CHECK, state.view === "check");
  for (const [key, value] of Object.entries(state.check.values)) said.set(`check.${key}.is`, value);
  put("watch.", state.watch, WATCH, state.view === "watch");
  return `#${state.view}?${said}`;
}

export interface Read {
  state: State;
  /** What the address said that the page cannot do anything with. */
  strange: string[];
}

export function fromHash(hash: string): Read {
  const text = hash.replace(/^#/, "");
  const mark = text.indexOf("?");
  const name = mark < 0 ? text : text.slice(0, mark);
  // The first addresses had neither a view nor a mark: `#ttl=10s&start=grant`.
  const old = mark < 0 && name.includes("=");
  const strange: string[] = [];
  const view = VIEWS.find((known) => known === name) ?? "size";
  if (!old && name && !VIEWS.includes(name as View)) strange.push(name);
  const size: SizeState = { ...SIZE };
  const check: CheckState = { ...CHECK, values: {} };
  const watch: WatchState = { ...WATCH };
  const said = new URLSearchParams(old ? text : mark < 0 ? "" : text.slice(mark + 1));
  const own: [string, string][] = [];
  for (const [key, value] of said) {
    if (value.length > LONGEST) strange.push(key);
    else if (key.startsWith("check.") && key.endsWith(".is")) own.push([key.slice(6, -3), value]);
    else if (key === "check.system") {
      if (presets().systems.some(({ system }) => system === value)) check.system = value;
      else strange.push(key);
    } else {
      const [into, field]: [object, string] = key.startsWith("check.")
        ? [check, key.slice(6)]
        : key.startsWith("watch.")
          ? [watch, key.slice(6)]
          : [size, key];
      const takes = Object.hasOwn(into, field) && field !== "values" && (WORDS[field]?.includes(value) ?? (field !== "at" || INSTANT.test(value)));
      if (takes) (into as Record<string, string>)[field] = value;
      else strange.push(key);
    }
  }
  const keys = Object.keys(presets().systems.find(({ system }) => system === check.system)?.defaults ?? {});
  for (const [key, value] of own) {
    if (keys.includes(key)) check.values[key] = value;
    else strange.push(key);
  }
  return { state: { ...START, view, size, check, watch }, strange };
}
