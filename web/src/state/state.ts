// What the visitor has set, as typed: everything that an address keeps.

export type View = "size" | "check" | "watch" | "gate";
export const VIEWS: readonly View[] = ["size", "check", "watch", "gate"];

/** Size a lease: from a TTL to its window, or from the work to the least TTL. */
export interface SizeState {
  from: "ttl" | "work";
  /** What a double run costs, and whether the resource can check a token. */
  cost: "" | "wasted" | "broken";
  token: "" | "yes" | "no";
  ttl: string;
  work: string;
  pause: string;
  rtt: string;
  poll: string;
  attempts: string;
  lost: string;
  granularity: string;
  holder: string;
  coordinator: string;
  start: "send" | "grant";
  offset: string;
  /** A chain of time-outs, one a part, and how fast what is driven moves. */
  page: string;
  relay: string;
  gate: string;
  drive: string;
  speed: string;
  over: "drift" | "rtt";
  /** Whether the lease is renewed while the work runs; where it is not, how short a job may be. */
  renews: "yes" | "no";
  shortest: string;
}

export interface CheckState {
  /** Any of the presets' systems: of some there is nothing to check, and something to say. */
  system: string;
  drift: string;
  rtt: string;
  /** The system's own keys, where they differ from its defaults. */
  values: Record<string, string>;
}

export interface WatchState {
  story: string;
  fencing: "on" | "off";
  a: string;
  b: string;
  ttl: string;
  delay: string;
  drift: string;
  freeze: string;
  /** The instant that is looked at, in µs, and how fast time runs. */
  at: string;
  pace: (typeof PACES)[number];
}

export const PACES = ["1", "2", "4"] as const;

export interface State {
  view: View;
  size: SizeState;
  check: CheckState;
  watch: WatchState;
}

export const SIZE: Readonly<SizeState> = {
  from: "ttl",
  cost: "",
  token: "",
  ttl: "10s",
  work: "200ms",
  pause: "",
  rtt: "5ms",
  poll: "",
  attempts: "3",
  lost: "1",
  granularity: "",
  holder: "500ppm",
  coordinator: "500ppm",
  start: "send",
  offset: "",
  page: "",
  relay: "",
  gate: "",
  drive: "",
  speed: "",
  over: "drift",
  renews: "yes",
  shortest: "",
};

export const CHECK: Readonly<CheckState> = { system: "patroni", drift: "1000ppm", rtt: "5ms", values: {} };

/** Empty: as the story has it. */
export const WATCH: Readonly<WatchState> = {
  story: "pause",
  fencing: "on",
  a: "",
  b: "",
  ttl: "",
  delay: "",
  drift: "",
  freeze: "",
  at: "",
  pace: "2",
};

export const START: State = { view: "size", size: SIZE, check: CHECK, watch: WATCH };
