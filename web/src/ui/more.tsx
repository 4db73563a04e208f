// What most visitors do not need, folded away. It opens where something in it is wrong, and never closes by itself.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export function More({ summary, wanted, children }: { summary: string; wanted: boolean; children: ComponentChildren }) {
  const [open, setOpen] = useState(wanted);
  useEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  return (
    <details class="more" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
