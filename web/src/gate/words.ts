// What goes over the line, in words.

import type { Asked, Fence, LineFrame, Reply } from "fencegate-gate";
import type { Outcome } from "./holder";
import type { Stamp } from "./state";

export interface Row {
  n: number;
  /** Seconds since the view began. */
  at: string;
  /** From whom to whom, or whom it happened to. */
  who: string;
  words: string;
  /** How long the frame was; null for what is none. */
  bytes: number | null;
  cls: "" | "bounced" | "corrupted";
}

export const fenceWords = ({ token, holder, epoch, released }: Fence): string =>
  (epoch ? `epoch ${epoch}, ` : "") +
  (holder === null ? `nobody above ${token}` : `token ${token} of ${holder}${released ? ", given back" : ""}`);

const asked = ({ kind, channel, token, values, window_us, epoch, floor }: Asked): string => {
  const on = channel === undefined ? "" : ` channel ${channel}`;
  switch (kind) {
    case "drive":
      return `drive${on} to ${values?.join(", ")}, token ${token}, window ${Math.round(Number(window_us) / 1_000)} ms`;
    case "epoch":
      return `epoch ${epoch}${on}, floor ${floor}`;
    default:
      return `${kind.replace("_", " ")}${on}${token === undefined ? "" : `, token ${token}`}`;
  }
};

const answered = (reply: Reply): string => {
  switch (reply.kind) {
    case "done":
      return `done; fence: ${fenceWords(reply.fence)}`;
    case "refused":
      return `refused: ${reply.reason}${reply.by ? `; fence: ${fenceWords(reply.by)}` : ""}`;
    case "channel":
      return `outputs ${reply.values.join(", ")}; fence: ${fenceWords(reply.fence)}`;
    case "status":
      return `status: firmware ${reply.firmware}, boot ${reply.boots}${reply.fault ? `, ${reply.fault}` : ""}`;
    default:
      return reply.kind;
  }
};

export function row(n: number, at: string, towards: boolean, frame: LineFrame): Row {
  const { bytes } = frame;
  const way = (who: string) => (towards ? `${who} → gate` : `gate → ${who}`);
  if (frame.kind === "noise") return { n, at, who: way(""), words: "noise: no frame", bytes, cls: "" };
  const who = way(frame.who);
  if (frame.said === null) return { n, at, who, words: "a seal that these keys do not prove", bytes, cls: "corrupted" };
  if (frame.kind === "request") return { n, at, who, words: asked(frame.said), bytes, cls: "" };
  return { n, at, who, words: answered(frame.said), bytes, cls: frame.said.kind === "refused" ? "bounced" : "" };
}

/** That the board's chip was reset, and by what. */
export const resetRow = (n: number, at: string, why: string): Row => ({
  n,
  at,
  who: "the board",
  words: `was reset by its ${why}`,
  bytes: null,
  cls: "corrupted",
});

/** In what a stamp is below a fence. */
export const below = (stamp: Stamp, fence: Fence): string =>
  stamp.epoch < fence.epoch ? `epoch ${stamp.epoch} < ${fence.epoch}` : `${stamp.token} < ${fence.token}`;

/** Why it is not what was asked for. */
export function said(outcome: Outcome): string {
  if (outcome.kind === "refused") return `refused, ${outcome.reason}`;
  return outcome.kind === "failed" ? outcome.why.replace("_", " ") : outcome.kind;
}
