// Size a lease.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { big } from "../model/module";
import { duration, exactly } from "../model/format";
import { ask, command, rust, type Answer } from "../model/question";
import { Picture } from "../picture/picture";
import type { SizeState } from "../state/state";
import { Copy, Exports, toJson } from "../ui/copy";
import { say } from "../ui/say";
import { Stale } from "../ui/stale";
import { Figures } from "./figures";
import { fields, SizeForm } from "./form";
import { Plots } from "./plots";
import { verdicts } from "./verdicts";

interface Shown {
  answer: Answer;
  typed: SizeState;
}

export function SizeView({ state, set }: { state: SizeState; set: (state: SizeState) => void }) {
  const asked = useMemo(() => ask(state), [state]);
  const last = useRef<Shown>(undefined);
  const problems = "problems" in asked ? asked.problems : {};
  const none = "none" in asked;
  if ("plan" in asked) last.current = { answer: asked, typed: state };
  const shown = last.current;
  const stale = !("plan" in asked);

  useEffect(() => {
    if ("plan" in asked)
      say(`Window ${duration(big(asked.plan.window_us))}, margin ${duration(big(asked.plan.margin_us))}.`, 700);
    else say(none ? "No TTL is long enough." : Object.values(problems).join(" "), 700);
  }, [asked]);

  return (
    <div class="layout">
      <SizeForm state={state} set={set} problems={problems} />
      <div class={`results${stale ? " stale" : ""}`}>
        {none && (
          <div class="verdict bad" id="no-ttl">
            <h3>No TTL is long enough</h3>
            <p>
              The renewals that may be lost and the drift take more of every lease than it has: allow for fewer lost ones, more
              heartbeats per TTL, or take better clocks.
            </p>
          </div>
        )}
        {stale && !none && (
          <Stale what="No answer" problems={problems} fields={fields(state)} last={shown !== undefined} />
        )}
        {/* The last answer is to another question: no copy of it goes out for this one. */}
        {none && (
          <section class="copies" aria-label="To take along">
            <Copy id="command" title="At the command line" text={command(state)} />
          </section>
        )}
        {shown && !none && <Results {...shown} state={state} set={set} />}
      </div>
      {shown && !stale && (
        <p class="strip" aria-hidden="true">
          {shown.answer.sized ? "Least TTL" : "Window"}{" "}
          <strong>{duration(shown.answer.sized ? shown.answer.ttl : big(shown.answer.plan.window_us))}</strong>
        </p>
      )}
    </div>
  );
}

function Results({ answer, typed, state, set }: Shown & { state: SizeState; set: (state: SizeState) => void }) {
  const { plan } = answer;
  const figure = useRef<HTMLElement>(null);
  const said = useMemo(() => verdicts(answer, typed), [answer, typed]);
  const json = () =>
    toJson(typed.from === "work" ? { ...answer.sizeInput, ttl_us: answer.ttl, ...plan } : { ...answer.planInput, ...plan });
  return (
    <>
      <section class="answer" aria-labelledby="answer-title">
        <div>
          <h2 id="answer-title">{answer.sized ? "Least TTL" : "Window"}</h2>
          <p id="headline" class={`headline ${answer.sized ? "lease" : "window"}`}>
            {duration(answer.sized ? answer.ttl : big(plan.window_us))}
          </p>
          <p class="exact">{exactly(answer.sized ? answer.ttl : big(plan.window_us))}</p>
        </div>
        <dl class="summary">
          <div>
            <dt>{answer.sized ? "Window" : "Margin"}</dt>
            <dd>{duration(big(answer.sized ? plan.window_us : plan.margin_us))}</dd>
          </div>
          <div>
            <dt>Renew every</dt>
            <dd>{answer.renews ? duration(big(plan.heartbeat_us)) : "never"}</dd>
          </div>
          <div>
            <dt>Cancel after</dt>
            <dd>{duration(big(answer.renews ? plan.cancel_after_us : plan.window_us))}</dd>
          </div>
          <div>
            <dt>Takeover at most</dt>
            <dd>{duration(big(plan.takeover_us))}</dd>
          </div>
        </dl>
      </section>
      <section class="verdicts" aria-labelledby="verdicts-title" id="verdicts">
        <h2 id="verdicts-title" class="visually-hidden">
          Verdicts
        </h2>
        {said.map((verdict) => (
          <div key={verdict.title} class={`verdict ${verdict.level}`}>
            <h3>{verdict.title}</h3>
            <p>{verdict.words}</p>
          </div>
        ))}
      </section>
      <figure ref={figure} class="drawn">
        <figcaption>
          <h2>To scale</h2>
        </figcaption>
        <Picture answer={answer} />
        <Exports name="lease" json={json} within={figure} svg="svg.picture" />
      </figure>
      <Plots answer={answer} over={state.over} setOver={(over) => set({ ...state, over })} />
      <section aria-labelledby="figures-title">
        <h2 id="figures-title">The figures</h2>
        <Figures answer={answer} />
      </section>
      <section class="copies" aria-label="To take along">
        <Copy id="command" title="At the command line" text={command(typed)} />
        <Copy id="rust" title="In Rust" text={rust(answer)} />
      </section>
    </>
  );
}
