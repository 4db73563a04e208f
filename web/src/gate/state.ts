// What the view shows.

import type { Fence } from "fencegate-gate";
import type { Row } from "./words";

export type Name = "A" | "B";
export type Doing = "idle" | "waits" | "drives" | "frozen" | "fenced" | "unheard" | "over";

export interface HolderState {
  doing: Doing;
  token: number | null;
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
  next: number;
  told: { words: string; cls: "" | "good" | "bad" };
  frames: Row[];
  pace: { speed: number; load: number } | null;
  playing: boolean;
  /** Whether this browser keeps a board when the view is closed, and if not, why. */
  kept: { yes: boolean; why: string };
}

/** Where the story's tokens begin. */
const FIRST = 33;

export const BEGUN: State = {
  source: "none",
  power: "off",
  pins: [0, 0, 0, 0, 0, 0],
  lamp: false,
  fence: null,
  boots: null,
  holders: { A: { doing: "idle", token: null }, B: { doing: "idle", token: null } },
  next: FIRST,
  told: { words: "Nothing has power yet.", cls: "" },
  frames: [],
  pace: null,
  playing: false,
  kept: { yes: false, why: "" },
};
