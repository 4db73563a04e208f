// The visitor's words, and ours beside them.

import type { SizeState } from "../state/state";

export interface Opener {
  said: string;
  ours: string;
  /** What is set; everything else is as the page begins. */
  change: Partial<SizeState>;
}

export const OPENERS: readonly Opener[] = [
  {
    said: "My command time-out is 500 ms",
    ours: "A time-out is no lease: it ends your wait and not what the command does. Its length is work (W); the TTL that carries it is asked for from the work.",
    change: { from: "work", work: "500ms", cost: "broken" },
  },
  {
    said: "Two controllers, one relay",
    ours: "A correctness lock: the controllers are holders, whoever times their turn is the coordinator, and the relay's gate is the resource that checks the token.",
    change: {
      from: "ttl",
      ttl: "3s",
      work: "50ms",
      rtt: "20ms",
      holder: "50ppm",
      coordinator: "50ppm",
      cost: "broken",
      token: "yes",
      page: "500ms",
      relay: "100ms",
      gate: "50ms",
      drive: "200ms",
      speed: "500",
    },
  },
  {
    said: "My lock expires during the job",
    ours: "The job is longer than the window. Either it is cut into steps that check the lease again, each of them W, or the TTL is sized from the whole job, or somebody renews it meanwhile.",
    change: { from: "ttl", ttl: "60s", renews: "no", shortest: "30s", work: "15m", rtt: "50ms", cost: "broken" },
  },
  {
    said: "The collector stops my process",
    ours: "A pause (P). Short ones are ridden through by the lease; against the long one only a fence helps.",
    change: {
      from: "work",
      work: "2s",
      pause: "500ms",
      rtt: "50ms",
      cost: "broken",
    },
  },
];
