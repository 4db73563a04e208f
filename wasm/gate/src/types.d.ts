/** A whole number: a `number` while it is exact, else a `bigint`. */
export type Whole = number | bigint;

/** Where a channel's fence stands. */
export interface Fence {
    epoch: Whole;
    /** The highest token that was accepted; before the first, the floor that tokens must exceed. */
    token: Whole;
    /** Who raised it; null before an epoch's first raise. */
    holder: string | null;
    /** Whether that holder has given the stamp back for good. */
    released: boolean;
}

/** What a host wants of a gate. Times are µs of the caller's clock. */
export type Operation =
    | { kind: "status" }
    | { kind: "channel"; channel: number }
    | { kind: "raise" | "release"; channel: number; epoch: Whole; token: Whole }
    | {
          kind: "drive";
          channel: number;
          epoch: Whole;
          token: Whole;
          /** One value an output. */
          values: number[];
          /** The end of the holder's lease window, and its whole length. */
          deadline_us: number;
          window_us: number;
      }
    | { kind: "epoch"; channel: number; epoch: Whole; floor: Whole };

/** Why a gate refuses; `PROTOCOL.md` says what each means. */
export type Reason =
    | "bad_channel"
    | "role"
    | "authority"
    | "range"
    | "not_provisioned"
    | "storage"
    | "stale"
    | "wrong_holder"
    | "released"
    | "jump"
    | "replay"
    | "expired"
    | "fault"
    | "held"
    | "rate"
    | "busy"
    | "presence";

/** What a gate answers. */
export type Reply =
    | { kind: "challenge" | "counters" | "provisioned" | "log" }
    | { kind: "status"; firmware: string; boots: number; channels: number; fault: string | null }
    | { kind: "channel"; fence: Fence; values: number[]; window_left_us: Whole; fault: string | null }
    | { kind: "done"; fence: Fence; window_left_us: Whole }
    | { kind: "refused"; reason: Reason; by: Fence | null };

/** What a client wants next. */
export type Step =
    /** Put these bytes onto the line, then poll again. */
    | { kind: "send"; bytes: Uint8Array }
    /** Nothing to do before this instant, unless something comes. */
    | { kind: "wait"; until_us: Whole }
    | { kind: "done"; reply: Reply }
    | { kind: "failed"; why: "no_answer" | "not_authentic" | "too_long" }
    | { kind: "idle" };

/** A request on the line. */
export interface Asked {
    kind: string;
    channel?: number;
    token?: Whole;
    window_us?: Whole;
    values?: number[];
    epoch?: Whole;
    floor?: Whole;
}

/** One frame on the line. `said` is null where its seal does not hold, or is another gate's. */
export type LineFrame =
    | { kind: "noise"; bytes: number }
    | { kind: "request"; who: string; said: Asked | null; bytes: number }
    | { kind: "answer"; who: string; said: Reply | null; bytes: number };

/** A gate's identity (8 bytes) and keys (32 bytes each), from a good random source or an operator's key file. */
export class Keys {
    constructor(gate: Uint8Array, id: number, instance: bigint, root: Uint8Array, operator: Uint8Array);
    free(): void;
}

/** One principal's half of its conversation with a gate: `operator`, `observer` or a holder's name. */
export class GateClient {
    /** `random` is never used twice. */
    constructor(random: bigint, keys: Keys, who: string);
    /** One that speaks with a blank board, as everybody may. */
    static blank(random: bigint): GateClient;
    begin(operation: Operation, give_up_us: number): void;
    /** Makes a blank board the gate of these keys. */
    provision(keys: Keys, give_up_us: number): void;
    poll(now_us: number): Step;
    push(bytes: Uint8Array, now_us: number): void;
    free(): void;
}

/** One direction of a line, frame by frame. */
export class Decoder {
    constructor(keys: Keys);
    push(bytes: Uint8Array): LineFrame[];
    free(): void;
}
