// The answer in words and figures. Every number is the module's.

import { duration, exactly, grouped } from "./format";
import { element, make } from "./dom";
import type { Asked } from "./question";

interface Figure {
  field: "window_us" | "margin_us" | "heartbeat_us" | "cancel_after_us" | "work_deadline_us" | "takeover_us";
  name: string;
  meaning: (asked: Asked) => string;
}

const FIGURES: Figure[] = [
  {
    field: "window_us",
    name: "Window",
    meaning: () => "After the start of its timer the holder may rely on the lease for this long. At this very microsecond it is over.",
  },
  {
    field: "margin_us",
    name: "Margin",
    meaning: ({ input }) =>
      input.start === "grant"
        ? "By how much the window is shorter than the TTL: for drift, and for the round trip, since the timer starts at the reply."
        : "By how much the window is shorter than the TTL: for drift. Latency costs nothing, since the timer starts before sending.",
  },
  {
    field: "heartbeat_us",
    name: "Heartbeat",
    meaning: ({ plan }) => {
      const count = BigInt(plan.renewals_in_window);
      const fit = count === 1n ? "one renewal is" : `${count === 0n ? "no" : grouped(count)} renewals are`;
      return `The time between renewals; ${fit} answered within the window.`;
    },
  },
  {
    field: "cancel_after_us",
    name: "Cancel after",
    meaning: () => "Work in hand stops once more than this has passed since the last answer, and at the end of the window at the latest.",
  },
  {
    field: "work_deadline_us",
    name: "Last moment to begin work",
    meaning: () => "New work must begin strictly earlier than this after the start of the timer.",
  },
  {
    field: "takeover_us",
    name: "Takeover",
    meaning: () => "The longest the next holder waits if this one dies just after sending a renewal.",
  },
];

export function showAnswer(asked: Asked): void {
  const { plan, input } = asked;
  const window = duration(BigInt(plan.window_us));
  for (const id of ["headline", "strip"]) element(id, HTMLElement).textContent = window;
  const since = input.start === "send" ? "just before the request leaves" : "when the reply arrives";
  const said = plan.safe ? `counted from ${since}. ${remainder(asked)}` : remainder(asked);
  element("sentence", HTMLElement).textContent = said;
  element("warnings", HTMLElement).replaceChildren(...warnings(asked).map((text) => make("li", {}, text)));
  element("rows", HTMLElement).replaceChildren(...FIGURES.map((figure) => row(figure, asked)));
}

function remainder({ plan, input }: Asked): string {
  const [margin, ttl] = [duration(BigInt(plan.margin_us)), duration(input.ttl_us)];
  if (BigInt(plan.margin_us) === 0n) return `That is the whole TTL: nothing has to be kept back.`;
  return plan.safe ? `The other ${margin} of the ${ttl} are margin.` : `Nothing is left: the margin of ${margin} takes all of the ${ttl}.`;
}

/** One row of the table. The roles are said since a narrow page lays rows out as blocks. */
function row({ field, name, meaning }: Figure, asked: Asked): HTMLTableRowElement {
  const us = BigInt(asked.plan[field]);
  return make(
    "tr",
    { id: field, role: "row" },
    make("th", { scope: "row", role: "rowheader" }, name),
    make(
      "td",
      { className: "time", role: "cell" },
      make("data", { value: us.toString() }, duration(us)),
      make("span", { className: "exact" }, exactly(us)),
    ),
    make("td", { className: "meaning", role: "cell" }, meaning(asked)),
  );
}

/** What the module answers with no, in words. */
function warnings({ plan, input }: Asked): string[] {
  const said: string[] = [];
  if (!plan.safe) return ["There is no moment at which this lease may be relied on. A longer TTL is needed, or a smaller margin."];
  if (BigInt(plan.work_deadline_us) === 0n && input.work_us > 0n) {
    said.push("The work is as long as the window: none may ever begin. A longer TTL or shorter work is needed.");
  }
  if (!plan.sustainable) {
    said.push("Every answer comes after cancellation: the round trip takes a third of the TTL or more.");
  }
  return said;
}
