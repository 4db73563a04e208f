// A field: exact entry, where it makes sense a slider beside it, and a sentence where what is typed is wrong.

import type { ComponentChildren } from "preact";
import { Problem, readDuration, readDrift } from "../model/module";

interface FieldProps {
  id: string;
  label: ComponentChildren;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  problem?: string | undefined;
  /** What the slider steps through. */
  steps?: readonly string[];
  optional?: boolean;
  /** What holds where nothing is typed. */
  placeholder?: string | undefined;
  /** The element with a sentence about this field and another together. */
  shared?: string | undefined;
  children?: ComponentChildren;
}

export const TIMES =
  "100us 200us 500us 1ms 2ms 5ms 10ms 20ms 50ms 100ms 200ms 500ms 1s 2s 3s 5s 8s 10s 15s 20s 30s 45s 1m 90s 2m 3m 5m 10m 15m 30m 1h 2h 6h 12h 1d".split(
    " ",
  );
export const SHORT_TIMES = ["0s", ...TIMES.slice(0, 21)];
export const WORK_TIMES = ["0s", ...TIMES.slice(3)];
export const DRIFTS =
  "0ppm 1ppm 2ppm 5ppm 10ppm 20ppm 50ppm 100ppm 200ppm 500ppm 1000ppm 2000ppm 5000ppm 1% 2% 5% 8.3333334% 10% 20% 46.875%".split(
    " ",
  );
export const COUNTS = "0 1 2 3 4 5 6 7 8 9 10 12 15 20".split(" ");

export function Field({ id, label, value, onInput, hint, problem, steps, optional, placeholder, shared, children }: FieldProps) {
  const described = [hint && `${id}-hint`, `${id}-error`, shared].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>
        {label} {optional && <span class="optional">optional</span>}
      </label>
      <div class="entry">
        <input
          id={id}
          name={id}
          value={value}
          placeholder={placeholder}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-invalid={problem || shared ? "true" : "false"}
          aria-describedby={described}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        {steps && <Slider id={id} steps={steps} value={value || placeholder || ""} onInput={onInput} />}
      </div>
      {children}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
      <p id={`${id}-error`} class="error">
        {problem}
      </p>
    </div>
  );
}

interface SliderProps {
  id: string;
  steps: readonly string[];
  value: string;
  onInput: (value: string) => void;
}

/** Steps through round values; between two of them it stands at the lower. */
function Slider({ id, steps, value, onInput }: SliderProps) {
  const at = place(steps, value);
  return (
    <input
      type="range"
      class="slider"
      aria-label={`${id} in round steps`}
      aria-valuetext={value}
      min={0}
      max={steps.length - 1}
      step={1}
      value={at}
      onInput={(event) => onInput(steps[event.currentTarget.valueAsNumber] ?? value)}
    />
  );
}

const sizes = new Map<string, bigint>();

function measure(text: string): bigint | undefined {
  const cached = sizes.get(text);
  if (cached !== undefined) return cached;
  const read = /(ppm|ppb|%)$/.test(text)
    ? readDrift(text, "")
    : /^\d+$/.test(text)
      ? BigInt(text)
      : readDuration(text, "down", "");
  if (read instanceof Problem) return undefined;
  if (sizes.size < 1_000) sizes.set(text, read);
  return read;
}

function place(steps: readonly string[], value: string): number {
  const size = measure(value.replace(/\s+/g, ""));
  if (size === undefined) return 0;
  const above = steps.findIndex((step) => (measure(step) ?? 0n) > size);
  return above < 0 ? steps.length - 1 : Math.max(0, above - 1);
}

interface ChoiceProps<T extends string> {
  name: string;
  legend: ComponentChildren;
  value: string;
  options: readonly (readonly [T, ComponentChildren])[];
  onChange: (value: T) => void;
  hint?: ComponentChildren;
}

export function Choice<T extends string>({ name, legend, value, options, onChange, hint }: ChoiceProps<T>) {
  return (
    <fieldset class="field choice">
      <legend>{legend}</legend>
      <div class="options">
        {options.map(([option, words]) => (
          <label key={option}>
            <input type="radio" name={name} value={option} checked={value === option} onChange={() => onChange(option)} />
            <span>{words}</span>
          </label>
        ))}
      </div>
      {hint && <p class="hint">{hint}</p>}
    </fieldset>
  );
}
