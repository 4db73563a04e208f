// The corrected configuration: the fewest keys changed with which the module finds no error.

import { check, type Check, type Preset, type System } from "fencegate";
import { attempt, compact, Problem } from "../model/module";
import { TIMES } from "../ui/field";

export type Values = Record<string, string>;

/** The value that holds for a key: what was typed, else the default. */
export const effective = (preset: Preset, values: Values, key: string): string =>
  values[key] ?? String(preset.defaults[key] ?? "");

export interface Correction {
  values: Values;
  changed: string[];
}

/** Counts and factors: a zero there is no zero seconds. */
const NO_TIMES = ["nodes", "granted", "drift_factor"];

/** What was observed when the lock was taken: it is as it was. */
const OBSERVED = ["granted", "elapsed"];

/** What the page hands to `check`: what is typed, without the keys that are left empty. A bare zero of time needs no unit. */
export function given(values: Values, drift: string, rtt: string): Values {
  const entries = Object.entries({ ...values, drift, rtt }).map(([key, value]) => {
    const typed = compact(value);
    return [key, NO_TIMES.includes(key) ? typed : typed.replace(/^0+$/, key === "drift" ? "0ppm" : "0s")];
  });
  return Object.fromEntries(entries.filter(([, value]) => value));
}

export function checked(system: System, values: Values): Check | Problem {
  // The declarations know each system's keys; these are the preset's own names.
  return attempt(() => (check as (system: System, values: Values) => Check)(system, values));
}

/**
 * Sets keys back to their defaults, as few as possible, until every rule holds; where that is not enough, a longer lease.
 * No configuration corrects what was observed.
 */
export function correct(preset: Preset, values: Values): Correction | undefined {
  const system = preset.system as System;
  const holds = (tried: Values) => {
    const found = checked(system, tried);
    return !(found instanceof Problem) && found.ok;
  };
  if (holds(values)) return { values, changed: [] };
  const keys = Object.keys(preset.defaults).filter((key) => key in values && !OBSERVED.includes(key));
  const subsets = Array.from({ length: 2 ** keys.length - 1 }, (_, at) => keys.filter((_key, bit) => (at + 1) & (1 << bit)));
  subsets.sort((a, b) => a.length - b.length);
  const without = (changed: string[]) => Object.fromEntries(Object.entries(values).filter(([key]) => !changed.includes(key)));
  for (const changed of subsets) if (holds(without(changed))) return { values: without(changed), changed };
  const [lease] = Object.keys(preset.defaults);
  if (!lease) return undefined;
  for (const time of TIMES) {
    if (holds({ ...values, [lease]: time })) return { values: { ...values, [lease]: time }, changed: [lease] };
  }
  return undefined;
}
