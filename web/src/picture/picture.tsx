// The lease, the holder's window and the takeover, to scale; and the last stretch again, larger, where the margin can be
// seen. A part that is hovered over or focused says what it is.

import { useMemo, useState } from "preact/hooks";
import { duration, grouped, tenths } from "../model/format";
import type { Answer } from "../model/question";
import { measure, useWidth } from "../ui/width";
import { height, place, type Label } from "./labels";
import { help, tell, type Part, type Story } from "./parts";
import { scale, ticks, type Scale } from "./scale";

const BAR = 30;
const ROW = 19;

export function Picture({ answer }: { answer: Answer }) {
  const { ref, width } = useWidth<HTMLDivElement>(280);
  const story = useMemo(() => tell(answer), [answer]);
  const [chosen, setChosen] = useState<string>();
  const part = chosen === undefined ? undefined : story.parts[chosen];
  const whole = scale(0n, story.takeover, 1, width - 1);
  const end = magnified(story, width);
  const top = panel("whole", story, whole, width, 0, setChosen, chosen);
  const lower = end && panel("end", story, end, width, top.bottom + 54, setChosen, chosen);
  const total = lower?.bottom ?? top.bottom;
  const times = end ? (story.takeover * 10n) / (end.to - end.from) : 0n;
  return (
    <div ref={ref} class="picture-host">
      <svg
        class="picture"
        role="group"
        aria-label="The lease, drawn to scale: each part says what it is"
        width={width}
        height={total}
        viewBox={`0 0 ${width} ${total}`}
      >
        <defs>
          {["drift", "takeover"].map((id) => (
            <pattern key={id} id={`hatch-${id}`} width={6} height={6} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <line class={`hatch ${id}`} x1={0} y1={0} x2={0} y2={6} />
            </pattern>
          ))}
        </defs>
        {top.drawn}
        {end && lower && (
          <>
            <polygon
              class="lens"
              points={`${whole.x(end.from)},${top.bottom} ${width},${top.bottom} ${width},${top.bottom + 18} 0,${top.bottom + 18}`}
            />
            <text class="title" x={0} y={top.bottom + 42}>
              The end, {times < 100n ? tenths(times) : grouped(times / 10n)} times larger
            </text>
            {lower.drawn}
          </>
        )}
      </svg>
      {story.beats && (
        <p class="hint" id="beats">
          One heartbeat every {duration(story.beats.every)}. {help(story.beats.help)}, drawn filled
          {crowded(story, whole, width) && "; too close to be drawn one by one, they are a band"}.
        </p>
      )}
      <div class="explained" aria-live="polite">
        {part ? (
          <>
            <p>
              <strong class={`concept ${part.id}`}>{part.name}</strong> {part.words}
            </p>
            <p class="formula">
              <code>{part.formula}</code> <span class="source">{part.source}</span>
            </p>
          </>
        ) : (
          <p class="hint">
            Point at a part, or walk through them with Tab: each says what it is and where its number comes from.
          </p>
        )}
      </div>
    </div>
  );
}

/** The stretch from the end of the window to the takeover with some air, where it is too short to be seen in the whole. */
function magnified({ windowEnd, takeover }: Story, width: number): Scale | undefined {
  const span = takeover - windowEnd;
  if (span <= 0n || windowEnd === 0n || span * 6n > takeover) return undefined;
  const from = windowEnd > span ? windowEnd - span : 0n;
  return scale(from, takeover + span / 8n, 1, width - 1);
}

type Choose = (id: string) => void;

function panel(key: string, story: Story, at: Scale, width: number, top: number, choose: Choose, chosen: string | undefined) {
  const { parts } = story;
  const part = (id: string, y: number, cls: string, words = "", h = BAR) => {
    const found = parts[id];
    return (
      found && (
        <Bar
          key={`${key}${id}`}
          part={found}
          at={at}
          y={y}
          h={h}
          cls={cls}
          words={words}
          choose={choose}
          chosen={chosen === id}
        />
      )
    );
  };
  const coordinatorY = top + 20;
  const above = marks(story, at, width, coordinatorY + BAR, [
    { at: story.ttl, words: `earliest takeover ${duration(story.ttl)}`, cls: "quiet" },
    { at: story.takeover, words: `latest ${duration(story.takeover)}`, cls: "takeover" },
  ]);
  const holderTop = above.bottom + 14;
  const y = holderTop + 26;
  const none = story.windowEnd <= story.start;
  const holder = marks(
    story,
    at,
    width,
    y + BAR,
    none
      ? []
      : [
          ...(story.start > 0n ? [{ at: story.start, words: "timer starts", cls: "quiet" }] : []),
          ...(story.cancelled < story.windowEnd
            ? [{ at: story.cancelled, words: `cancel ${duration(story.said.cancel)} after the answer`, cls: "cancel" }]
            : []),
          ...(story.workEnd > story.start && story.workEnd < story.windowEnd
            ? [{ at: story.workEnd, words: `no new work from ${duration(story.said.workEnd)}`, cls: "work" }]
            : []),
          { at: story.windowEnd, words: `window ends ${duration(story.said.window)}`, cls: "window" },
        ],
  );
  const axisY = holder.bottom + (none ? 24 : 6);
  const drawn = (
    <g key={key}>
      <text class="row" x={0} y={top + 12}>
        Coordinator’s clock{story.start > 0n && ", from the sending"}
      </text>
      {part("lease", coordinatorY, "lease", `lease ${duration(story.ttl)}`)}
      {part("takeover", coordinatorY, "takeover", "takeover")}
      {above.drawn}
      <text class="row" x={0} y={holderTop + 12}>
        Holder’s clock{story.start > 0n && ", from the start of its timer"}
      </text>
      {none ? (
        <text class="quiet" x={0} y={y + BAR + 16}>
          Nothing is left of the lease: there is no window.
        </text>
      ) : (
        <>
          {part("window", y, "window")}
          {part("latency", y, "latency", "round trip")}
          {part("work", y, "act", "work may begin")}
          {part("last", y, "finish")}
          {part("drift", y, "drift", "drift")}
          {part("offset", y, "offset", "offset")}
          <Heartbeats story={story} at={at} y={y + BAR} width={width} choose={choose} chosen={chosen === "heartbeat"} />
          {story.beats && <Cancel story={story} at={at} y={y} choose={choose} chosen={chosen === "cancel"} />}
          {holder.drawn}
        </>
      )}
      <Axis at={at} y={axisY} width={width} from={story.start} />
    </g>
  );
  return { drawn, bottom: axisY + 24 };
}

interface BarProps {
  part: Part;
  at: Scale;
  y: number;
  h: number;
  cls: string;
  words: string;
  choose: Choose;
  chosen: boolean;
}

const events = (id: string, choose: Choose) => ({
  tabIndex: 0,
  role: "img" as const,
  onMouseEnter: () => choose(id),
  onFocus: () => choose(id),
  onClick: () => choose(id),
});

/** A stretch of time as a bar, as far as the scale shows it, with words inside where they fit. */
function Bar({ part, at, y, h, cls, words, choose, chosen }: BarProps) {
  const [left, right] = [part.from > at.from ? part.from : at.from, part.to < at.to ? part.to : at.to];
  if (left >= right) return null;
  const [x, width] = [at.x(left), Math.max(at.x(right) - at.x(left), 0.75)];
  return (
    <g
      class={`part${chosen ? " chosen" : ""}`}
      {...events(part.id, choose)}
      aria-label={`${part.name}: ${part.formula}. ${part.words}`}
    >
      <rect class={cls} x={x} y={y} width={width} height={h} />
      {(cls === "drift" || cls === "takeover") && (
        <rect class="hatched" x={x} y={y} width={width} height={h} fill={`url(#hatch-${cls})`} />
      )}
      {words && measure(words) + 20 < width && (
        <text class={`in-${cls}`} x={x + 10} y={y + (cls === "act" ? 14 : h / 2 + 4.5)}>
          {words}
        </text>
      )}
    </g>
  );
}

interface MarkProps {
  story: Story;
  at: Scale;
  y: number;
  choose: Choose;
  chosen: boolean;
}

/** The numbers of the first and the last heartbeat on the scale. */
function inSight({ start, takeover, beats }: Story, at: Scale): [first: bigint, last: bigint] {
  if (!beats) return [1n, 0n];
  const first = at.from > start ? (at.from - start + beats.every - 1n) / beats.every : 1n;
  const end = at.to < takeover ? at.to : takeover - 1n;
  return [first > 1n ? first : 1n, (end - start) / beats.every];
}

/** Whether heartbeats would lie upon one another. */
function crowded(story: Story, at: Scale, width: number): boolean {
  const [first, last] = inSight(story, at);
  return last - first >= BigInt(Math.floor(width / 10));
}

function Heartbeats({ story, at, y, width, choose, chosen }: MarkProps & { width: number }) {
  const { heartbeat } = story.parts;
  const { beats, start } = story;
  const [first, last] = inSight(story, at);
  if (!heartbeat || !beats || last < first) return null;
  const x = (k: bigint) => at.x(start + k * beats.every);
  const band = (cls: string, from: bigint, to: bigint) =>
    from <= to && <rect class={cls} x={x(from) - 2} y={y - 11} width={Math.max(x(to) - x(from), 0) + 4} height={6} rx={3} />;
  const shown = crowded(story, at, width) ? undefined : Array.from({ length: Number(last - first) + 1 }, (_, n) => first + BigInt(n));
  return (
    <g
      class={`part${chosen ? " chosen" : ""}`}
      {...events("heartbeat", choose)}
      aria-label={`${heartbeat.name}: ${heartbeat.formula}. ${heartbeat.words}`}
    >
      {shown ? (
        shown.map((k) => <circle key={`${k}`} class={k <= beats.help ? "beat" : "beat late"} cx={x(k)} cy={y - 8} r={4} />)
      ) : (
        <>
          {band("beat", first, last < beats.help ? last : beats.help)}
          {band("beat late", first > beats.help ? first : beats.help + 1n, last)}
        </>
      )}
    </g>
  );
}

function Cancel({ story, at, y, choose, chosen }: MarkProps) {
  const { cancel } = story.parts;
  if (!cancel || story.cancelled < at.from || story.cancelled > at.to) return null;
  const x = at.x(story.cancelled);
  return (
    <g
      class={`part${chosen ? " chosen" : ""}`}
      {...events("cancel", choose)}
      aria-label={`${cancel.name}: ${cancel.formula}. ${cancel.words}`}
    >
      <rect class="reach" x={x - 6} y={y - 10} width={12} height={BAR + 10} />
      <line class="cancel" x1={x} y1={y - 10} x2={x} y2={y + BAR} />
      <path class="cancel-head" d={`M${x - 5},${y - 10}h10l-5,8z`} />
    </g>
  );
}

interface Mark {
  at: bigint;
  words: string;
  cls: string;
}

function marks(_story: Story, at: Scale, width: number, y: number, all: Mark[]) {
  const shown = all.filter((mark) => mark.at >= at.from && mark.at <= at.to);
  const placed = place(
    shown.map((mark): Label => ({ x: at.x(mark.at), words: mark.words, cls: mark.cls })),
    width,
    measure,
  );
  const drawn = placed.map(({ x, words, cls, row, left }) => (
    <g key={cls} aria-hidden="true">
      <line class={`leader ${cls}`} x1={x} y1={y} x2={x} y2={y + row * ROW + 17} />
      <text class={`mark ${cls}`} x={left} y={y + row * ROW + 17}>
        {words}
      </text>
    </g>
  ));
  return { drawn, bottom: y + height(placed) * ROW + 4 };
}

/** Below the holder's row, and in its count: `from` is where its timer starts. */
function Axis({ at, y, width, from }: { at: Scale; y: number; width: number; from: bigint }) {
  const counted: Scale = { from: at.from > from ? at.from - from : 0n, to: at.to - from, x: (us) => at.x(us + from) };
  return (
    <g aria-hidden="true">
      <line class="axis" x1={0} y1={y} x2={width} y2={y} />
      {ticks(counted, (us) => measure(duration(us))).map((us) => {
        const half = measure(duration(us)) / 2;
        return (
          <g key={`${us}`}>
            <line class="axis" x1={counted.x(us)} y1={y} x2={counted.x(us)} y2={y + 4} />
            <text class="tick" x={Math.min(Math.max(counted.x(us), half), width - half)} y={y + 18}>
              {duration(us)}
            </text>
          </g>
        );
      })}
    </g>
  );
}
