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

/** Writes the service worker, with the names of everything that was built and a version that follows from them. */
const serviceWorker = {
  name: "service-worker",
  apply: "build",
  enforce: "post",
  generateBundle(_options, bundle) {
    const built = Object.values(bundle).map((file) => [file.fileName, file.code ?? file.source]);
    const kept = PUBLIC.map((name) => [name, readFileSync(here(`public/${name}`))]);
    const hash = createHash("sha256");
    for (const [name, content] of [...built, ...kept]) hash.update(name).update(content);
    const files = ["./", ...[...built, ...kept].map(([name]) => `./${name}`).filter((name) => name !== "./index.html")];
    const source = readFileSync(here("sw.js"), "utf8")
      .replace(/^ *\/\/.*\n/gm, "")
      .replace('"VERSION"', JSON.stringify(hash.digest("hex").slice(0, 16)))
      .replace('["FILES"]', JSON.stringify(files));
    this.emitFile({ type: "asset", fileName: "sw.js", source });
  },
};

export default defineConfig({
  base: "./", // works on a sub-path
  resolve: {
    alias: [
      { find: "fencegate/scenarios.json", replacement: here("../wasm/pkg/scenarios.json") },
      { find: "fencegate", replacement: here("../wasm/pkg/fencegate.js") },
    ],
  },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: false },
  server: { host: "127.0.0.1", fs: { allow: [here(".."), here(".")] } },
  plugins: [contentSecurityPolicy, serviceWorker],
});
