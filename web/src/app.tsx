// The frame: what every view has, and the state in the address.

import { useEffect, useRef, useState } from "preact/hooks";
import { CheckView } from "./check/view";
import { GateLoader } from "./gate/loader";
import { SizeView } from "./size/view";
import { fromHash, toHash } from "./state/address";
import type { State, View } from "./state/state";
import { say } from "./ui/say";
import { Theme } from "./ui/theme";
import { chosen } from "./watch/tale";
import { WatchView } from "./watch/view";

const TITLES: Record<View, [tab: string, title: string]> = {
  size: ["Size a lease", "How long may I rely on my lease?"],
  check: ["Check your lock service", "Does my lock service keep its own rules?"],
  watch: ["Watch it happen", "What a late write does, and what stops it"],
  gate: ["Try a gate", "The firmware itself, and a late command"],
};

export function App() {
  const [{ state, strange }, setRead] = useState(() => fromHash(location.hash));
  const title = state.view === "watch" ? chosen(state.watch.story).title : TITLES[state.view][0];
  useEffect(() => {
    document.title = `${title} · fencegate`;
  }, [title]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  useEffect(() => {
    const read = () => {
      // What waits to be written belongs to the address that was left.
      clearTimeout(timer.current);
      setRead(fromHash(location.hash));
    };
    // Back and forth, and an address that is typed.
    addEventListener("popstate", read);
    addEventListener("hashchange", read);
    return () => (removeEventListener("popstate", read), removeEventListener("hashchange", read));
  }, []);

  const set = (change: Partial<State>) =>
    setRead((before) => {
      const after = { ...before.state, ...change };
      // Browsers refuse an address that changes at every key.
      clearTimeout(timer.current);
      timer.current = setTimeout(() => history.replaceState(null, "", toHash(after)), 150);
      return { state: after, strange: [] };
    });

  const turn = (view: View) => {
    clearTimeout(timer.current);
    history.replaceState(null, "", toHash(state));
    const after = { ...state, view };
    history.pushState(null, "", toHash(after));
    setRead({ state: after, strange: [] });
    say(TITLES[view][0]);
  };

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        To the content
      </a>
      <header class="masthead">
        <p class="wordmark">
          fence<b>gate</b>
        </p>
        <nav aria-label="Views">
          {(Object.keys(TITLES) as View[]).map((view) => (
            <a
              key={view}
              href={toHash({ ...state, view })}
              aria-current={state.view === view ? "page" : undefined}
              onClick={(event) => (event.preventDefault(), turn(view))}
            >
              {TITLES[view][0]}
            </a>
          ))}
        </nav>
        <Theme />
      </header>
      <main id="main" tabIndex={-1}>
        <h1>{TITLES[state.view][1]}</h1>
        {strange.length > 0 && (
          <p class="strange" role="alert">
            The link says something that this page does not know ({strange.slice(0, 5).join(", ")}). The rest of it was taken.
          </p>
        )}
        {state.view === "size" && <SizeView state={state.size} set={(size) => set({ size })} />}
        {state.view === "check" && <CheckView state={state.check} set={(check) => set({ check })} />}
        {state.view === "watch" && <WatchView state={state.watch} set={(watch) => set({ watch })} />}
        {state.view === "gate" && <GateLoader />}
      </main>
      <footer>
        <p>
          Computed in this browser by the same core that runs in Rust and on a microcontroller; nothing leaves this page, and its
          address keeps every setting. A calculator and an emulator, not a certified safety function: where people can be hurt, a guard or an
          emergency stop must not depend on a lease or on these figures.
        </p>
      </footer>
      <p id="status" class="visually-hidden" role="status" />
    </>
  );
}
