// What goes over the line, in words.

import type { Asked, Fence, LineFrame, Reply } from "fencegate-gate";
import type { Outcome } from "./holder";

export interface Row {
  n: number;
  /** Seconds since the view began. */
  at: string;
  towards: boolean;
  who: string;
  words: string;
  bytes: number;
  cls: "" | "bounced" | "corrupted";
}

export const fenceWords = ({ token, holder, epoch, released }: Fence): string =>
  holder === null
    ? `nobody above ${token}`
    : `${epoch ? `epoch ${epoch}, ` : ""}token ${token} of ${holder}${released ? ", given back" : ""}`;

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
  if (frame.kind === "noise") return { n, at, towards, who: "", words: "noise: no frame", bytes, cls: "" };
  const { who, said } = frame;
  if (said === null) return { n, at, towards, who, words: "a seal that these keys do not prove", bytes, cls: "corrupted" };
  if (frame.kind === "request") return { n, at, towards, who, words: asked(said as Asked), bytes, cls: "" };
  const reply = said as Reply;
  return { n, at, towards, who, words: answered(reply), bytes, cls: reply.kind === "refused" ? "bounced" : "" };
}

/** Why it is not what was asked for. */
export function said(outcome: Outcome): string {
  if (outcome.kind === "refused") return `refused, ${outcome.reason}`;
  return outcome.kind === "failed" ? outcome.why.replace("_", " ") : outcome.kind;
}
