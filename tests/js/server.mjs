// A static server on 127.0.0.1, with the page's own policy as a header, as `cargo xtask web` has it.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

const POLICY = (await readFile(new URL("../../web/csp.txt", import.meta.url), "utf8")).trim();

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
  ".wasm": "application/wasm",
};

/**
 * Serves the files of a folder below `base`, and beside them the `pages` that are handed over as text. What lies
 * outside of `base` is not there. Without `policy` no header is sent. A file is sent when what `before` says of its name
 * is over.
 */
export async function serve(folder, { base = "/", pages = {}, policy = POLICY, before = () => undefined } = {}) {
  const server = createServer(async ({ url }, response) => {
    const { pathname } = new URL(url, "http://127.0.0.1");
    const name = pathname.slice(base.length) || "index.html";
    try {
      if (!pathname.startsWith(base)) throw new Error("outside");
      await before(name);
      const body = pages[name] ?? (await readFile(new URL(name, folder)));
      response.writeHead(200, {
        "cache-control": "max-age=60", // Chromium asks for the icon whenever the address changes
        "content-type": TYPES[extname(name)] ?? "application/octet-stream",
        ...(policy && { "content-security-policy": `${policy}; frame-ancestors 'none'` }),
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections()));
  return { url: `http://127.0.0.1:${server.address().port}${base}`, close };
}
