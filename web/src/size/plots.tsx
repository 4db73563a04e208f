// Two plots, each with its table beside it: a canvas says nothing to a screen reader.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { drift, duration, grouped } from "../model/format";
import type { Answer } from "../model/question";
import { Choice } from "../ui/field";
import { scale, ticks } from "../picture/scale";
import { useWidth } from "../ui/width";
import { sizes, windows, type Point } from "./series";

interface Series {
  label: string;
  /** The custom property with its colour: one colour a concept. */
  colour: string;
  dash?: number[];
  hourly?: boolean;
}

/** The plots follow once the typing rests: they are a hundred questions, and nobody reads them while a slider moves. */
function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}

export function Plots({
  answer,
  over,
  setOver,
}: {
  answer: Answer;
  over: "drift" | "rtt";
  setOver: (over: "drift" | "rtt") => void;
}) {
  const rested = useRested(answer, 120);
  const left = useMemo(() => windows(rested, over), [rested, over]);
  const right = useMemo(() => sizes(rested), [rested]);
  const turn = useRef(setOver);
  turn.current = setOver;
  // The tables are long: they are gone through again only when there is something new in them.
  return useMemo(
    () => <Both {...{ left, right, over, rested }} setOver={(to) => turn.current(to)} />,
    [left, right, over, rested],
  );
}

interface BothProps {
  left: Point[];
  right: Point[];
  over: "drift" | "rtt";
  rested: Answer;
  setOver: (over: "drift" | "rtt") => void;
}

function Both({ left, right, over, rested, setOver }: BothProps) {
  return (
    <section class="plots" aria-label="Trades">
      <div class="plot-box">
        <h2>Window over {over === "drift" ? "drift" : "round trip"}</h2>
        <Choice
          name="over"
          legend={<span class="visually-hidden">Over</span>}
          value={over}
          options={[
            ["drift", "drift"],
            ["rtt", "round trip"],
          ]}
          onChange={setOver}
        />
        <Plot
          name="window"
          points={left}
          unit={over === "drift" ? drift : duration}
          here={over === "drift" ? rested.drift : rested.rtt}
          xLabel={over === "drift" ? "Drift" : "Round trip"}
          axes={[over === "drift" ? "Drift of both clocks, ppm or %" : "Round trip, µs to s", "After the start of the timer, s"]}
          series={[
            { label: "Window", colour: "--window" },
            { label: "Left for work", colour: "--work", dash: [8, 4] },
            { label: "Stall tolerance", colour: "--heartbeat", dash: [2, 3] },
          ]}
        />
      </div>
      <div class="plot-box">
        <h2>Least TTL over the work</h2>
        <p class="hint">
          With {grouped(rested.attempts)} heartbeats per TTL, of which {grouped(rested.lost)} in a row may be lost: the longer the lease, the cheaper to keep,
          and the later somebody takes over.
        </p>
        <Plot
          name="ttl"
          points={right}
          unit={duration}
          here={rested.work}
          xLabel="Work"
          axes={["Work, ms to h", "Least TTL and takeover, ms to d", "Renewals an hour"]}
          series={[
            { label: "Least TTL", colour: "--lease-line" },
            { label: "Takeover", colour: "--takeover", dash: [8, 4] },
            { label: "Renewals an hour", colour: "--heartbeat", dash: [2, 3], hourly: true },
          ]}
        />
      </div>
    </section>
  );
}

interface PlotProps {
  name: string;
  points: Point[];
  unit: (value: bigint) => string;
  xLabel: string;
  /** What the axes show, with its unit: below, at the left, at the right. */
  axes: readonly [below: string, left: string, right?: string];
  /** What the visitor has set. */
  here: bigint;
  series: Series[];
}

/** A custom property's colour, as the theme has it: only an element that uses it knows. */
function colour(host: HTMLElement, name: string): string {
  host.style.color = `var(${name})`;
  const found = getComputedStyle(host).color;
  host.style.color = "";
  return found;
}

/** A tick as people read it: of a value of the axis, which the plot keeps as a fraction. */
const tick = (show: (value: bigint) => string) => (_: uPlot, values: (number | null)[]) =>
  values.map((value) => (value === null ? "" : show(BigInt(value))));

const TEN = Array.from({ length: 16 }, (_, n) => 10 ** n);
const S = 1_000_000;
const ROUND_TIMES = [
  ...TEN.slice(0, 8),
  60 * S,
  600 * S,
  3_600 * S,
  36_000 * S,
  86_400 * S,
  864_000 * S,
  8_640_000 * S,
  86_400_000 * S,
];

/** Round values along a logarithmic axis, every second one where they would crowd. */
const splits = (round: number[], most: number) => (_: uPlot, _axis: number, min: number, max: number) => {
  const inside = round.filter((value) => value >= min && value <= max);
  return inside.filter((_value, n) => n % Math.ceil(inside.length / most) === 0);
};

/** Round times along an axis from zero. */
const linear = (_: uPlot, _axis: number, _min: number, max: number) =>
  ticks(scale(0n, BigInt(Math.floor(max)), 0, 220), () => 16).map(Number);

/** Where the visitor's own setting is: a line down the plot, and a point on each curve. */
const mark = (host: HTMLElement, here: bigint, series: Series[]) => (plot: uPlot) => {
  const at = plot.data[0].indexOf(Number(here));
  if (at < 0) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(Number(here), "x", true);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour(host, "--ink");
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  series.forEach((one, n) => {
    const value = plot.data[n + 1]?.[at];
    if (value === null || value === undefined) return;
    ctx.beginPath();
    ctx.arc(x, plot.valToPos(value, one.hourly ? "hour" : "y", true), 4 * devicePixelRatio, 0, 7);
    ctx.fill();
  });
  ctx.restore();
};

function Plot({ name, points, unit, xLabel, axes, here, series }: PlotProps) {
  const { ref, width } = useWidth<HTMLDivElement>(240);
  const canvas = useRef<HTMLDivElement>(null);
  const [theme, setTheme] = useState(0);

  useEffect(() => {
    const turn = () => setTheme((n) => n + 1);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", turn);
    addEventListener("themechange", turn);
    return () => (media.removeEventListener("change", turn), removeEventListener("themechange", turn));
  }, []);

  useEffect(() => {
    const host = canvas.current;
    if (!host) return undefined;
    const data = [
      points.map(({ x }) => Number(x)),
      ...series.map((_, at) => points.map(({ values }) => positive(values[at]))),
    ] as uPlot.AlignedData;
    const font = `12px ${getComputedStyle(host).fontFamily}`;
    const axis = {
      stroke: colour(host, "--muted"),
      grid: { stroke: colour(host, "--rule"), width: 1 },
      ticks: { show: false },
      font,
      labelFont: font,
      labelSize: 20,
      labelGap: 2,
      filter: (_: uPlot, all: number[]) => all,
    };
    // What spans decades is drawn in decades; a window over drift is a matter of how much of it is left.
    const hourly = series.some((one) => one.hourly);
    const logarithmic = hourly;
    const plot = new uPlot(
      {
        width,
        height: 290,
        padding: [12, hourly ? 0 : 24, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, distr: 3 },
          y: logarithmic ? { distr: 3 } : { range: (_, _min, max) => [0, max * 1.05 || 1] },
          ...(hourly ? { hour: { distr: 3 } } : {}),
        },
        axes: [
          { ...axis, label: axes[0], size: 32, values: tick(unit), splits: splits(unit === duration ? ROUND_TIMES : TEN, width < 420 ? 4 : 8) },
          { ...axis, label: axes[1], values: tick(duration), size: 58, splits: logarithmic ? splits(ROUND_TIMES, 8) : linear },
          ...(hourly
            ? [
                {
                  ...axis,
                  label: axes[2] ?? "",
                  scale: "hour",
                  side: 1 as const,
                  values: tick(grouped),
                  size: 76,
                  splits: splits(TEN, 8),
                  grid: { show: false },
                },
              ]
            : []),
        ],
        hooks: { draw: [mark(host, here, series)] },
        series: [
          {},
          ...series.map((one) => ({
            label: one.label,
            stroke: colour(host, one.colour),
            width: 2,
            scale: one.hourly ? "hour" : "y",
            points: { show: false },
            ...(one.dash ? { dash: one.dash } : {}),
          })),
        ],
      },
      data,
      host,
    );
    return () => plot.destroy();
  }, [points, width, theme]);

  return (
    <div ref={ref} class="plot" id={`plot-${name}`}>
      <ul class="legend" aria-hidden="true">
        {series.map((one) => (
          <li key={one.label}>
            <svg width={28} height={8}>
              <line x1={0} y1={4} x2={28} y2={4} class={`key ${one.colour.slice(2)}`} stroke-dasharray={one.dash?.join(" ")} />
            </svg>
            {one.label}
          </li>
        ))}
        {points.some(({ x }) => x === here) && (
          <li>
            <span class="here">●</span> your setting, {unit(here)}
          </li>
        )}
      </ul>
      <div ref={canvas} aria-hidden="true" />
      <details class="more">
        <summary>As a table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={`${xLabel}: the plot as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{xLabel}</th>
                {series.map((one) => (
                  <th key={one.label} scope="col">
                    {one.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {points.map(({ x, values }) => (
                <tr key={`${x}`} class={x === here ? "here" : undefined}>
                  <th scope="row">
                    {unit(x)}
                    {x === here && ", your setting"}
                  </th>
                  {series.map((one, at) => {
                    const value = values[at];
                    return (
                      <td key={one.label}>
                        {value === null || value === undefined ? "none" : one.hourly ? grouped(value) : duration(value)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

/** A logarithmic axis has no zero. */
const positive = (value: bigint | null | undefined): number | null => (value ? Number(value) : null);
