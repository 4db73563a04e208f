// That there is no answer, and why: at the field that is to blame, or here where the page does not show that field.

import type { Problems } from "../model/question";

interface Props {
  what: string;
  problems: Problems;
  /** The fields that are on the page. */
  fields: readonly string[];
  /** Whether there was an answer before. */
  last: boolean;
}

export function Stale({ what, problems, fields, last }: Props) {
  const marked = Object.keys(problems).some((field) => fields.includes(field));
  return (
    <p class="stale-note" id="stale-note">
      {marked ? `${what}: the marked field says why.` : `${what}. ${Object.values(problems).join(" ")}`}
      {last && " Below is the last one that there was."}
    </p>
  );
}
