// The figures in a table, exact. Each is the module's.

import type { Plan } from "fencegate";
import type { ComponentChildren } from "preact";
import { big } from "../model/module";
import { duration, exactly, grouped } from "../model/format";
import type { Answer } from "../model/question";

type Field = Exclude<keyof Plan, "safe" | "sustainable">;

const FIGURES: readonly [field: Field, name: string, concept: string, meaning: string][] = [
  [
    "window_us",
    "Window",
    "window",
    "After the start of its timer the holder may rely on the lease for this long. At this very microsecond it is over.",
  ],
  ["margin_us", "Margin", "drift", "By how much the window is shorter than the TTL."],
  [
    "work_deadline_us",
    "Last moment to begin work",
    "work",
    "New work begins strictly earlier than this after the start of the timer.",
  ],
  ["heartbeat_us", "Heartbeat", "heartbeat", "The time between renewals."],
  ["renewals_in_window", "Renewals in the window", "heartbeat", "How many are answered inside it."],
  [
    "cancel_after_us",
    "Cancel after",
    "cancel",
    "Work in hand stops once more than this has passed since the last answer, and at the end of the window at the latest.",
  ],
  ["misses_before_cancel", "Misses before that", "cancel", "Renewals in a row that may go unanswered."],
  ["stall_tolerance_us", "Stall tolerance", "window", "A shorter stall, begun just before the first renewal, keeps the lease."],
  [
    "takeover_us",
    "Takeover",
    "takeover",
    "The longest wait of the next holder, where this one dies just after sending a renewal.",
  ],
  ["renewals_per_hour", "Renewals an hour", "heartbeat", "What keeping the lease costs the coordinator."],
];

/** What says nothing of a lease that nobody renews. */
const RENEWED: readonly Field[] = [
  "heartbeat_us",
  "renewals_in_window",
  "cancel_after_us",
  "misses_before_cancel",
  "stall_tolerance_us",
  "renewals_per_hour",
];

/** A table of figures; `title` is the element that names it. */
export function Table({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <table role="table" aria-labelledby={title}>
      <thead role="rowgroup">
        <tr role="row">
          {["Figure", "Value", "What it means"].map((head) => (
            <th key={head} scope="col" role="columnheader">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">{children}</tbody>
    </table>
  );
}

export function Figures({ answer }: { answer: Answer }) {
  return (
    <Table title="figures-title">
      {answer.sized && (
        <Row
          id="ttl_us"
          name="Least TTL"
          concept="lease"
          meaning="The shortest lease with room for the work, the pause and the lost renewals."
          value={answer.ttl}
        />
      )}
      {FIGURES.filter(([field]) => answer.renews || !RENEWED.includes(field)).map(([field, name, concept, meaning]) => (
          <Row
            key={field}
            id={field}
            name={name}
            concept={concept}
            meaning={meaning}
            value={big(answer.plan[field])}
          />
        ))}
    </Table>
  );
}

interface RowProps {
  /** The module's own name of it: what ends in `_us` is a time. */
  id: string;
  name: string;
  concept: string;
  meaning: string;
  value: bigint | boolean;
}

/** The roles are said since a narrow page lays rows out as blocks. */
export function Row({ id, name, concept, meaning, value }: RowProps) {
  const time = typeof value === "bigint" && id.endsWith("_us");
  const words = typeof value === "boolean" ? (value ? "yes" : "no") : time ? duration(value) : grouped(value);
  return (
    <tr id={id} role="row">
      <th scope="row" role="rowheader">
        <span class={`dot ${concept}`} aria-hidden="true" /> {name}
      </th>
      <td class="value" role="cell">
        <data value={value.toString()}>{words}</data>
        {time && <span class="exact">{exactly(value)}</span>}
      </td>
      <td class="meaning" role="cell">
        {meaning}
      </td>
    </tr>
  );
}
