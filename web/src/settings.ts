// What the form holds, as typed; and the same in the page's address, so that a configuration can be shared.

export interface Settings {
  ttl: string;
  holder: string;
  coordinator: string;
  rtt: string;
  start: "send" | "grant";
  work: string;
}

export const DEFAULTS: Readonly<Settings> = {
  ttl: "10s",
  holder: "500ppm",
  coordinator: "500ppm",
  rtt: "5ms",
  start: "send",
  work: "200ms",
};

export const TEXTS = ["ttl", "holder", "coordinator", "rtt", "work"] as const;

/** The settings of an address such as `#ttl=10s&start=grant`; what it does not say, or says wrongly, has its default. */
export function fromHash(hash: string): Settings {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const settings: Settings = { ...DEFAULTS };
  for (const name of TEXTS) settings[name] = said.get(name) ?? settings[name];
  const start = said.get("start");
  if (start === "send" || start === "grant") settings.start = start;
  return settings;
}

export function toHash(settings: Settings): string {
  const { ttl, holder, coordinator, rtt, start, work } = settings;
  return `#${new URLSearchParams({ ttl, holder, coordinator, rtt, start, work })}`;
}

/** The command that answers the same question. Only for settings that can be read. */
export function command({ ttl, holder, coordinator, rtt, start, work }: Settings): string {
  const text = (typed: string) => typed.replace(/\s+/g, "").replace(/[µμ]/g, "u");
  const time = (typed: string) => text(typed).replace(/^0+$/, "0s");
  const drift = (typed: string) => text(typed).replace(/^[\d.]+$/, "$&ppm");
  const words = ["fencegate plan", `--ttl ${time(ttl)}`, `--drift ${drift(holder)}`, `--drift ${drift(coordinator)}`];
  if (rtt.trim()) words.push(`--rtt ${time(rtt)}`);
  if (start === "grant") words.push("--start grant");
  if (work.trim()) words.push(`--work ${time(work)}`);
  return words.join(" ");
}
