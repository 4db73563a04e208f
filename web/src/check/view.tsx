// Check your lock service.

import type { Check, Preset, System } from "fencegate";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { big, presets, Problem, readDrift, readDuration } from "../model/module";
import type { CheckState } from "../state/state";
import { Copy, Exports, toJson } from "../ui/copy";
import { DRIFTS, Field, SHORT_TIMES } from "../ui/field";
import { say } from "../ui/say";
import { Stale } from "../ui/stale";
import { checked, correct, given, type Values } from "./correct";
import { configuration, snippet } from "./formats";
import { INSTEAD } from "./instead";
import { redlockOf, renews, takeoverOf, tokenOf, windowOf, type Token } from "./lease";
import { Row, Table } from "../size/figures";

interface Shown {
  found: Check;
  values: Values;
  preset: Preset;
}

interface Props {
  state: CheckState;
  set: (state: CheckState) => void;
}

const presetOf = ({ system: name }: CheckState): Preset =>
  presets().systems.find(({ system }) => system === name) as Preset;

function Picker({ preset, state, set }: Props & { preset: Preset }) {
  return (
    <div class="field">
      <label for="system">Lock service</label>
      <select
        id="system"
        value={state.system}
        onChange={(event) => set({ ...state, system: event.currentTarget.value, values: {} })}
      >
        {presets().systems.map(({ system }) => (
          <option key={system} value={system}>
            {system}
          </option>
        ))}
      </select>
      <p class="hint">{preset.notes}</p>
    </div>
  );
}

/** A system without a configuration to check. */
function Unruled({ preset }: { preset: Preset }) {
  const token = tokenOf(preset, {});
  return (
    <>
      <section class="answer holds" aria-labelledby="check-title">
        <Headline preset={preset}>
          <p id="verdict" class="headline">
            Nothing to check
          </p>
        </Headline>
        <dl class="summary">
          <Marks token={token.said} renews={preset.renews} />
        </dl>
      </section>
      <section class="verdicts" aria-label="What to know">
        <Origin token={token} />
        <div class="verdict warn" id="instead">
          <h3>What to do instead</h3>
          <p>{INSTEAD[preset.system]}</p>
        </div>
      </section>
      <Sources preset={preset} />
    </>
  );
}

function Headline({ preset, children }: { preset: Preset; children: ComponentChildren }) {
  return (
    <div>
      <h2 id="check-title">{preset.system}</h2>
      {children}
    </div>
  );
}

/** What every system has or has not. */
function Marks({ token, renews }: { token: string; renews: boolean }) {
  return (
    <>
      <div>
        <dt>Token</dt>
        <dd id="check-token">{token}</dd>
      </div>
      <div>
        <dt>Renews by itself</dt>
        <dd id="check-renews">{renews ? "yes" : "no"}</dd>
      </div>
    </>
  );
}

function Origin({ token }: { token: Token }) {
  return (
    <div class={`verdict ${token.ordered ? "good" : "warn"}`}>
      <h3>Where the token comes from</h3>
      <p>{token.words}</p>
    </div>
  );
}

function Sources({ preset }: { preset: Preset }) {
  return (
    <section aria-labelledby="sources-title">
      <h2 id="sources-title">Sources</h2>
      <ul class="sources">
        {preset.sources.map((source) => (
          <li key={source}>{source}</li>
        ))}
      </ul>
    </section>
  );
}

/** A Redlock's own figures, as the module reckons them. */
function RedlockFigures({ preset, values }: { preset: Preset; values: Values }) {
  const found = redlockOf(preset, values);
  if (found instanceof Problem) return null;
  return (
    <section aria-labelledby="redlock-title">
      <h2 id="redlock-title">The figures</h2>
      <Table title="redlock-title">
        <Row id="held" name="Held" concept="window" meaning="Whether anything is valid, and a quorum has granted it." value={found.held} />
        <Row id="validity_us" name="Validity" concept="window" meaning="What is left of the TTL after acquiring and drift." value={big(found.validity_us)} />
        <Row id="drift_us" name="Drift" concept="drift" meaning="What is allowed for it: the factor's part of the TTL, and the fixed part." value={big(found.drift_us)} />
        <Row id="quorum" name="Quorum" concept="lease" meaning="How many nodes have to grant it." value={big(found.quorum)} />
        <Row id="tolerates" name="Tolerates" concept="lease" meaning="How many may be missing." value={big(found.tolerates)} />
      </Table>
    </section>
  );
}

export function CheckView({ state, set }: Props) {
  const preset = presetOf(state);
  const ruled = Object.keys(preset.defaults).length > 0;
  const values = useMemo(() => given(required(state), state.drift, state.rtt), [state]);
  const found = useMemo(() => (ruled ? checked(state.system as System, values) : undefined), [state.system, values]);
  const last = useRef<Shown>(undefined);
  if (found && !(found instanceof Problem)) last.current = { found, values, preset };
  const shown = last.current?.preset.system === state.system ? last.current : undefined;
  const problem = found instanceof Problem ? found : undefined;

  useEffect(() => {
    const words = found instanceof Problem ? found.words : found?.ok ? "Its rules hold." : "A rule is broken.";
    say(found ? words : `${state.system}: nothing to check.`, 700);
  }, [found, state.system]);

  const keys = Object.entries(preset.defaults);
  const put = (key: string, value: string) => {
    const { [key]: _, ...rest } = state.values;
    set({ ...state, values: value === "" ? rest : { ...rest, [key]: value } });
  };
  return (
    <div class="layout">
      <form class="settings" aria-label="The configuration" onSubmit={(event) => event.preventDefault()}>
        <Picker preset={preset} state={state} set={set} />
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
        {ruled && (["drift", "rtt"] as const).map((id) => (
          <Field
            key={id}
            id={id}
            label={id === "drift" ? "Drift of both clocks" : "Round trip"}
            steps={id === "drift" ? DRIFTS : SHORT_TIMES}
            value={state[id]}
            optional
            onInput={(value) => set({ ...state, [id]: value })}
            problem={problem?.field === id ? problem.words : undefined}
            hint={id === "drift" && "for the window; the rules do not need it"}
          />
        ))}
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
        {ruled ? shown && <Results {...shown} state={state} /> : <Unruled preset={preset} />}
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
  const [first] = Object.entries(presetOf(state).defaults);
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
        <Headline preset={preset}>
          <p id="verdict" class={`headline ${found.ok ? "good" : "bad"}`}>
            {found.ok ? "Its rules hold" : errors.length === 1 ? "A rule is broken" : `${errors.length} rules are broken`}
          </p>
        </Headline>
        <dl class="summary">
          {[windowOf(preset, values, found, state), takeoverOf(preset, values, found, state)].map(({ name, value, but }, at) => (
            <div key={at}>
              <dt>{name}</dt>
              <dd id={at ? "check-takeover" : "check-window"}>{value}</dd>
              {but && <dd class="but">{but.charAt(0).toUpperCase() + but.slice(1)}</dd>}
            </div>
          ))}
          <Marks token={token.said} renews={renews(preset, found)} />
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
        <Origin token={token} />
      </section>
      {preset.system === "redlock" && <RedlockFigures preset={preset} values={values} />}
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
        <Exports name="check" json={() => toJson(found)} />
      </section>
      <Sources preset={preset} />
    </>
  );
}
