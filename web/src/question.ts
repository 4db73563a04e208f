// From what was typed to what the module answers: a plan, or sentences at the fields that are to blame.

import { plan, type InputError, type Plan, type Start } from "fencegate";
import { readDrift, readDuration, type Reading } from "./quantity";
import type { Settings } from "./settings";

/** Where a sentence can stand: an input, or the pair of drifts that count together. */
export type Place = "ttl" | "holder" | "coordinator" | "drift" | "rtt" | "work";

export interface Asked {
  input: { ttl_us: bigint; rtt_us: bigint; start: Start; work_us: bigint };
  plan: Plan;
}

export type Problems = Partial<Record<Place, string>>;

const PLACES: Record<string, Place> = { ttl_us: "ttl", drift_ppb: "drift", rtt_us: "rtt", work_us: "work" };

/** Asks the module; T rounds down, what the holder spends rounds up. What may be left out counts as zero. */
export function ask(settings: Settings): Asked | Problems {
  const problems: Problems = {};
  const take = (place: Place, reading: Reading): bigint => {
    if ("value" in reading) return reading.value;
    problems[place] = reading.problem;
    return 0n;
  };
  const optional = (text: string): Reading => (text.trim() ? readDuration(text, "up") : { value: 0n });

  const ttl_us = take("ttl", readDuration(settings.ttl, "down"));
  const drift_ppb = take("holder", readDrift(settings.holder)) + take("coordinator", readDrift(settings.coordinator));
  const rtt_us = take("rtt", optional(settings.rtt));
  const work_us = take("work", optional(settings.work));
  if (Object.keys(problems).length) return problems;

  const { start } = settings;
  try {
    return { input: { ttl_us, rtt_us, start, work_us }, plan: plan({ ttl_us, drift_ppb, rtt_us, start, work_us }) };
  } catch (error) {
    if (!isInputError(error)) throw error;
    return { [PLACES[error.field] ?? "ttl"]: sentence(error) };
  }
}

function isInputError(error: unknown): error is InputError {
  return error instanceof Error && "code" in error && "field" in error;
}

/** The module's own words. It puts the field's name in front, which the place on the page says already. */
function sentence({ message, field }: InputError): string {
  const words = message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
