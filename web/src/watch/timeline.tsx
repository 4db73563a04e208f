// The story as lanes over time: the workers, the coordinator between them and the resource; and where the present is.

import { duration } from "../model/format";
import { big } from "../model/module";
import { scale, ticks, type Scale } from "../picture/scale";
import { measure, useWidth } from "../ui/width";
import type { Tale } from "./tale";

const LANE = 86;
const BAR = 26;
const TOP = 24;

interface Stretch {
  from: bigint;
  to: bigint;
  cls: string;
  words: string;
  /** As far as nothing lies over it. */
  free?: bigint;
}

export function Timeline({ tale, at }: { tale: Tale; at: bigint }) {
  const { ref, width } = useWidth<HTMLDivElement>(300);
  const names = tale.frames[0]?.state.workers.map(({ name }) => name) ?? [];
  const outside = names.length ? [] : [...new Set((tale.scenario.writes ?? []).map(({ holder }) => holder))].sort();
  const [first, ...others] = names.length ? names : outside;
  const lanes = [...(first === undefined ? [] : [first]), ...(names.length ? ["coordinator"] : []), ...others, "resource"];
  const time = scale(0n, tale.until, 2, width - 2);
  const y = (name: string) => lanes.indexOf(name) * LANE + TOP;
  const total = lanes.length * LANE + TOP + 12;
  const x = time.x(at);
  return (
    <div ref={ref}>
      <svg
        class="picture timeline"
        role="img"
        aria-label="The story as lanes over time. The log beside it says the same in words."
        width={width}
        height={total}
        viewBox={`0 0 ${width} ${total}`}
      >
        {lanes.map((name) => (
          <line key={name} class="lane" x1={0} x2={width} y1={y(name) + BAR / 2} y2={y(name) + BAR / 2} />
        ))}
        {names.map((name, who) =>
          stretches(tale, who).map((part) => <Bar key={`${name}${part.from}${part.cls}`} part={part} time={time} y={y(name)} />),
        )}
        {names.length > 0 &&
          leases(tale).map((part) => <Bar key={`lease${part.from}`} part={part} time={time} y={y("coordinator")} />)}
        {power(tale).map((part) => (
          <Bar key={`power${part.from}`} part={part} time={time} y={y("resource")} />
        ))}
        {tale.messages
          .filter(({ kind }) => LOUD.has(kind))
          .map((message) => (
            <line
              key={`${message.from}${message.to}${message.kind}${message.sent_us}`}
              class={`message ${message.kind}`}
              x1={time.x(big(message.sent_us))}
              y1={y(message.from) + (y(message.from) < y(message.to) ? BAR : 0)}
              x2={time.x(big(message.arrives_us))}
              y2={y(message.to) + (y(message.from) < y(message.to) ? 0 : BAR)}
            />
          ))}
        {tale.frames.map(
          ({ event }, n) =>
            event?.kind === "writes" &&
            outside.includes(event.who) && (
              // A write from outside of the story is there as it leaves.
              <line
                key={n}
                class="message write"
                x1={time.x(big(event.at_us))}
                x2={time.x(big(event.at_us))}
                y1={y(event.who) + BAR / 2}
                y2={y("resource")}
              />
            ),
        )}
        {tale.frames.map(
          ({ event }, n) =>
            event && (
              <Mark
                key={n}
                kind={event.kind}
                x={time.x(big(event.at_us))}
                y={y(event.who === "operator" ? "resource" : event.who) + BAR / 2}
                token={event.token === null ? "" : `${event.token}`}
              />
            ),
        )}
        {lanes.map((name) => (
          <text key={name} class="row over" x={0} y={y(name) - 7}>
            {name === "coordinator" ? "lock service" : name}
          </text>
        ))}
        <rect class="future" x={x} y={0} width={Math.max(0, width - x)} height={lanes.length * LANE} />
        <line class="now" x1={x} x2={x} y1={0} y2={lanes.length * LANE} />
        <g transform={`translate(0 ${lanes.length * LANE})`}>
          <line class="axis" x1={0} y1={0} x2={width} y2={0} />
          {ticks(time, (us) => measure(duration(us))).map((us) => {
            const half = measure(duration(us)) / 2;
            return (
              <text key={`${us}`} class="tick" x={Math.min(Math.max(time.x(us), half), width - half)} y={18}>
                {duration(us)}
              </text>
            );
          })}
        </g>
      </svg>
    </div>
  );
}

const LOUD = new Set(["write", "raise", "acquire", "granted"]);

function Bar({ part, time, y }: { part: Stretch; time: Scale; y: number }) {
  const [from, width] = [time.x(part.from), Math.max(time.x(part.to) - time.x(part.from), 1)];
  const room = part.free === undefined ? width : time.x(part.free) - from;
  const words = [part.words, part.words.replace(/^\D+/, "")].find((text) => text && measure(text) + 12 < room);
  // What lies over another bar leaves that bar's words free, at its left.
  const over = /frozen|hung|dead/.test(part.cls);
  return (
    <g>
      <rect class={part.cls} x={from} y={y} width={width} height={BAR} rx={3} />
      {words && (
        <text class={`in-${part.cls}`} x={over ? from + width - 6 - measure(words) : from + 6} y={y + BAR / 2 + 4.5}>
          {words}
        </text>
      )}
    </g>
  );
}

/** What a lane does from frame to frame, equal neighbours as one. */
function runs(tale: Tale, of: (frame: number) => { cls: string; words: string } | undefined): Stretch[] {
  const found: Stretch[] = [];
  tale.frames.forEach((frame, n) => {
    const is = of(n);
    const to = tale.frames[n + 1]?.at ?? tale.until;
    const last = found.at(-1);
    if (is && last?.to === frame.at && last.cls === is.cls && last.words === is.words) last.to = to;
    else if (is && to > frame.at) found.push({ ...is, from: frame.at, to });
  });
  return found;
}

function stretches(tale: Tale, who: number): Stretch[] {
  const worker = (n: number) => tale.frames[n]?.state.workers[who];
  const window = runs(tale, (n) => {
    const is = worker(n);
    const over = is?.window_ends_us !== null && is !== undefined && big(is.window_ends_us) <= (tale.frames[n]?.at ?? 0n);
    return is && is.token !== null && !over ? { cls: `held w${who}`, words: `token ${is.token}` } : undefined;
  });
  const state = runs(tale, (n) => {
    const doing = worker(n)?.doing;
    if (doing === "frozen" || doing === "hung" || doing === "dead") return { cls: doing, words: doing };
    return undefined;
  });
  const free = ({ from, to }: Stretch) => state.find((over) => over.from >= from && over.from < to)?.from;
  return [...window.map((part) => ({ ...part, free: free(part) ?? part.to })), ...state];
}

function leases(tale: Tale): Stretch[] {
  return runs(tale, (n) => {
    const lease = tale.frames[n]?.state.lease;
    return lease ? { cls: "granted", words: `${lease.holder} has ${lease.token}` } : undefined;
  });
}

function power(tale: Tale): Stretch[] {
  return runs(tale, (n) => (tale.frames[n]?.state.powered === false ? { cls: "dead", words: "no power" } : undefined));
}

/** Shapes, not colours alone: a tick for what landed, a cross for what should not have, a bar for what bounced. */
function Mark({ kind, x, y, token }: { kind: string; x: number; y: number; token: string }) {
  switch (kind) {
    case "landed":
      return <path class="mark-landed" d={`M${x - 6},${y}l4,5l8,-10`} />;
    case "corrupted":
      return (
        <g class="mark-corrupted">
          <circle cx={x} cy={y} r={11} />
          <path d={`M${x - 5},${y - 5}l10,10m0,-10l-10,10`} />
        </g>
      );
    case "bounced":
      return (
        <g class="mark-bounced">
          <circle cx={x} cy={y} r={11} />
          <path d={`M${x - 6},${y}h12`} />
        </g>
      );
    case "renewed":
      return <circle class="mark-pulse" cx={x} cy={y + 11} r={2.5} />;
    case "raised":
      return (
        <text class="mark-raised" x={x} y={y + 26} aria-label={`token ${token}`}>
          ▲
        </text>
      );
    case "restored":
    case "fails-over":
    case "epoch":
    case "boots":
      return <path class="mark-operator" d={`M${x},${y - 11}l7,7l-7,7l-7,-7z`} />;
    default:
      return null;
  }
}
