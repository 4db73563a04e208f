// What the holders and the story have of the session around them.

import type { Fence } from "fencegate-gate";
import type { State } from "./state";

/** What the holders drive. */
export const CHANNEL = 0;
/** How often a holder renews its lease and drives, in ms. */
export const RENEW = 1_000;
/** How long an answer may take, in ms. */
export const PATIENCE = 1_500;

/** What was under way when the view was closed, or the story stopped, is over. */
export class Closed extends Error {}

export interface Stage {
  state(): State;
  set(change: Partial<State>): void;
  tell(words: string, cls?: State["told"]["cls"]): void;
  /** The gate has said where its fence stands. */
  fence(fence: Fence): void;
  /** @throws {Closed} */
  sleep(ms: number): Promise<void>;
}
