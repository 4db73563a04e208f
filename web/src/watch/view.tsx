// Watch it happen.

import type { Whole } from "fencegate";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, MILLISECOND, typedDrift, typedDuration, whole } from "../model/format";
import { big } from "../model/module";
import { ask, command, rust, type Problems } from "../model/question";
import { PACES, SIZE, WATCH, type SizeState, type WatchState } from "../state/state";
import { Copy, Exports, toJson } from "../ui/copy";
import { DRIFTS, Field, SHORT_TIMES, TIMES } from "../ui/field";
import { More } from "../ui/more";
import { say } from "../ui/say";
import { Stale } from "../ui/stale";
import { change, chosen, fields, frameAt, struck, READY, tell, type Tale } from "./tale";
import { Timeline } from "./timeline";

/** On a narrow screen what happens comes first. */
const wide = () => matchMedia("(min-width: 60rem)").matches;

const isTale = (told: Tale | Problems): told is Tale => "frames" in told;

export function WatchView({ state, set }: { state: WatchState; set: (state: WatchState) => void }) {
  const { story, fencing, a, b, ttl, delay, drift, freeze } = state;
  const told = useMemo(() => {
    const scenario = change(state);
    return "until_us" in scenario ? tell(scenario as Tale["scenario"]) : (scenario as Problems);
  }, [story, fencing, a, b, ttl, delay, drift, freeze]);
  const last = useRef<{ story: string; tale: Tale }>(undefined);
  if (isTale(told)) last.current = { story, tale: told };
  const tale = last.current?.story === story ? last.current.tale : undefined;
  const problems = isTale(told) ? {} : told;
  const ready = chosen(story);
  const put = (changed: Partial<WatchState>) => set({ ...state, ...changed });
  const field = (id: "ttl" | "delay" | "drift" | "freeze") => ({
    id,
    value: state[id],
    onInput: (value: string) => put({ [id]: value }),
    problem: problems[id],
  });
  const workers = ready.scenario.workers ?? [];
  const lasts = struck(ready.scenario)?.for_us;
  return (
    <div class="layout">
      <form class="settings" aria-label="The story" onSubmit={(event) => event.preventDefault()}>
        <div class="field">
          <label for="story">Story</label>
          <select
            id="story"
            value={ready.name}
            onChange={(event) => set({ ...WATCH, fencing, story: event.currentTarget.value })}
          >
            {READY.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
          <p class="hint">{ready.about}</p>
        </div>
        <label class="switch">
          <input
            id="fencing"
            type="checkbox"
            role="switch"
            checked={fencing === "on"}
            onChange={(event) => put({ fencing: event.currentTarget.checked ? "on" : "off" })}
          />
          <span>
            Fencing <b>{fencing}</b>
          </span>
        </label>
        {workers.length > 0 && (
          <More summary="Change the story" wanted={wide() || Object.keys(problems).length > 0}>
            {workers.map(({ name, job }, at) => (
              <div class="field" key={name}>
                <label for={at ? "b" : "a"}>{name} writes</label>
                <textarea
                  id={at ? "b" : "a"}
                  rows={2}
                  value={(at ? b : a) || job.join("\n")}
                  onInput={(event) => put(at ? { b: event.currentTarget.value } : { a: event.currentTarget.value })}
                  aria-invalid={problems[at ? "b" : "a"] ? "true" : "false"}
                  aria-describedby={`${at ? "b" : "a"}-error`}
                />
                <p class="error" id={`${at ? "b" : "a"}-error`}>
                  {problems[at ? "b" : "a"]}
                </p>
              </div>
            ))}
            <Field
              {...field("delay")}
              label="Delay of each message"
              steps={SHORT_TIMES}
              placeholder={typedDuration(big(workers[0]?.delay_us ?? 0))}
              hint="one way"
            />
            {ready.scenario.expires !== false && (
              <Field {...field("ttl")} label="TTL" steps={TIMES} placeholder={typedDuration(big(ready.scenario.ttl_us ?? 0))} />
            )}
            <Field
              {...field("drift")}
              label={`${workers[0]?.name}’s clock is off by`}
              steps={DRIFTS}
              placeholder="0ppm"
              hint={
                <>
                  slow below zero: <code>-2%</code>
                </>
              }
            />
            {lasts !== undefined && (
              <Field {...field("freeze")} label="Freeze, hang or hold" steps={TIMES} placeholder={typedDuration(big(lasts))} />
            )}
          </More>
        )}
      </form>
      <div class={`results${isTale(told) ? "" : " stale"}`}>
        {!isTale(told) && (
          <Stale what="No story" problems={problems} fields={fields(ready.scenario)} last={tale !== undefined} />
        )}
        {tale && <Stage tale={tale} state={state} put={put} title={ready.title} />}
      </div>
    </div>
  );
}

interface StageProps {
  tale: Tale;
  state: WatchState;
  put: (change: Partial<WatchState>) => void;
  title: string;
}

const STEP_MS = 900;

function Stage({ tale, state, put, title }: StageProps) {
  const at = instant(state.at, tale.until);
  const [playing, setPlaying] = useState(false);
  const speed = Number(state.pace);
  const now = useRef(at);
  now.current = at;
  const host = useRef<HTMLElement>(null);
  const putRef = useRef(put);
  putRef.current = put;
  const n = frameAt(tale, at);
  const frame = tale.frames[n];
  const go = (to: bigint) => put({ at: `${to < 0n ? 0n : to > tale.until ? tale.until : to}` });

  useEffect(() => {
    if (!playing) return undefined;
    // Who asks for less motion sees one event after the other instead of time that runs.
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let handle = 0;
    let before: number | undefined;
    const tick = (ms: number) => {
      const passed = before === undefined ? 0 : ms - before;
      let to = now.current;
      if (still) {
        if (passed < STEP_MS / speed && before !== undefined) return void (handle = requestAnimationFrame(tick));
        to = tale.frames[frameAt(tale, to) + 1]?.at ?? tale.until;
      } else to += BigInt(Math.round(passed * 1_000 * speed));
      before = ms;
      if (to >= tale.until) return (putRef.current({ at: `${tale.until}` }), setPlaying(false));
      putRef.current({ at: `${to}` });
      handle = requestAnimationFrame(tick);
    };
    handle = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(handle);
  }, [playing, speed, tale]);

  const [leased, planned] = useMemo(() => {
    const typed = leaseOf(tale.scenario);
    const answer = typed && ask(typed);
    return [typed, answer && "plan" in answer ? answer : undefined];
  }, [tale]);
  const end = tale.frames.at(-1)?.state;
  const corrupted = frame ? big(frame.state.corrupted) : 0n;
  const bounced = frame ? big(frame.state.bounced) : 0n;
  useEffect(() => {
    const event = frame?.event;
    if (event && !playing) say(`${duration(big(event.at_us))}: ${event.who} ${event.words}`, 300);
  }, [n, playing]);
  if (!frame || !end) return null;
  return (
    <>
      <section class={`answer story ${corrupted > 0n ? "breaks" : "holds"}`} aria-labelledby="story-title">
        <div>
          <h2 id="story-title">{title}</h2>
          <p id="outcome" class={`headline ${corrupted > 0n ? "bad" : bounced > 0n ? "good" : ""}`}>
            {corrupted > 0n
              ? "The ledger is corrupted"
              : bounced > 0n
                ? `Refused: ${frame.state.ledger.findLast(({ verdict }) => verdict === "bounced")?.words.replace(/:.*/, "") ?? "the raise"}`
                : "Nothing late so far"}
          </p>
        </div>
        <div class="pulse-row">
          {frame.state.workers.map((worker, who) => (
            <p key={worker.name} class={`actor w${who} ${worker.doing}`}>
              <b>{worker.name}</b> {worker.doing}
              {worker.token !== null && <span class="token">token {`${worker.token}`}</span>}
            </p>
          ))}
          {frame.state.workers.length > 0 && (
            <p class={`actor lease ${frame.state.lease ? "held" : ""}`}>
              <b>lease</b>{" "}
              {frame.state.lease ? `${frame.state.lease.holder}, until ${duration(big(frame.state.lease.ends_us))}` : "free"}
            </p>
          )}
          <p class="actor fence">
            <b>fence</b> {`${frame.state.fence.epoch ? `epoch ${frame.state.fence.epoch}, ` : ""}${frame.state.fence.token}`}
            {state.fencing === "off" && " (nobody looks)"}
          </p>
        </div>
      </section>
      {!tale.whole && (
        <p class="strange" id="cut">
          More happens than can be shown: the story is told up to {duration(tale.until)}. A longer TTL or a longer delay makes it a
          calmer one.
        </p>
      )}
      <figure ref={host} class="drawn">
        <Timeline tale={tale} at={at} />
        <div class="transport" role="group" aria-label="Time">
          <button
            type="button"
            onClick={() => (at >= tale.until && go(0n), setPlaying(!playing))}
            aria-label={playing ? "Stop" : "Play"}
          >
            {playing ? "■" : "▶"}
          </button>
          <button
            type="button"
            onClick={() => (
              setPlaying(false),
              go(tale.frames[n > 0 && tale.frames[n]?.at === at ? prior(tale, n) : n]?.at ?? 0n)
            )}
            aria-label="One event back"
          >
            ‹
          </button>
          <button
            type="button"
            onClick={() => (setPlaying(false), go(tale.frames.find((one) => one.at > at)?.at ?? tale.until))}
            aria-label="One event on"
          >
            ›
          </button>
          <input
            type="range"
            class="slider scrub"
            aria-label="Time in the story"
            aria-valuetext={duration(at)}
            min={0}
            max={Number(tale.until)}
            step={10_000}
            value={Number(at)}
            onInput={(event) => (setPlaying(false), go(BigInt(event.currentTarget.valueAsNumber)))}
          />
          <output id="now">{duration(whole(at, MILLISECOND))}</output>
          <select
            aria-label="Speed"
            value={state.pace}
            onChange={(event) => put({ pace: event.currentTarget.value as WatchState["pace"] })}
          >
            {PACES.map((times) => (
              <option key={times} value={times}>
                {times}×
              </option>
            ))}
          </select>
        </div>
        <ul class="legend" aria-hidden="true">
          <li>
            <span class="swatch held" /> counts on its lease
          </li>
          <li>
            <span class="swatch granted" /> lease at the lock service
          </li>
          <li>
            <span class="swatch frozen" /> frozen, hung or dead
          </li>
          <li>
            <span class="glyph landed">✓</span> landed
          </li>
          <li>
            <span class="glyph bounced">⊖</span> bounced
          </li>
          <li>
            <span class="glyph corrupted">⊗</span> corrupted
          </li>
          <li>
            <span class="glyph">▲</span> fence raised
          </li>
          <li>
            <span class="glyph">◆</span> boot, failover, restore, epoch
          </li>
        </ul>
      </figure>
      <section class="tables">
        <div aria-labelledby="ledger-title">
          <h2 id="ledger-title">The ledger of the resource</h2>
          <table class={`ledger ${corrupted > 0n ? "corrupted" : ""}`} id="ledger" aria-labelledby="ledger-title">
            <thead>
              <tr>
                <th scope="col">At</th>
                <th scope="col">Who</th>
                <th scope="col">Token</th>
                <th scope="col">Wrote</th>
                <th scope="col">Verdict</th>
              </tr>
            </thead>
            <tbody>
              {frame.state.ledger.map((entry, row) => (
                <tr key={row} class={entry.verdict}>
                  <td>{duration(whole(big(entry.at_us), MILLISECOND))}</td>
                  <td>{entry.who}</td>
                  <td>{entry.epoch ? `${entry.epoch}·${entry.token}` : `${entry.token}`}</td>
                  <td>{entry.text}</td>
                  <td>
                    {{ landed: "✓ landed", bounced: "⊖ bounced", corrupted: "⊗ corrupted" }[entry.verdict]}
                    {entry.words && <span class="why">{entry.words}</span>}
                  </td>
                </tr>
              ))}
              {!frame.state.ledger.length && (
                <tr>
                  <td colSpan={5}>Nothing yet.</td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
        <div>
          <h2 id="log-title">What has happened</h2>
          <ol class="log" id="log" tabIndex={0} aria-labelledby="log-title">
            {tale.frames
              .slice(1, n + 1)
              .toReversed()
              .map(
                ({ event }, row) =>
                  event && (
                    <li key={n - row} class={event.kind}>
                      <span class="when">{duration(whole(big(event.at_us), MILLISECOND))}</span>{" "}
                      <b>{event.who === "coordinator" ? "lock service" : event.who}</b> {event.words}
                    </li>
                  ),
              )}
          </ol>
        </div>
      </section>
      <Exports
        name="story"
        json={() => toJson({ scenario: tale.scenario, events: tale.frames.flatMap(({ event }) => event ?? []), end })}
        within={host}
        svg="svg.timeline"
      />
      <section class="copies" aria-label="To take along">
        <Copy
          id="javascript"
          title="In JavaScript"
          text={`import init, { Story } from "fencegate";\n\nawait init();\nconst story = new Story(${toJson(tale.scenario)});\nfor (let event; (event = story.step()); ) console.log(event.at_us, event.who, event.words);`}
        />
        {leased && <Copy id="plan" title="Its lease, at the command line" text={command(leased)} />}
        {planned && <Copy id="rust" title="Its lease, in Rust" text={rust(planned)} />}
        <Copy
          id="command"
          title="A late command against emulated firmware"
          text={`cargo xtask demo --fencing ${state.fencing}`}
        />
      </section>
    </>
  );
}

/** What the workers plan with, as the first view asks for it; where they have a lease, and it ends. */
function leaseOf({ ttl_us, drift_ppb, rtt_us, poll_us = 0, workers, expires }: Tale["scenario"]): SizeState | undefined {
  if (!workers?.length || expires === false || ttl_us === undefined) return undefined;
  const time = (us: Whole) => typedDuration(big(us));
  const drifts = { holder: typedDrift(big(drift_ppb)), coordinator: "0ppm" };
  return { ...SIZE, ...drifts, ttl: time(ttl_us), work: "", rtt: time(rtt_us), poll: time(poll_us) };
}

/** The frame of the instant before that of frame `n`. */
function prior({ frames }: Tale, n: number): number {
  let at = n;
  while (at > 0 && frames[at]?.at === frames[n]?.at) at -= 1;
  return at;
}

/** Where the story stands; what is mangled, or not said, is its end: that is what it is about. */
function instant(text: string, until: bigint): bigint {
  const at = /^\d{1,15}$/.test(text) ? BigInt(text) : until;
  return at < until ? at : until;
}
