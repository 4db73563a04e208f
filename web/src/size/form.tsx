// What is asked for: the purpose first, then the lease and its clocks.

import { useMemo, useRef, useState } from "preact/hooks";
import { drift as driftWords, duration, length, typedDrift } from "../model/format";
import { attempt, big, presets, Problem, readCount, readDrift, readDuration } from "../model/module";
import { chain } from "fencegate";
import type { Problems } from "../model/question";
import { SIZE, type SizeState } from "../state/state";
import { Choice, COUNTS, DRIFTS, Field, SHORT_TIMES, TIMES, WORK_TIMES } from "../ui/field";
import { More } from "../ui/more";
import { OPENERS } from "./openers";

const FOLDED = ["pause", "attempts", "lost", "poll", "granularity", "offset"] as const;

const YES_OR_NO = [
  ["yes", "yes"],
  ["no", "no"],
] as const;

/** The fields that are on the page. */
export const fields = ({ from, renews }: SizeState): string[] => [
  ...["work", "rtt", "holder", "coordinator", "drift", "pause", "attempts", "poll"],
  ...(from === "ttl" ? ["ttl", "offset", ...(renews === "no" ? ["shortest"] : [])] : ["lost", "granularity"]),
];

interface Props {
  state: SizeState;
  set: (state: SizeState) => void;
  problems: Problems;
}

export function SizeForm({ state, set, problems }: Props) {
  const [ours, setOurs] = useState<string>();
  const latest = useRef({ state, set });
  latest.current = { state, set };
  const put = (change: Partial<SizeState>) => latest.current.set({ ...latest.current.state, ...change });
  // Two long lists, which most entries do not concern.
  const clocks = useMemo(
    () => <Clocks state={state} put={put} problems={problems} />,
    [state.holder, state.coordinator, problems["holder"], problems["coordinator"], problems["drift"]],
  );
  const field = (id: keyof SizeState) => ({
    id,
    value: state[id],
    onInput: (value: string) => put({ [id]: value }),
    problem: problems[id],
  });
  const choice = <K extends keyof SizeState>(id: K, legend: string, options: readonly (readonly [SizeState[K], string])[]) => (
    <Choice name={id} legend={legend} value={state[id]} options={options} onChange={(value) => put({ [id]: value })} />
  );
  const unrenewed = state.from === "ttl" && state.renews === "no";
  return (
    <form class="settings" aria-label="The lease" onSubmit={(event) => event.preventDefault()}>
      {choice("cost", "What does a double run cost?", [["wasted", "wasted work"], ["broken", "broken state"]])}
      {state.cost !== "wasted" && choice("token", "Can the resource check a token?", YES_OR_NO)}
      <div class="field openers">
        <p class="legend">In your words</p>
        <div class="chips">
          {OPENERS.map((opener) => (
            <button key={opener.said} type="button" class="chip" onClick={() => (setOurs(opener.ours), put({ ...SIZE, over: state.over, ...opener.change }))}>
              {opener.said}
            </button>
          ))}
        </div>
        {ours && (
          <p class="hint ours" role="status">
            <b>Ours:</b> {ours}
          </p>
        )}
      </div>
      {choice("from", "Direction", [["ttl", "from a TTL to its window"], ["work", "from the work to the least TTL"]])}
      {state.from === "ttl" && (
        <>
          <Field
            {...field("ttl")}
            label="TTL"
            steps={TIMES}
            hint={
              <>
                T, as the coordinator grants it: <code>10s</code>, <code>1m30s</code>
              </>
            }
          />
          {choice("renews", "Is it renewed while the work runs?", YES_OR_NO)}
        </>
      )}
      <Field
        {...field("work")}
        label="Work"
        steps={WORK_TIMES}
        optional
        hint={`W, from the last check of the lease until the effect is over${unrenewed ? "; of jobs, the longest" : ""}`}
      />
      {unrenewed && <Field {...field("shortest")} label="Shortest job" steps={WORK_TIMES} optional />}
      <Field {...field("rtt")} label="Round trip" steps={SHORT_TIMES} optional hint="d, the worst of an acquire or renew call" />
      {clocks}
      {state.from === "ttl" && choice("start", "The holder starts its timer", [["send", "before it sends"], ["grant", "at the reply"]])}
      <More
        summary="Pauses, heartbeats, polling"
        wanted={state.from === "work" || FOLDED.some((id) => problems[id] !== undefined)}
      >
        <Field {...field("pause")} label="Pause" steps={SHORT_TIMES} optional hint="P, a stall that should not lose the lease" />
        <Field {...field("attempts")} label="Heartbeats per TTL" steps={COUNTS.slice(2)} />
        {state.from === "work" && (
          <Field
            {...field("lost")}
            label="Lost renewals"
            steps={COUNTS.slice(0, 10)}
            hint="in a row, that may fail before the lease is lost"
          />
        )}
        <Field {...field("poll")} label="Poll" steps={SHORT_TIMES} optional hint="how often a challenger asks again" />
        {state.from === "work" && (
          <Field
            {...field("granularity")}
            label="Step of the TTL"
            optional
            hint={
              <>
                the coordinator's: <code>1s</code>
              </>
            }
          />
        )}
        {state.from === "ttl" && (
          <Field
            {...field("offset")}
            label="Wall-clock offset"
            steps={SHORT_TIMES}
            optional
            hint="only for a deadline that one machine writes and another reads"
          />
        )}
      </More>
      <Chain state={state} put={put} />
    </form>
  );
}

interface PartProps {
  state: SizeState;
  put: (change: Partial<SizeState>) => void;
  problems: Problems;
}

function Clocks({ state, put, problems }: PartProps) {
  const clocks = presets().clocks;
  const [picked, setPicked] = useState<Partial<Record<"holder" | "coordinator", number>>>({});
  const one = (id: "holder" | "coordinator", label: string) => {
    const read = readDrift(state[id], id);
    const same = (at: number) => !(read instanceof Problem) && clocks[at] !== undefined && big(clocks[at].drift_ppb) === read;
    const all = clocks.map((_, at) => at).filter(same);
    // Two clocks may have one bound: then it is the one that was picked, else the commoner.
    const chosen =
      [picked[id], all.find((at) => clocks[at]?.clock.startsWith("Linux")), all[0]].find((at) => at !== undefined && same(at)) ??
      -1;
    const source = clocks[chosen];
    return (
      <Field
        id={id}
        label={label}
        value={state[id]}
        onInput={(value) => put({ [id]: value })}
        problem={problems[id]}
        shared={problems["drift"] && "drift-error"}
        steps={DRIFTS}
      >
        <select
          aria-label={`${label}: a known one`}
          value={String(chosen)}
          onChange={(event) => {
            const clock = clocks[Number(event.currentTarget.value)];
            setPicked({ ...picked, [id]: Number(event.currentTarget.value) });
            if (clock) put({ [id]: typedDrift(big(clock.drift_ppb)) });
          }}
        >
          <option value="-1">as typed</option>
          {clocks.map((clock, at) => (
            <option key={clock.clock} value={String(at)}>
              {driftWords(big(clock.drift_ppb))}: {clock.clock}
            </option>
          ))}
        </select>
        {source && <p class="hint source">{source.source}</p>}
      </Field>
    );
  };
  return (
    <fieldset class="field clocks">
      <legend>Drift of the two clocks</legend>
      {one("holder", "Holder’s clock")}
      {one("coordinator", "Coordinator’s clock")}
      <p class="error" id="drift-error">
        {problems["drift"]}
      </p>
    </fieldset>
  );
}

const CHAIN = ["page", "relay", "gate", "drive"] as const;

/** Time-outs one after the other, and how far what is driven travels meanwhile. */
function Chain({ state, put }: Omit<PartProps, "problems">) {
  const problems: Problems = {};
  const used = [...CHAIN, "speed" as const].some((id) => state[id].trim());
  const parts = CHAIN.filter((id) => state[id].trim()).map((id) => {
    const read = readDuration(state[id], "up", id);
    if (!(read instanceof Problem)) return read;
    problems[id] = read.words;
    return 0n;
  });
  const speed = state.speed.trim() ? readCount(state.speed, "speed") : 0n;
  if (speed instanceof Problem) problems["speed"] = speed.words;
  const sum = Object.keys(problems).length
    ? undefined
    : attempt(() => chain({ parts_us: parts, speed_mm_s: speed instanceof Problem ? 0n : speed }));
  if (sum instanceof Problem) problems[sum.field === "speed_mm_s" ? "speed" : "drive"] = sum.words;
  return (
    <More summary="A chain of time-outs" wanted={used}>
      <div class="pair">
        {CHAIN.map((id) => (
          <Field
            key={id}
            id={id}
            label={{ page: "Page", relay: "Relay", gate: "Gate", drive: "Drive" }[id]}
            value={state[id]}
            onInput={(value) => put({ [id]: value })}
            problem={problems[id]}
          />
        ))}
      </div>
      <Field
        id="speed"
        label="Speed in mm/s"
        value={state.speed}
        onInput={(value) => put({ speed: value })}
        problem={problems["speed"]}
      />
      {used && sum && !(sum instanceof Problem) && (
        <p class="chain" id="chain">
          Together <data value={`${sum.total_us}`}>{duration(big(sum.total_us))}</data>
          {speed !== 0n && (
            <>
              , in which it travels <data value={`${sum.travel_um}`}>{length(big(sum.travel_um))}</data>
            </>
          )}
          .{" "}
          <button type="button" class="small" onClick={() => put({ work: `${sum.total_us}us` })}>
            Take it as the work
          </button>
        </p>
      )}
    </More>
  );
}
