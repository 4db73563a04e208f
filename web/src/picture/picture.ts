// The lease, the window and the takeover, to scale; and the last stretch again, larger, where the margin can be seen.

import type { Asked } from "../question";
import { duration } from "../format";
import { height, place, type Label } from "./labels";
import { scale, ticks, type Scale } from "./scale";
import { tell, type Mark, type Story } from "./story";
import { line, ruler, svg, text } from "./svg";

const BAR = 28;
const ROW = 19;
const INSET = 1;

interface Canvas {
  root: SVGSVGElement;
  width: number;
  measure: (words: string) => number;
}

export function drawPicture(host: HTMLElement, asked: Asked): void {
  const width = Math.max(host.clientWidth, 280);
  const label = "The lease, the holder's window and the takeover, drawn to scale. The table of figures says the same.";
  const root = svg("svg", { role: "img", "aria-label": label, width });
  const canvas: Canvas = { root, width, measure: ruler(host) };
  root.append(hatching());

  const story = tell(asked);
  const whole = scale(0n, story.takeover, INSET, width - INSET);
  let y = panel(canvas, story, whole, 0);
  const end = magnified(story, width);
  if (end) {
    const times = Number(story.takeover) / Number(end.to - end.from);
    root.append(lens(whole.x(end.from), width, y, y + 18));
    root.append(text("title", 0, y + 40, `The end, ${times < 10 ? times.toFixed(1) : Math.round(times)} times larger`));
    y = panel(canvas, story, end, y + 54);
  }
  root.setAttribute("height", String(y));
  root.setAttribute("viewBox", `0 0 ${width} ${y}`);
  host.replaceChildren(root);
}

/** The stretch from the end of the window to the takeover with some air, where it is too short to be seen in the whole. */
function magnified({ windowEnd, takeover }: Story, width: number): Scale | undefined {
  const span = takeover - windowEnd;
  if (span === 0n || windowEnd === 0n || span * 6n > takeover) return undefined;
  const from = windowEnd - span > 0n ? windowEnd - span : 0n;
  return scale(from, takeover + span / 8n, INSET, width - INSET);
}

/** Both rows and the axis below `top`; returns where it ends. */
function panel(canvas: Canvas, story: Story, at: Scale, top: number): number {
  let y = coordinatorRow(canvas, story, at, top);
  y = holderRow(canvas, story, at, y + 12);
  return axis(canvas, at, y + 6);
}

function coordinatorRow(canvas: Canvas, story: Story, at: Scale, top: number): number {
  const { root } = canvas;
  const y = top + 20;
  root.append(text("row", 0, top + 12, "Coordinator’s clock"));
  bar(canvas, at, "lease", 0n, story.ttl, y, `lease ${duration(story.ttl)}`);
  bar(canvas, at, "vacant", story.ttl, story.takeover, y, "takeover");
  return labels(canvas, at, story.coordinator, y + BAR);
}

function holderRow(canvas: Canvas, story: Story, at: Scale, top: number): number {
  const { root } = canvas;
  const y = top + 26;
  root.append(text("row", 0, top + 12, "Holder’s clock"));
  if (story.windowEnd <= story.start) {
    bar(canvas, at, "margin", 0n, story.ttl, y);
    root.append(text("quiet", 8, y + BAR + 16, "Nothing is left of the lease: there is no window."));
    return y + BAR + ROW;
  }
  bar(canvas, at, "margin", 0n, story.start, y);
  bar(canvas, at, "act", story.start, story.workEnd, y, "work may begin", story.cancelled);
  bar(canvas, at, "finish", story.workEnd, story.windowEnd, y);
  bar(canvas, at, "margin", story.windowEnd, story.ttl, y, "margin");
  renewals(canvas, story, at, y);
  cancellation(canvas, story, at, y);
  return labels(canvas, at, story.holder, y + BAR);
}

/** A stretch of time as a bar, as far as the scale shows it, with words inside where they fit (before `until`). */
function bar({ root, measure }: Canvas, at: Scale, cls: string, from: bigint, to: bigint, y: number, words = "", until = to): void {
  const [left, right] = [from > at.from ? from : at.from, to < at.to ? to : at.to];
  if (left >= right) return;
  const [x, width] = [at.x(left), at.x(right) - at.x(left)];
  root.append(svg("rect", { class: cls, x, y, width, height: BAR }));
  if (cls === "margin" || cls === "vacant") {
    root.append(svg("rect", { x, y, width, height: BAR, fill: `url(#hatch-${cls})` }));
  }
  const room = until > left && until < right ? at.x(until) - x : width;
  if (words && measure(words) + 20 < room) root.append(text(`in-${cls}`, x + 10, y + BAR / 2 + 4.5, words));
}

/** A stroke for each renewal, one band where they are too many to tell apart. */
function renewals({ root }: Canvas, story: Story, at: Scale, y: number): void {
  const { start, heartbeat, windowEnd } = story;
  const spacing = at.x(at.from + heartbeat) - at.x(at.from);
  const first = start + heartbeat;
  if (story.renewals === 0n || first > at.to) return;
  if (spacing < 4) {
    const [from, to] = [first > at.from ? first : at.from, windowEnd < at.to ? windowEnd : at.to];
    if (from < to) root.append(svg("rect", { class: "renewals", x: at.x(from), y: y + BAR - 6, width: at.x(to) - at.x(from), height: 6 }));
    return;
  }
  for (let k = 1n; k <= story.renewals && start + k * heartbeat <= at.to; k += 1n) {
    const sent = start + k * heartbeat;
    if (sent < at.from) continue;
    root.append(line("renewal", at.x(sent), y + BAR / 2, at.x(sent), y + BAR));
    root.append(line("leader", at.x(sent), y + BAR, at.x(sent), y + BAR + 5));
  }
}

/** The time without an answer, as a line above the bar that ends where cancellation trips. */
function cancellation({ root }: Canvas, { answered, cancelled, windowEnd }: Story, at: Scale, y: number): void {
  const [from, to] = [answered > at.from ? answered : at.from, cancelled < at.to ? cancelled : at.to];
  if (from < to) root.append(line("cancel", at.x(from), y - 5, at.x(to), y - 5));
  if (cancelled >= at.from && cancelled <= at.to && cancelled < windowEnd) {
    root.append(line("cancel", at.x(cancelled), y - 9, at.x(cancelled), y + BAR));
  }
}

function labels({ root, width, measure }: Canvas, at: Scale, marks: Mark[], y: number): number {
  const shown = marks.filter((mark) => mark.at >= at.from && mark.at <= at.to);
  const placed = place(shown.map((mark): Label => ({ x: at.x(mark.at), words: mark.words, cls: mark.cls })), width, measure);
  for (const { x, words, cls, row, left } of placed) {
    const baseline = y + row * ROW + 17;
    root.append(line(`leader ${cls}`, x, y, x, baseline));
    root.append(text(cls, left, baseline, words));
  }
  return y + height(placed) * ROW + 4;
}

function axis({ root, width, measure }: Canvas, at: Scale, y: number): number {
  root.append(line("axis", 0, y, width, y));
  for (const us of ticks(at, (us) => measure(duration(us)))) {
    const x = at.x(us);
    const half = measure(duration(us)) / 2;
    root.append(line("axis", x, y, x, y + 4));
    root.append(text("tick middle", Math.min(Math.max(x, half), width - half), y + 18, duration(us)));
  }
  return y + 24;
}

/** Which stretch of the whole is drawn larger below. */
function lens(from: number, width: number, top: number, bottom: number): SVGElement {
  const points = [[from, top], [width, top], [width, bottom], [0, bottom]].map((point) => point.join(",")).join(" ");
  return svg("polygon", { class: "lens", points });
}

function hatching(): SVGElement {
  const pattern = (id: string) =>
    svg(
      "pattern",
      { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      line(id, 0, 0, 0, 6),
    );
  return svg("defs", {}, pattern("hatch-margin"), pattern("hatch-vacant"));
}
