// Check your lock service.

import type { Check, Preset, System } from "fencegate";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { presets, Problem, readDrift, readDuration } from "../model/module";
import { checkable } from "../state/address";
import type { CheckState } from "../state/state";
import { Copy, save, toJson } from "../ui/copy";
import { DRIFTS, Field, SHORT_TIMES } from "../ui/field";
import { say } from "../ui/say";
import { Stale } from "../ui/stale";
import { checked, correct, given, type Values } from "./correct";
import { configuration, snippet } from "./formats";
import { renews, takeoverOf, tokenOf, windowOf } from "./lease";

interface Shown {
  found: Check;
  values: Values;
  preset: Preset;
}

export function CheckView({ state, set }: { state: CheckState; set: (state: CheckState) => void }) {
  const preset = presets().systems.find(({ system }) => system === state.system);
  const values = useMemo(() => given(required(state), state.drift, state.rtt), [state]);
  const found = useMemo(() => checked(state.system, values), [state.system, values]);
  const last = useRef<Shown>(undefined);
  if (!(found instanceof Problem) && preset) last.current = { found, values, preset };
  const shown = last.current?.preset.system === state.system ? last.current : undefined;
  const problem = found instanceof Problem ? found : undefined;

  useEffect(() => {
    say(found instanceof Problem ? found.words : found.ok ? "Its rules hold." : "A rule is broken.", 700);
  }, [found]);

  if (!preset) return null;
  const keys = Object.entries(preset.defaults);
  const put = (key: string, value: string) => {
    const { [key]: _, ...rest } = state.values;
    set({ ...state, values: value === "" ? rest : { ...rest, [key]: value } });
  };
  return (
    <div class="layout">
      <form class="settings" aria-label="The configuration" onSubmit={(event) => event.preventDefault()}>
        <div class="field">
          <label for="system">Lock service</label>
          <select
            id="system"
            value={state.system}
            onChange={(event) => set({ ...state, system: event.currentTarget.value as System, values: {} })}
          >
            {checkable().map((system) => (
              <option key={system} value={system}>
                {system}
              </option>
            ))}
          </select>
          <p class="hint">{preset.notes}</p>
        </div>
        {keys.map(([key, initial]) =>
          typeof initial === "boolean" ? (
            <div class="field" key={`${state.system}.${key}`}>
              <label for={key}>
                <code>{key}</code>
              </label>
              <select
                id={key}
                value={state.values[key] ?? String(initial)}
                onChange={(event) => put(key, event.currentTarget.value === String(initial) ? "" : event.currentTarget.value)}
              >
                <option value="false">false</option>
                <option value="true">true</option>
              </select>
            </div>
          ) : (
            <Field
              key={`${state.system}.${key}`}
              id={key}
              label={<code>{key}</code>}
              placeholder={initial === null ? undefined : String(initial)}
              value={state.values[key] ?? ""}
              onInput={(value) => put(key, value)}
              problem={problem?.field === key ? problem.words : undefined}
              hint={
                initial === null ? (
                  keys[0]?.[0] === key ? (
                    <>
                      required; <code>{REQUIRED}</code> until you say
                    </>
                  ) : (
                    "unset unless given"
                  )
                ) : (
                  <>
                    default <code>{String(initial)}</code>
                  </>
                )
              }
            />
          ),
        )}
        <Field
          id="drift"
          label="Drift of both clocks"
          steps={DRIFTS}
          value={state.drift}
          optional
          onInput={(drift) => set({ ...state, drift })}
          problem={problem?.field === "drift" ? problem.words : undefined}
          hint="for the window; the rules do not need it"
        />
        <Field
          id="rtt"
          label="Round trip"
          steps={SHORT_TIMES}
          value={state.rtt}
          optional
          onInput={(rtt) => set({ ...state, rtt })}
          problem={problem?.field === "rtt" ? problem.words : undefined}
        />
      </form>
      <div class={`results${problem ? " stale" : ""}`}>
        {problem && (
          <Stale
            what="No answer"
            problems={{ [problem.field]: problem.words }}
            fields={[...keys.filter(([, initial]) => typeof initial !== "boolean").map(([key]) => key), "drift", "rtt"]}
            last={shown !== undefined}
          />
        )}
        {shown && <Results {...shown} state={state} />}
      </div>
      {shown && !problem && (
        <p class="strip" aria-hidden="true">
          {state.system}{" "}
          <strong class={shown.found.ok ? "good" : "bad"}>{shown.found.ok ? "its rules hold" : "a rule is broken"}</strong>
        </p>
      )}
    </div>
  );
}

/** What stands in for a lease that a system has no default of. */
const REQUIRED = "30s";

function required(state: CheckState): Values {
  const preset = presets().systems.find(({ system }) => system === state.system);
  const [first] = Object.entries(preset?.defaults ?? {});
  return first && first[1] === null && !(first[0] in state.values) ? { ...state.values, [first[0]]: REQUIRED } : state.values;
}

function Results({ found, values, preset, state }: Shown & { state: CheckState }) {
  const errors = found.findings.filter(({ severity }) => severity === "error");
  const correction = useMemo(() => correct(preset, values), [preset, values]);
  const token = tokenOf(preset, values);
  const made = configuration(preset, correction?.values ?? values);
  const [drift, rtt] = [readDrift(state.drift || "0ppm", "drift"), readDuration(state.rtt || "0s", "up", "rtt")];
  const command = ["fencegate check", state.system, ...Object.entries(values).map(([key, value]) => `${key}=${value}`)].join(" ");
  return (
    <>
      <section class={`answer ${found.ok ? "holds" : "breaks"}`} aria-labelledby="check-title">
        <div>
          <h2 id="check-title">{preset.system}</h2>
          <p id="verdict" class={`headline ${found.ok ? "good" : "bad"}`}>
            {found.ok ? "Its rules hold" : errors.length === 1 ? "A rule is broken" : `${errors.length} rules are broken`}
          </p>
        </div>
        <dl class="summary">
          {[windowOf(preset, values, found, state), takeoverOf(preset, values, found, state)].map(({ name, value, but }, at) => (
            <div key={at}>
              <dt>{name}</dt>
              <dd id={at ? "check-takeover" : "check-window"}>{value}</dd>
              {but && <dd class="but">{but.charAt(0).toUpperCase() + but.slice(1)}</dd>}
            </div>
          ))}
          <div>
            <dt>Token</dt>
            <dd id="check-token">{token.said}</dd>
          </div>
          <div>
            <dt>Renews by itself</dt>
            <dd id="check-renews">{renews(preset, found) ? "yes" : "no"}</dd>
          </div>
        </dl>
      </section>
      <section class="verdicts" aria-label="Findings" id="findings">
        {found.findings.map((finding) => (
          <div key={finding.rule + finding.message} class={`verdict ${finding.severity === "error" ? "bad" : "warn"}`}>
            <h3>
              {finding.severity}: <code>{finding.rule}</code>
            </h3>
            <p>{finding.message}.</p>
          </div>
        ))}
        {!found.findings.length && (
          <div class="verdict good">
            <h3>Nothing to find</h3>
            <p>None of its rules has anything to say.</p>
          </div>
        )}
        <div class={`verdict ${token.ordered ? "good" : "warn"}`}>
          <h3>Where the token comes from</h3>
          <p>{token.words}</p>
        </div>
      </section>
      <section class="copies" aria-label="To take along">
        {correction && correction.changed.length > 0 && (
          <p class="hint" id="corrected">
            Corrected: {correction.changed.map((key) => `${key} is ${correction.values[key] ?? preset.defaults[key]}`).join(", ")}
            . With it every rule holds.
          </p>
        )}
        {!correction && <p class="hint">No default of its own makes these rules hold; the findings say what is needed.</p>}
        <Copy id="configuration" title={made.title} text={made.text} />
        <Copy
          id="snippet"
          title="With our core, in Rust"
          text={snippet(
            preset,
            correction?.values ?? values,
            drift instanceof Problem ? 0n : drift,
            rtt instanceof Problem ? 0n : rtt,
          )}
        />
        <Copy id="command" title="At the command line" text={command} />
        <div class="actions">
          <button
            type="button"
            class="small"
            onClick={() => save("check.json", new Blob([toJson(found)], { type: "application/json" }))}
          >
            JSON
          </button>
        </div>
      </section>
      <section aria-labelledby="sources-title">
        <h2 id="sources-title">Sources</h2>
        <ul class="sources">
          {preset.sources.map((source) => (
            <li key={source}>{source}</li>
          ))}
        </ul>
      </section>
    </>
  );
}
