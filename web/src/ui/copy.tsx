// A block of text that can be copied, and files that can be saved.

import { useState } from "preact/hooks";
import { pngFile, svgFile } from "./export";
import { say } from "./say";

export function Copy({ title, text, id }: { title: string; text: string; id: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Where the browser has no clipboard for this page, what is marked can be copied by hand.
      const block = document.getElementById(id);
      if (block) getSelection()?.selectAllChildren(block);
      say(`${title}: marked, to be copied by hand`);
      return;
    }
    setCopied(true);
    say(`${title}: copied`);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <div class="copy">
      <div class="copy-head">
        <h3>{title}</h3>
        <button type="button" class="small" onClick={copy} aria-label={`Copy: ${title}`}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <pre tabIndex={0} aria-label={title}>
        <code id={id}>{text}</code>
      </pre>
    </div>
  );
}

interface ExportProps {
  name: string;
  json: () => string;
  /** Where the drawing is, if there is one. */
  within?: { current: Element | null };
  svg?: string;
}

/** Buttons that save what is shown. */
export function Exports({ name, json, within, svg }: ExportProps) {
  const drawing = () => within?.current?.querySelector<SVGSVGElement>(svg ?? "svg") ?? undefined;
  const one = (kind: string, file: () => Blob | undefined | Promise<Blob | undefined>) => (
    <button
      type="button"
      class="small"
      onClick={async () => {
        const made = await file();
        if (made) save(`${name}.${kind.toLowerCase()}`, made);
      }}
    >
      {kind}
    </button>
  );
  return (
    <div class="actions" role="group" aria-label="Save as">
      {one("JSON", () => new Blob([json()], { type: "application/json" }))}
      {within && one("SVG", () => drawing() && svgFile(drawing() as SVGSVGElement))}
      {within && one("PNG", () => drawing() && pngFile(drawing() as SVGSVGElement))}
    </div>
  );
}

function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** What a number of the module's is in JSON: an integer in full, whatever its size. */
export function toJson(value: unknown): string {
  const marked = JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? `\u0001${part}` : part), 2);
  return marked.replace(/"\\u0001(\d+)"/g, "$1");
}
