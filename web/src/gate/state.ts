// What the view shows.

import type { Fence, Whole } from "fencegate-gate";
import type { Row } from "./words";

export type Name = "A" | "B";
export type Doing = "idle" | "waits" | "drives" | "frozen" | "fenced" | "unheard" | "over";

/** What the lock service has granted. It is whole: nobody fills a part of it in later. */
export interface Stamp {
  epoch: Whole;
  token: bigint;
}

export interface HolderState {
  doing: Doing;
  stamp: Stamp | null;
}

export interface State {
  source: "none" | "emulator" | "serial";
  power: "off" | "booting" | "on" | "cut" | "failed";
  /** What the outputs do; none where nobody knows. */
  pins: number[];
  lamp: boolean;
  fence: Fence | null;
  boots: number | null;
  holders: Record<Name, HolderState>;
  /** The token that comes next. */
  next: bigint;
  told: { words: string; cls: "" | "good" | "bad" };
  frames: Row[];
  pace: { speed: number; load: number } | null;
  playing: boolean;
  /** Whether this browser keeps a board when the view is closed, and if not, why. */
  kept: { yes: boolean; why: string };
}

/** Where the story's tokens begin. */
const FIRST = 33n;

export const BEGUN: State = {
  source: "none",
  power: "off",
  pins: [0, 0, 0, 0, 0, 0],
  lamp: false,
  fence: null,
  boots: null,
  holders: { A: { doing: "idle", stamp: null }, B: { doing: "idle", stamp: null } },
  next: FIRST,
  told: { words: "Nothing has power yet.", cls: "" },
  frames: [],
  pace: null,
  playing: false,
  kept: { yes: false, why: "" },
};
