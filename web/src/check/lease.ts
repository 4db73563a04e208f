// What the plan beside a check is worth: it is that of the TTL as asked for, and a finding may say that the system makes
// another lease of it.

import { plan, quorum, redlock, type Check, type Finding, type Preset, type Quorum, type Redlock, type RedlockInput } from "fencegate";
import { attempt, big, Problem, readCount, readDrift, readDuration } from "../model/module";
import { duration, SECOND, whole } from "../model/format";
import type { CheckState } from "../state/state";
import { effective, type Values } from "./correct";

/** The rules that speak of another lease than the one asked for, or of one that is not kept up. */
const OTHER_LEASE: Partial<Record<string, readonly string[]>> = {
  redisson: ["renewal"],
  etcd: ["min_ttl", "max_ttl", "whole_seconds"],
  zookeeper: ["clamped"],
  chubby: ["lease"],
  patroni: ["minimum"],
  kubernetes: ["whole_seconds"],
  consul: ["ttl"],
  "azure-blob": ["lease"],
};

export interface Told {
  name: string;
  value: string;
  /** What is said against it, beside it. */
  but?: string | undefined;
}

const sentences = (findings: readonly Finding[]) => findings.map(({ message }) => `${message}.`).join(" ") || undefined;

/** The window, or what stands for it. */
export function windowOf(preset: Preset, values: Values, found: Check, typed: CheckState): Told {
  if (preset.system === "redlock") return validity(preset, values);
  const but = otherLease(preset, values, found);
  const name = but ? "Window for the TTL as asked for" : "Window";
  return { name, value: found.plan ? duration(big(found.plan.window_us)) : noPlan(preset, values, typed), but };
}

export function takeoverOf(preset: Preset, values: Values, found: Check, typed: CheckState): Told {
  const another = sentences(found.findings.filter(({ rule }) => preset.system === "consul" && rule === "takeover"));
  const but = another ?? otherLease(preset, values, found);
  const name = but ? "Takeover for the TTL as asked for" : "Takeover at most";
  return { name, value: found.plan ? duration(big(found.plan.takeover_us)) : noPlan(preset, values, typed), but: another };
}

function otherLease(preset: Preset, values: Values, found: Check): string | undefined {
  const rules = OTHER_LEASE[preset.system] ?? [];
  const said = sentences(found.findings.filter(({ rule }) => rules.includes(rule)));
  if (said || preset.system !== "kubernetes") return said;
  const lease = readDuration(effective(preset, values, "lease_duration"), "down", "lease_duration");
  if (lease instanceof Problem || duration(lease) === duration(whole(lease, SECOND))) return undefined;
  return `The record keeps whole seconds, and challengers wait ${duration(whole(lease, SECOND))}.`;
}

/** What is left of a Redlock, and how many of its nodes may be missing. */
export function redlockOf(preset: Preset, values: Values): (Redlock & Quorum) | Problem {
  const time = (key: string, round: "down" | "up") => readDuration(effective(preset, values, key), round, key);
  const nodes = readCount(effective(preset, values, "nodes"), "nodes");
  const read: Record<keyof RedlockInput, bigint | Problem> = {
    ttl_us: time("ttl", "down"),
    elapsed_us: time("elapsed", "up"),
    nodes,
    granted: values["granted"] ? readCount(values["granted"], "granted") : nodes,
    drift_factor_ppb: readDrift(effective(preset, values, "drift_factor"), "drift_factor"),
    drift_fixed_us: time("drift_fixed", "up"),
  };
  // The check has taken the same values.
  return attempt(() => ({ ...redlock(read as RedlockInput), ...quorum({ nodes: read.nodes as bigint }) }));
}

/** What is left of it: it is its window. */
function validity(preset: Preset, values: Values): Told {
  const left = redlockOf(preset, values);
  if (left instanceof Problem) return { name: "Validity", value: left.words };
  return { name: "Validity", value: left.held ? duration(big(left.validity_us)) : "not held" };
}

/** Why there is no plan. */
function noPlan(preset: Preset, values: Values, { drift, rtt }: CheckState): string {
  if (!drift.trim()) return "needs a drift";
  const [lease = ""] = Object.keys(preset.defaults);
  const text = effective(preset, values, lease);
  if (text === "infinite") return "none: the lease has no end";
  const beat = ["loop_wait", "retry_period", "heartbeat"].find((key) => key in preset.defaults);
  if (beat && readDuration(effective(preset, values, beat), "up", beat) === 0n) return `none: ${beat} is zero`;
  const [ttl, ppb, trip] = [readDuration(text, "down", lease), readDrift(drift, "drift"), readDuration(rtt || "0s", "up", "rtt")];
  if (ttl instanceof Problem || ppb instanceof Problem || trip instanceof Problem) return "none";
  // Whatever refuses a plan refuses that of the fewest heartbeats.
  const planned = attempt(() => plan({ ttl_us: ttl, drift_ppb: ppb, rtt_us: trip, attempts: 2 }));
  return planned instanceof Problem ? `none: ${planned.words.charAt(0).toLowerCase()}${planned.words.slice(1, -1)}` : "none";
}

export interface Token {
  /** In one word, or two. */
  said: string;
  ordered: boolean;
  words: string;
}

/** The token with this configuration: an RLock of Redisson's has none. */
export function tokenOf(preset: Preset, values: Values): Token {
  if (!preset.token) return { said: "none", ordered: false, words: "There is none: a resource cannot tell the later of two holders." };
  const words = `${preset.token.charAt(0).toUpperCase()}${preset.token.slice(1)}`;
  if (preset.system === "redisson" && effective(preset, values, "fenced") !== "true")
    return { said: "none", ordered: false, words: `${words}: this is one.` };
  if (!preset.ordered)
    return { said: "without order", ordered: false, words: `${words}: it has no order, so that a fence cannot tell the later one.` };
  return { said: "ordered", ordered: true, words: `${words}.` };
}

/** Whether the lease is kept up: a lease time of Redisson's switches its watchdog off. */
export const renews = (preset: Preset, found: Check): boolean =>
  preset.renews && !(preset.system === "redisson" && found.findings.some(({ rule }) => rule === "renewal"));
