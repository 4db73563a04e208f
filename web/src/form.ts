// The form: reads what was typed, writes what an address says, and puts sentences at the fields.

import type { Place, Problems } from "./question";
import { TEXTS, type Settings } from "./settings";
import { element } from "./dom";

const form = element("settings", HTMLFormElement);

/** Which inputs a sentence marks as wrong. */
const INPUTS: Record<Place, readonly (typeof TEXTS)[number][]> = {
  ttl: ["ttl"],
  holder: ["holder"],
  coordinator: ["coordinator"],
  drift: ["holder", "coordinator"],
  rtt: ["rtt"],
  work: ["work"],
};

export function onChange(listener: () => void): void {
  form.addEventListener("input", listener);
  form.addEventListener("submit", (event) => event.preventDefault());
}

export function readForm(): Settings {
  const data = new FormData(form);
  const text = (name: string) => String(data.get(name) ?? "");
  return {
    ttl: text("ttl"),
    holder: text("holder"),
    coordinator: text("coordinator"),
    rtt: text("rtt"),
    start: text("start") === "grant" ? "grant" : "send",
    work: text("work"),
  };
}

export function writeForm(settings: Settings): void {
  for (const name of TEXTS) element(name, HTMLInputElement).value = settings[name];
  for (const radio of form.querySelectorAll<HTMLInputElement>("input[name=start]")) {
    radio.checked = radio.value === settings.start;
  }
}

export function showProblems(problems: Problems): void {
  const wrong = new Set<string>();
  for (const [place, inputs] of Object.entries(INPUTS) as [Place, readonly string[]][]) {
    element(`${place}-error`, HTMLElement).textContent = problems[place] ?? "";
    if (problems[place]) for (const name of inputs) wrong.add(name);
  }
  for (const name of TEXTS) element(name, HTMLInputElement).setAttribute("aria-invalid", String(wrong.has(name)));
}
