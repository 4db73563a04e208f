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

/** What a TTL is sized for; the timer starts at send, and one machine tells the time. */
export interface SizeInput {
    /** ε, bound on the rate difference of two clocks in parts per billion; below 1 000 000 000. */
    drift_ppb: Whole;
    /** d, worst round trip of an acquire or renew call, in µs; 0 if left out. */
    rtt_us?: Whole | undefined;
    /** n, heartbeats per T; at least 2, and 3 if left out. */
    attempts?: Whole | undefined;
    /** W, the longest time in µs from the holder's last check of its lease until its action has taken effect; 0 if left out. */
    work_us?: Whole | undefined;
    /** P, a stall in µs that the holder should ride through without losing the lease; 0 if left out. */
    pause_us?: Whole | undefined;
    /** How often a challenger asks again, in µs; 0 if left out. */
    poll_us?: Whole | undefined;
    /** Renewals in a row that may fail before the lease is lost; 1 if left out. */
    lost?: Whole | undefined;
    /** The coordinator's step of T in µs; at least 1, and 1 if left out. */
    granularity_us?: Whole | undefined;
}

/** The least TTL, and every field of the plan for it. */
export interface Size extends Plan {
    /** T = ⌈(W+P+d+1)·n·10⁹ / (n·(10⁹−ε) − (lost+1)·10⁹)⌉, at least n, rounded up to the granularity, in µs. */
    ttl_us: Whole;
}

/** No TTL is long enough: drift and lost renewals eat whatever it gains. */
export interface NoSize {
    ttl_us: null;
}

/** What the validity of a Redlock follows from. */
export interface RedlockInput {
    /** T, the time to live of the keys, in µs; at least 1. */
    ttl_us: Whole;
    /** What passed from before the first node was asked until the last one answered, in µs. */
    elapsed_us: Whole;
    /** N, the nodes that there are; at least 1. */
    nodes: Whole;
    /** The nodes that granted it; at most N. */
    granted: Whole;
    /** The part of T that is allowed for drift, in parts per billion; below 1 000 000 000, and 10 000 000 (1 %) if left out. */
    drift_factor_ppb?: Whole | undefined;
    /** What is allowed for drift whatever T, in µs; 2000 if left out. */
    drift_fixed_us?: Whole | undefined;
}

/** What is left of a Redlock. */
export interface Redlock {
    /** ⌈factor·T⌉ + fixed, in µs. */
    drift_us: Whole;
    /** max(0, T − elapsed − drift), in µs. */
    validity_us: Whole;
    /** ⌊N/2⌋ + 1. */
    quorum: Whole;
    /** validity > 0 and granted ≥ quorum. */
    held: boolean;
}

/** What a quorum is asked for. */
export interface QuorumInput {
    /** N, the nodes that there are; at least 1. */
    nodes: Whole;
}

/** How many of N nodes are needed, and how many may be missing. */
export interface Quorum {
    /** ⌊N/2⌋ + 1. */
    quorum: Whole;
    /** N − quorum. */
    tolerates: Whole;
}

/** A lock service whose configuration can be checked. */
export type System = keyof Configurations;

/** A clock, and how far it may be off. */
export interface Clock {
    /** What it is, and under which conditions the bound holds. */
    clock: string;
    /** The bound of this one clock, in parts per billion; the drift of a lease is the sum of two. */
    drift_ppb: Whole;
    /** The data sheet or document that states it. */
    source: string;
}

/** A lock service as it comes. */
export interface Preset {
    /** Its name. */
    system: System | "redis" | "postgres-advisory" | "s3";
    /** Its keys with their defaults, the lease first: durations and drifts as text, `null` where there is no default. */
    defaults: Record<string, string | number | boolean | null>;
    /** What serves as a fencing token; `null` where nothing does. */
    token: string | null;
    /** Whether tokens are ordered, so that a fence can tell the later one. */
    ordered: boolean;
    /** Whether the usual client renews the lease by itself. */
    renews: boolean;
    /** What to know before relying on it. */
    notes: string;
    /** Where all this is written. */
    sources: string[];
}

/** Lock services as they come, and clocks worth knowing. */
export interface Presets {
    /** The systems that can be checked, and `redis`, `postgres-advisory` and `s3`. */
    systems: Preset[];
    /** From the best to the worst. */
    clocks: Clock[];
}

/** A duration: text with its unit (`ns us ms s m h d`) as in `"30s"`, `"1m30s"` or `"1.5s"`; else whole microseconds. */
export type DurationValue = string | Whole;

/** A drift: text with its unit (`ppb`, `ppm`, `%`) as in `"500ppm"` or `"0.1%"`; else whole parts per billion. */
export type DriftValue = string | Whole;

/** A count: a whole number, or its digits as text. */
export type CountValue = string | Whole;

/** Yes or no. */
export type FlagValue = boolean | "true" | "false";

/** What goes with every system, for the plan. */
export interface ForThePlan {
    /** ε, the drift of both clocks together; without it there is no plan. */
    drift?: DriftValue | null | undefined;
    /** d, the worst round trip of an acquire or renew call; 0 if left out. */
    rtt?: DurationValue | undefined;
}

/**
 * The configuration of each system under the system's own names of its keys. What is left out has the system's default;
 * a key without one takes `null` too, as the presets have it. What lies between two microseconds goes down for the
 * lease (the first key) and up for all else.
 */
export interface Configurations {
    /** The Redlock algorithm on independent Redis nodes. */
    redlock: {
        /** The time to live of the keys; required. */
        ttl: DurationValue;
        /** `5` if left out. */
        nodes?: CountValue | undefined;
        /** What acquiring took; `"0s"` if left out. */
        elapsed?: DurationValue | undefined;
        /** All nodes if left out. */
        granted?: CountValue | null | undefined;
        /** The part of the TTL that is allowed for drift; `"1%"` if left out. */
        drift_factor?: DriftValue | undefined;
        /** What is allowed for drift whatever the TTL; `"2ms"` if left out. */
        drift_fixed?: DurationValue | undefined;
    };
    /** Redisson's `RLock` and `RFencedLock`. */
    redisson: {
        /** The watchdog's timeout; `"30s"` if left out. */
        ttl?: DurationValue | undefined;
        /** Ends the lock without renewal; none if left out. */
        lease_time?: DurationValue | null | undefined;
        /** Whether it is an `RFencedLock`; `false` if left out. */
        fenced?: FlagValue | undefined;
    };
    /** Leases of etcd. */
    etcd: {
        /** `"60s"` if left out. */
        ttl?: DurationValue | undefined;
        /** The server's; `"1s"` if left out. */
        election_timeout?: DurationValue | undefined;
        /** The server's; `"100ms"` if left out. */
        heartbeat_interval?: DurationValue | undefined;
    };
    /** Sessions of ZooKeeper. */
    zookeeper: {
        /** `"30s"` if left out. */
        session_timeout?: DurationValue | undefined;
        /** The server's; `"2s"` if left out. */
        tick?: DurationValue | undefined;
    };
    /** Google's Chubby, as published. */
    chubby: {
        /** `"12s"` if left out. */
        lease?: DurationValue | undefined;
        /** `"45s"` if left out. */
        grace?: DurationValue | undefined;
    };
    /** The leader key of Patroni. */
    patroni: {
        /** `"30s"` if left out. */
        ttl?: DurationValue | undefined;
        /** `"10s"` if left out. */
        loop_wait?: DurationValue | undefined;
        /** `"10s"` if left out. */
        retry_timeout?: DurationValue | undefined;
        /** Of the watchdog; the text `"-1"` is half the TTL; `"5s"` if left out. */
        safety_margin?: DurationValue | undefined;
    };
    /** Leader election of Kubernetes' client-go. */
    kubernetes: {
        /** `"15s"` if left out. */
        lease_duration?: DurationValue | undefined;
        /** `"10s"` if left out. */
        renew_deadline?: DurationValue | undefined;
        /** `"2s"` if left out. */
        retry_period?: DurationValue | undefined;
    };
    /** Sessions of Consul. */
    consul: {
        /** `"15s"` if left out. */
        ttl?: DurationValue | undefined;
        /** `"15s"` if left out. */
        lock_delay?: DurationValue | undefined;
    };
    /** The DynamoDB lock client of AWS Labs. */
    dynamodb: {
        /** `"20s"` if left out. */
        lease_duration?: DurationValue | undefined;
        /** `"5s"` if left out. */
        heartbeat?: DurationValue | undefined;
        /** After how long without a heartbeat the session monitor calls back; none if left out. */
        safe_time?: DurationValue | null | undefined;
    };
    /** ShedLock for scheduled tasks. */
    shedlock: {
        /** Required. */
        lock_at_most_for: DurationValue;
        /** `"0s"` if left out. */
        lock_at_least_for?: DurationValue | undefined;
        /** How far the nodes' wall clocks are apart; `"0s"` if left out. */
        clock_skew?: DurationValue | undefined;
        /** Whether the database's clock is used; `false` if left out. */
        db_time?: FlagValue | undefined;
    };
    /** Leases of Azure's blobs. */
    "azure-blob": {
        /** A duration or `"infinite"`; `"60s"` if left out. */
        lease?: DurationValue | undefined;
    };
    /** Locks of Hazelcast's CP subsystem. */
    hazelcast: {
        /** `"300s"` if left out. */
        session_ttl?: DurationValue | undefined;
        /** `"5s"` if left out. */
        heartbeat?: DurationValue | undefined;
    };
}

/** A rule that a configuration breaks, or a warning that belongs to it. */
export interface Finding {
    /** The rule's name, unique within its system. */
    rule: string;
    /** `"error"`: refused, changed or not safe; `"warning"`: it works, and somebody will be surprised. */
    severity: "error" | "warning";
    /** What is wrong with which values, and what to do. */
    message: string;
}

/** A configuration held against its system's own rules. */
export interface Check {
    /** Whose configuration it is. */
    system: System;
    /** Whether no finding is an error. */
    ok: boolean;
    /** In the order of the rules. */
    findings: Finding[];
    /** The plan for the system's lease; `null` without a `drift` and where the lease has none. It never affects `ok`. */
    plan: Plan | null;
}

/** What is thrown for an input that is wrong. */
export interface InputError extends Error {
    /** Short and stable, for programs. */
    code:
        | "missing"
        | "not_a_drift"
        | "not_a_duration"
        | "not_a_flag"
        | "not_a_start"
        | "not_a_word"
        | "not_an_integer"
        | "not_an_object"
        | "not_text"
        | "out_of_range"
        | "unknown_field"
        | "unknown_system";
    /** The name of the field, or of the system's key; `"input"`, `"values"` or `"system"` where the argument itself is wrong. */
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

/**
 * The least TTL that leaves room for the work, the pause and the renewals that may be lost.
 * @throws {InputError}
 */
export function size(input: SizeInput): Size | NoSize;

/**
 * What is left of a Redlock.
 * @throws {InputError}
 */
export function redlock(input: RedlockInput): Redlock;

/**
 * How many of a number of nodes are needed, and how many may be missing.
 * @throws {InputError}
 */
export function quorum(input: QuorumInput): Quorum;

/** Lock services as they come, and clocks worth knowing, each with its sources. */
export function presets(): Presets;

/**
 * Holds a lock service's configuration against its own rules.
 * @throws {InputError}
 */
export function check<S extends System>(system: S, values?: Configurations[S] & ForThePlan): Check;

/**
 * A duration as it is typed, such as `"1m30s"`, in whole microseconds; what lies between two of them goes down for what
 * a holder has (a TTL) and up for all else. `field` is what an error names.
 * @throws {InputError}
 */
export function parseDuration(text: string, round: "down" | "up", field?: string): Whole;

/**
 * A drift as it is typed, such as `"500ppm"`, in whole parts per billion, rounded up; of a list, one a clock, what they
 * add up to. `field` is what an error names.
 * @throws {InputError}
 */
export function parseDrift(text: string | readonly string[], field?: string): Whole;

/** Time-outs one after the other, and something that moves meanwhile. */
export interface ChainInput {
    /** Each of them, in µs. */
    parts_us: Whole[];
    /** How fast it moves, in mm/s; 0 if left out. */
    speed_mm_s?: Whole | undefined;
}

/** What they come to. */
export interface Chain {
    /** Their sum, in µs. */
    total_us: Whole;
    /** ⌈sum · speed⌉, in µm. */
    travel_um: Whole;
}

/**
 * What a chain of time-outs adds up to, and how far something travels meanwhile.
 * @throws {InputError}
 */
export function chain(input: ChainInput): Chain;

/** One of those who want the lease, and what it writes under it. */
export interface StoryWorker {
    /** 1 to 16 printable ASCII characters, as every holder's. */
    name: string;
    /** The texts that it writes to the resource, one after the other. */
    job: string[];
    /** When it first asks for the lease, in µs of the story; 0 if left out. */
    starts_us?: Whole | undefined;
    /** From its last check of the lease until a write leaves, in µs; 0 if left out. */
    work_us?: Whole | undefined;
    /** Between a write's answer and the next write, in µs; 0 if left out. */
    rest_us?: Whole | undefined;
    /** What each of its messages takes, one way, in µs; 0 if left out. */
    delay_us?: Whole | undefined;
    /** How far its clock really is off, in ppb, slow below zero; at most half either way, and 0 if left out. */
    drift_ppb?: Whole | undefined;
    /** Whether it gives its job up where a write is refused, instead of trying again under its next lease. */
    gives_up?: boolean | undefined;
}

/** A write of somebody outside of the story, under a stamp from elsewhere. */
export interface StoryWrite {
    /** When it arrives, in µs of the story; 0 if left out. */
    at_us?: Whole | undefined;
    /** Whose it is. */
    holder: string;
    /** From 1. */
    token: Whole;
    /** 0 if left out. */
    epoch?: Whole | undefined;
    /** What it writes; nothing if left out. */
    text?: string | undefined;
}

/** Something that happens to a worker, to the coordinator or to the resource. */
export interface Happening {
    /**
     * To a worker: `freeze`, `hang`, `crash`, `hold` (its write stays in the network), `partition`. To the coordinator:
     * `failover` (the replica lacks the last grant), `restore`. To the resource: `power-cut`. To both: `epoch`.
     */
    what: "freeze" | "hang" | "crash" | "hold" | "partition" | "power-cut" | "failover" | "restore" | "epoch";
    /** Which worker it happens to. */
    who?: string | undefined;
    /** When, in µs of the story; either this or `write`. */
    at_us?: Whole | undefined;
    /** As its write of this number, from 1, is about to leave: its last check is behind it. */
    write?: Whole | undefined;
    /** How long it lasts, in µs; 0 if left out. */
    for_us?: Whole | undefined;
    /** Of a partition: how many of the coordinator's nodes the worker still reaches. */
    nodes?: Whole | undefined;
    /** Of a restore: the last token that the backup knows. Of an epoch: the floor of its tokens. */
    token?: Whole | undefined;
}

/** What a story is made of. */
export interface Scenario {
    /** T of the lease that the workers ask for, in µs; not needed where it never expires. */
    ttl_us?: Whole | undefined;
    /** ε that the workers plan with. */
    drift_ppb: Whole;
    /** d that the workers plan with, in µs; above 0. */
    rtt_us: Whole;
    /** How often who is refused asks again, in µs; as a heartbeat if left out. */
    poll_us?: Whole | undefined;
    /** Where the story ends, in µs; a day at most. */
    until_us: Whole;
    /** Whether the resource heeds its fence; true if left out. */
    fencing?: boolean | undefined;
    /** False for a lock that never expires; true if left out. */
    expires?: boolean | undefined;
    /** Whether one stamp may write more than once; `"at-least"` if left out. */
    policy?: "at-least" | "greater" | undefined;
    /** The first token that the coordinator mints; 1 if left out. */
    first_token?: Whole | undefined;
    /** The highest token that the resource has seen before the story; 0 if left out. */
    floor?: Whole | undefined;
    /** How many nodes the coordinator has, of which a quorum must answer; 1 if left out. */
    nodes?: Whole | undefined;
    /** How long a worker may go without progress before its lease is no longer renewed; for ever if left out. */
    progress_us?: Whole | undefined;
    /** What the resource takes to store a raise, in µs; 0 if left out. */
    store_us?: Whole | undefined;
    /** How far the coordinator's clock really is off, in ppb, slow below zero; 0 if left out. */
    coordinator_drift_ppb?: Whole | undefined;
    /** Those who want the lease; nobody if left out. */
    workers?: StoryWorker[] | undefined;
    /** Writes from outside of the story. */
    writes?: StoryWrite[] | undefined;
    /** What happens. */
    happenings?: Happening[] | undefined;
}

/** What kind of an event it is. */
export type StoryEventKind =
    | "asks"
    | "granted"
    | "refused"
    | "lost"
    | "renews"
    | "renewed"
    | "raises"
    | "raised"
    | "begins"
    | "writes"
    | "landed"
    | "corrupted"
    | "bounced"
    | "cancelled"
    | "finished"
    | "releases"
    | "released"
    | "expired"
    | "freezes"
    | "wakes"
    | "hangs"
    | "dies"
    | "held"
    | "parts"
    | "heals"
    | "power-cut"
    | "boots"
    | "fails-over"
    | "restored"
    | "epoch"
    | "broken-off";

/** Where a fence stands. */
export interface StoryFence {
    /** The epoch in force. */
    epoch: Whole;
    /** The highest token accepted in it, or the floor before the first. */
    token: Whole;
    /** Who raised it; null before the first. */
    holder: string | null;
}

/** One thing that happens in a story. */
export interface StoryEvent {
    /** When, in µs of the story. */
    at_us: Whole;
    /** A worker's name, `"coordinator"`, `"resource"` or `"operator"`. */
    who: string;
    /** What it is. */
    kind: StoryEventKind;
    /** The same in words. A refusal has the comparison in it: `33 < 34`. */
    words: string;
    /** The epoch of the stamp that it is about; null where it is about none. */
    epoch: Whole | null;
    /** The token of that stamp. */
    token: Whole | null;
    /** What is written. */
    text: string | null;
    /** Where the fence stands that refused it, or that was raised. */
    by: StoryFence | null;
}

/** The lease as the coordinator has it. */
export interface StoryLease {
    /** The epoch of its stamp. */
    epoch: Whole;
    /** The token of its stamp. */
    token: Whole;
    /** Who holds it. */
    holder: string;
    /** When it ends if it is not renewed, in µs of the story. */
    ends_us: Whole;
}

/** A worker as it sees itself. */
export interface StoryWorkerState {
    /** Its name. */
    name: string;
    /** What its process is doing. */
    doing: "waiting" | "holding" | "writing" | "finished" | "frozen" | "hung" | "dead";
    /** The epoch of the lease that it counts on; null without one. */
    epoch: Whole | null;
    /** The token of that lease. */
    token: Whole | null;
    /** When its window ends by its own clock, in µs of the story. */
    window_ends_us: Whole | null;
    /** How much of its job is done. */
    written: Whole;
    /** How much there is. */
    of: Whole;
}

/** A line of the resource's ledger. */
export interface StoryEntry {
    /** When, in µs of the story. */
    at_us: Whole;
    /** Whose write it was. */
    who: string;
    /** The epoch that it carried. */
    epoch: Whole;
    /** The token that it carried. */
    token: Whole;
    /** What was written. */
    text: string;
    /** `corrupted`: it took effect although a fence would have refused it. */
    verdict: "landed" | "corrupted" | "bounced";
    /** Why, where it was refused or should have been: `33 < 34: stale`. */
    words: string;
}

/** A message that is under way. */
export interface StoryMessage {
    /** Who sent it. */
    from: string;
    /** Who will have it. */
    to: string;
    /** What it is. */
    kind: string;
    /** When it left, in µs of the story. */
    sent_us: Whole;
    /** When it arrives. */
    arrives_us: Whole;
    /** The token that it carries; null without one. */
    token: Whole | null;
}

/** How everything stands at an instant of a story. */
export interface StoryState {
    /** The present, in µs of the story. */
    now_us: Whole;
    /** The story's end. */
    until_us: Whole;
    /** Whether nothing happens any more. */
    over: boolean;
    /** Whether the resource heeds its fence. */
    fencing: boolean;
    /** Whether the resource has power. */
    powered: boolean;
    /** How many writes took effect that should not have. */
    corrupted: Whole;
    /** How many writes were refused. */
    bounced: Whole;
    /** The lease; null while nobody has it. */
    lease: StoryLease | null;
    /** Where the resource's fence stands; it stands there unheeded too. */
    fence: StoryFence;
    /** In the order of the scenario. */
    workers: StoryWorkerState[];
    /** In the order in which the writes arrived. */
    ledger: StoryEntry[];
    /** What is under way. */
    messages: StoryMessage[];
}

/**
 * Core's own holders, grantor and fence in simulated time, told event by event. The same scenario tells the same story,
 * to the microsecond.
 */
export class Story {
    /** @throws {InputError} */
    constructor(scenario: Scenario);
    /** The next event, with time passing up to it; `undefined` where there is none any more. */
    step(): StoryEvent | undefined;
    /** Lets time pass up to that instant, and returns what happens until then and was not told yet. */
    runTo(us: Whole): StoryEvent[];
    /** Back to the beginning. */
    rewind(): void;
    /** How everything stands at present. */
    state(): StoryState;
    /** Gives its memory back. */
    free(): void;
}
