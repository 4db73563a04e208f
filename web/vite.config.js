import { readFileSync } from "node:fs";
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

export default defineConfig({
  base: "./", // works on a sub-path
  resolve: { alias: { fencegate: here("../wasm/pkg/fencegate.js") } },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: false },
  server: { host: "127.0.0.1", fs: { allow: [here(".."), here(".")] } },
  plugins: [contentSecurityPolicy],
});
