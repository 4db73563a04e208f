// The page's beginning: the module first, since every number is its.

import init from "fencegate";
import { render } from "preact";
import { App } from "./app";

const host = document.getElementById("app");

async function start(): Promise<void> {
  if (!host) throw new Error("index.html has no #app");
  await init();
  host.replaceChildren();
  render(<App />, host);
  if (import.meta.env.PROD && "serviceWorker" in navigator) {
    // Without one (a private window, an old browser) the page works, only not offline.
    await navigator.serviceWorker.register("./sw.js").catch(() => undefined);
  }
}

start().catch((error: unknown) => {
  console.error(error);
  host?.replaceChildren(
    Object.assign(document.createElement("p"), {
      className: "noscript",
      textContent: "The page did not load: this browser has no WebAssembly, or a file is missing.",
    }),
  );
});
