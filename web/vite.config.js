import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Puts csp.txt into the built page, for servers that send no header. (The development server needs inline styles.) */
const contentSecurityPolicy = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    {
      tag: "meta",
      attrs: { "http-equiv": "Content-Security-Policy", content: readFileSync(here("csp.txt"), "utf8").trim() },
      injectTo: "head-prepend",
    },
  ],
};

/** What lies in public/ and is part of the page offline. */
const PUBLIC = readdirSync(here("public")).sort();

/** What the page loads at once: its entry, and what that imports in any other way than when it is needed. */
function first(bundle) {
  const found = new Set();
  const add = (name) => {
    const file = bundle[name];
    if (!file || found.has(name)) return;
    found.add(name);
    for (const other of file.imports ?? []) add(other);
    for (const other of file.viteMetadata?.importedCss ?? []) add(other);
    for (const other of file.viteMetadata?.importedAssets ?? []) add(other);
  };
  for (const file of Object.values(bundle)) if (file.isEntry || file.fileName === "index.html") add(file.fileName);
  return found;
}

/**
 * Writes the service worker, with the names of everything that was built and a version that follows from them: what the
 * page begins with, and what comes later.
 */
const serviceWorker = {
  name: "service-worker",
  apply: "build",
  enforce: "post",
  generateBundle(_options, bundle) {
    const built = Object.values(bundle).map((file) => [file.fileName, file.code ?? file.source]);
    const kept = PUBLIC.map((name) => [name, readFileSync(here(`public/${name}`))]);
    const hash = createHash("sha256");
    for (const [name, content] of [...built, ...kept]) hash.update(name).update(content);
    const begins = first(bundle);
    const list = (names) => JSON.stringify(names.filter((name) => name !== "index.html").map((name) => `./${name}`));
    const [names, later] = [true, false].map((now) => built.map(([name]) => name).filter((name) => begins.has(name) === now));
    const source = readFileSync(here("sw.js"), "utf8")
      .replace(/^ *\/\/.*\n/gm, "")
      .replace('"VERSION"', JSON.stringify(hash.digest("hex").slice(0, 16)))
      .replace('["FILES"]', list(["", ...names, ...kept.map(([name]) => name)]))
      .replace('["LATER"]', list(later));
    this.emitFile({ type: "asset", fileName: "sw.js", source });
  },
};

/** The emulator's library looks for Node's clock with `eval`, in a branch that no browser takes; it is no part of the page. */
const withoutEval = () => ({
  name: "without-eval",
  transform(code, id) {
    if (!/rp2040js.*\/utils\/time\.js$/.test(id)) return undefined;
    return { code: code.replace("eval('require')('perf_hooks').performance.now()", "performance.now()"), map: null };
  },
});

export default defineConfig({
  base: "./", // works on a sub-path
  resolve: {
    alias: [
      { find: "fencegate/scenarios.json", replacement: here("../wasm/pkg/scenarios.json") },
      { find: "fencegate-gate", replacement: here("../wasm/gate/pkg/fencegate_gate.js") },
      { find: "fencegate-rp2040-emulator", replacement: here("../embedded/firmware/rp2040/emulator/board.js") },
      { find: "fencegate", replacement: here("../wasm/pkg/fencegate.js") },
    ],
  },
  worker: { format: "es", plugins: () => [withoutEval()] },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: false },
  server: { host: "127.0.0.1", fs: { allow: [here(".."), here(".")] } },
  plugins: [contentSecurityPolicy, serviceWorker],
});
