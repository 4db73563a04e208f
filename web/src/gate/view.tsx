// Try a gate: the firmware itself, in this browser or on a cable.

import "./gate.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { say } from "../ui/say";
import { read } from "./keys";
import { hasSerial } from "./serial";
import { Session } from "./session";
import { Closed } from "./stage";
import type { Doing, Name, State } from "./state";
import { fenceWords } from "./words";

const DOING: Record<Doing, string> = {
  idle: "does nothing",
  waits: "waits",
  drives: "drives",
  frozen: "frozen",
  fenced: "fenced off",
  unheard: "hears no answer",
  over: "its lease is over",
};

/** Where the emulated board's outputs are, and whose. */
const PINS = ["GP2, channel 0", "GP3, channel 1", "GP4, channel 2", "GP5, channel 3", "GP6, channel 4", "GP7, channel 4"];

export function GateView() {
  const [, again] = useState(0);
  const session = useRef<Session>(undefined);
  if (!session.current) {
    // Many frames may come between two pictures; once for each picture is enough.
    let asked = false;
    session.current = new Session(() => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        again((n) => n + 1);
      });
    });
  }
  const gate = session.current;
  const { state } = gate;
  useEffect(() => {
    // From now on this view is part of the page offline, too.
    void navigator.serviceWorker?.ready.then(({ active }) => active?.postMessage("keep the gate"));
    return () => gate.close();
  }, []);
  useEffect(() => say(state.told.words), [state.told]);
  return (
    <div class="layout gate">
      <Power gate={gate} state={state} />
      <div class="results">
        <section class={`answer story ${state.told.cls === "bad" ? "breaks" : "holds"}`} aria-labelledby="gate-title">
          <div>
            <h2 id="gate-title">{state.source === "serial" ? "The gate on the cable" : "The emulated Pico"}</h2>
            <p id="told" class={`headline ${state.told.cls}`}>
              {state.told.words}
            </p>
            <p id="fence" class="exact">
              Fence of channel 0: {state.fence ? fenceWords(state.fence) : "unknown"}
              {state.boots !== null && `. Boots: ${state.boots}`}
            </p>
          </div>
          <Pins state={state} />
          <div class="holders">
            {(["A", "B"] as const).map((name) => (
              <Holder key={name} name={name} gate={gate} state={state} />
            ))}
          </div>
        </section>
        <section aria-labelledby="frames-title">
          <h2 id="frames-title">The line, frame by frame</h2>
          <p class="hint">Newest first. Every frame is sealed, none is secret.</p>
          <ol class="log frames" id="frames" tabIndex={0} aria-labelledby="frames-title">
            {state.frames.map(({ n, at, who, words, bytes, cls }) => (
              <li key={n} class={cls}>
                <span class="when">{at}</span> <b>{who}</b> {words}
                {bytes !== null && <span class="when"> {bytes} bytes</span>}
              </li>
            ))}
            {!state.frames.length && <li>Nothing yet.</li>}
          </ol>
        </section>
      </div>
      <Serial gate={gate} state={state} />
    </div>
  );
}

function Power({ gate, state }: { gate: Session; state: State }) {
  const { power, source, pace, playing, kept } = state;
  const emulated = source === "emulator";
  const cuttable = emulated && (power === "on" || power === "booting");
  return (
    <section class="power" aria-labelledby="power-title">
      <h2 id="power-title">In this browser</h2>
      <p class="hint">
        A Raspberry Pi Pico, emulated in a worker, boots the very file that one drags onto a real one. This page plays the lock
        service and two holders; what the gate does is the firmware’s.
      </p>
      <p class="hint" id="kept">
        {kept.why
          ? `This browser keeps nothing of the board (${kept.why}): its fence is gone when this view is closed.`
          : "Its flash and its keys are kept in this browser: after the tab is closed and opened again, its fence is still there."}
      </p>
      <div class="actions">
        <button
          type="button"
          disabled={playing || cuttable || (source === "serial" && power !== "failed")}
          onClick={() => act(gate.boot())}
        >
          {power === "cut" && emulated ? "Boot again" : "Boot the board"}
        </button>
        <button type="button" disabled={playing || !cuttable} onClick={() => gate.cut()}>
          Cut the power
        </button>
        {playing ? (
          <button type="button" onClick={() => gate.stop()}>
            Stop the story
          </button>
        ) : (
          <button type="button" disabled={power !== "on"} onClick={() => act(gate.play())}>
            Play the story
          </button>
        )}
        <button
          type="button"
          disabled={playing || cuttable || source === "serial" || !(kept.yes || emulated)}
          onClick={() => act(gate.forget())}
        >
          Take a new board
        </button>
      </div>
      {pace && (
        <p class="hint" id="pace">
          The board runs at {Math.round(pace.speed * 100)} % of real time; its worker is busy for {Math.round(pace.load * 100)} % of
          it.
        </p>
      )}
    </section>
  );
}

/** What is in the way of a connection: something about the key file, or about the port. */
const NO_PROBLEM = { file: "", port: "" };

function Serial({ gate, state }: { gate: Session; state: State }) {
  const [file, setFile] = useState<File>();
  const [problem, setProblem] = useState(NO_PROBLEM);
  const connected = state.source === "serial" && state.power !== "failed";
  const connect = async () => {
    setProblem(NO_PROBLEM);
    let about = "file" as keyof typeof NO_PROBLEM;
    try {
      if (!file) throw new Error("choose the operator’s key file first");
      const text = await file.text();
      await gate.connect(() => {
        const keys = read(text);
        about = "port";
        return keys;
      });
    } catch (error) {
      const words = error instanceof Error ? `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.` : String(error);
      setProblem({ ...NO_PROBLEM, [about]: words });
      say(words);
    }
  };
  return (
    <section class="serial" aria-labelledby="serial-title">
      <h2 id="serial-title">On a cable</h2>
      {hasSerial() ? (
        <>
          <p class="hint">
            The same view with a real gate on a serial port, by Web Serial. <b>Never run with hardware so far.</b> It drives channel
            0, so what is wired to that moves, and its tokens go above those of your lock service: for a gate on your bench.
          </p>
          <div class="field">
            <label for="key-file">The operator’s key file</label>
            <input
              id="key-file"
              type="file"
              aria-describedby="key-file-hint key-file-error"
              aria-invalid={problem.file ? "true" : "false"}
              onChange={(event) => setFile(event.currentTarget.files?.[0])}
            />
            <p id="key-file-hint" class="hint">
              It is read here and goes nowhere.
            </p>
            <p id="key-file-error" class="error">
              {problem.file}
            </p>
          </div>
          <div class="actions">
            <button type="button" disabled={connected || state.playing} onClick={() => void connect()}>
              Connect a real gate
            </button>
          </div>
          <p id="port-error" class="error">
            {problem.port}
          </p>
        </>
      ) : (
        <p class="hint">This browser has no Web Serial, so a real gate cannot be reached from here.</p>
      )}
    </section>
  );
}

function Pins({ state }: { state: State }) {
  const names = state.source === "serial" ? state.pins.map(() => "") : PINS;
  return (
    <ul class="pins" aria-label="Outputs">
      {state.pins.map((value, n) => (
        <li key={n} class={value ? "lit" : ""} id={`pin-${n}`}>
          <span class="bulb" aria-hidden="true" />
          <b>output {n}</b> <span class="value">{value === 0 ? "off" : value === 1 ? "on" : value}</span>
          {names[n] && <span class="where">{names[n]}</span>}
        </li>
      ))}
      {!state.pins.length && <li>Unknown: the gate does not say.</li>}
      {state.source !== "serial" && (
        <li class={state.lamp ? "lit" : ""} id="lamp">
          <span class="bulb" aria-hidden="true" />
          <b>LED</b> <span class="value">{state.lamp ? "on" : "off"}</span>
          <span class="where">GP25: a flash is safe, on is driven</span>
        </li>
      )}
    </ul>
  );
}

function Holder({ name, gate, state }: { name: Name; gate: Session; state: State }) {
  const { doing, stamp } = state.holders[name];
  const other = state.holders[name === "A" ? "B" : "A"];
  const ready = state.power === "on" && !state.playing;
  // The lock service gives no token while the other renews its lease.
  const held = ["drives", "unheard", "waits"].includes(other.doing);
  const resting = ["idle", "fenced", "over"].includes(doing);
  return (
    <section class={`holder w${name === "A" ? 0 : 1} ${doing}`} aria-labelledby={`holder-${name}`}>
      <h3 id={`holder-${name}`}>Holder {name}</h3>
      <p>
        {DOING[doing]}
        {stamp && <span class="token">{`token ${stamp.token}`}</span>}
      </p>
      <div class="actions">
        <button type="button" disabled={!ready || !resting || held} onClick={() => act(gate.take(name))}>
          {resting && !held ? `${name} takes token ${state.next} and opens` : `${name} takes a token and opens`}
        </button>
        {doing === "frozen" ? (
          <button type="button" disabled={!ready} onClick={() => act(gate.wake(name))}>
            Wake {name}
          </button>
        ) : (
          <button type="button" disabled={!ready || doing !== "drives"} onClick={() => act(gate.freeze(name))}>
            Freeze {name}
          </button>
        )}
        <button type="button" disabled={!ready || doing !== "drives"} onClick={() => act(gate.release(name))}>
          {name} closes
        </button>
      </div>
    </section>
  );
}

/** What is closed under way is over; anything else is told on the console, and the view goes on. */
function act(what: Promise<void>): void {
  what.catch((error: unknown) => void (error instanceof Closed || console.error(error)));
}
