/**
 * A whole number. In: from 0 to 2^64 - 1, as a `number` that is exact (at most 2^53 - 1) or as a `bigint`.
 * Out: a `number` while it is exact, else a `bigint`.
 */
export type Whole = number | bigint;

/** When the holder starts its timer: before the request leaves, or when the reply arrives. */
export type Start = "send" | "grant";

/** What the window of a lease follows from. A field that is `undefined` counts as left out. */
export interface WindowInput {
    /** T, the lease as the coordinator grants it, in µs; at least 1, in a plan at least n. */
    ttl_us: Whole;
    /**
     * ε, bound on the rate difference of two clocks in parts per billion: the holder's own bound plus that of
     * whatever clock times the expiry; below 1 000 000 000.
     */
    drift_ppb: Whole;
    /** d, worst round trip of an acquire or renew call, in µs; 0 if left out. */
    rtt_us?: Whole | undefined;
    /** When the holder starts its timer; `"send"` if left out. */
    start?: Start | undefined;
    /** Worst offset between two wall clocks in µs, for a deadline that one machine writes and another reads; 0 if left out. */
    clock_offset_us?: Whole | undefined;
}

/** The window of a lease. */
export interface Window {
    /** ⌈T·ε⌉ + (d if `start` is `"grant"`) + clock offset, in µs. */
    margin_us: Whole;
    /** max(0, T − margin), in µs: the lease is over once this much has passed since the start of the timer. */
    window_us: Whole;
    /** Whether anything is left: window > 0. */
    safe: boolean;
}

/** What a plan follows from. */
export interface PlanInput extends WindowInput {
    /** n, heartbeats per T; at least 2, and 3 if left out. */
    attempts?: Whole | undefined;
    /** W, the longest time in µs from the holder's last check of its lease until its action has taken effect; 0 if left out. */
    work_us?: Whole | undefined;
    /** P, a stall in µs that the holder should ride through without losing the lease; 0 if left out. */
    pause_us?: Whole | undefined;
    /** How often a challenger asks again, in µs; 0 if left out. */
    poll_us?: Whole | undefined;
}

/** The plan of a lease; every rounding goes to the safe side. */
export interface Plan extends Window {
    /** h, in µs: ⌊T/n⌋ where ⌊T/n⌋ + d ≤ c, else c − d where c > d, else ⌊T/n⌋. */
    heartbeat_us: Whole;
    /** False where every answer comes after cancellation (c ≤ d). */
    sustainable: boolean;
    /** How many k ≥ 1 have k·h + d < window. */
    renewals_in_window: Whole;
    /** c = ⌊T/3⌋, in µs: cancellation trips once more than this has passed since the last answer, or at the window's end. */
    cancel_after_us: Whole;
    /** Renewals in a row that may go unanswered before cancellation: max(0, ⌊(c − d)/h⌋ − 1), 0 where not sustainable. */
    misses_before_cancel: Whole;
    /** max(0, window − h − d), in µs: a stall shorter than this, begun just before the first renewal, keeps the lease. */
    stall_tolerance_us: Whole;
    /** max(0, window − W), in µs: a new action must begin strictly earlier than this after the start of the timer. */
    work_deadline_us: Whole;
    /** ⌈T·10⁹/(10⁹−ε)⌉ + 2d + poll, in µs: the longest wait for the next holder when this one dies. */
    takeover_us: Whole;
    /** ⌊3 600 000 000 / h⌋. */
    renewals_per_hour: Whole;
}

/** What is thrown for an input that is wrong. */
export interface InputError extends Error {
    /** Short and stable, for programs. */
    code: "missing" | "not_a_start" | "not_an_integer" | "not_an_object" | "out_of_range" | "unknown_field";
    /** The field's name above; `"input"` where the input is no object. */
    field: string;
}

/**
 * The margin and the window of a lease.
 * @throws {InputError}
 */
export function window(input: WindowInput): Window;

/**
 * The plan of a lease: the window, the renewals, the cancellation and the takeover.
 * @throws {InputError}
 */
export function plan(input: PlanInput): Plan;
