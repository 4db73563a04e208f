// The icon as PNG, for systems that take no SVG: `node icons.mjs` draws it anew from public/icon.svg's own figures.

import { readFileSync, writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const here = (path) => new URL(`public/${path}`, import.meta.url);
export const ICONS = { "icon-192.png": 192, "icon-512.png": 512 };

/** Shades from the paper to the stroke: smooth edges, and four bits a pixel. */
const SHADES = 16;

/** The drawing: its width, its two colours, the strokes' width and their ends. */
function drawing() {
  const svg = readFileSync(here("icon.svg"), "utf8");
  const [, size] = svg.match(/viewBox="0 0 (\d+) /).map(Number);
  const [paper] = svg.match(/fill="(#\w{6})"/).slice(1);
  const [, path, stroke, width] = svg.match(/d="([^"]+)" stroke="(#\w+)" stroke-width="(\d+)" stroke-linecap="round"/);
  const lines = [...path.matchAll(/M(\d+),(\d+)([hv])(\d+)/g)].map(([, x, y, way, length]) => {
    const [left, top, far] = [x, y, length].map(Number);
    return [left, top, way === "h" ? left + far : left, way === "v" ? top + far : top];
  });
  return { size, paper, stroke, half: Number(width) / 2, lines };
}

const channels = (colour) => {
  const hex = colour.length === 4 ? colour.replace(/\w/g, "$&$&") : colour;
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
};

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** The icon at that many pixels. */
export function png(pixels) {
  const { size, paper, stroke, half, lines } = drawing();
  const rows = Array.from({ length: pixels }, (_, row) => {
    const bytes = Buffer.alloc(1 + Math.ceil(pixels / 2));
    for (let column = 0; column < pixels; column += 1) {
      const [x, y] = [column, row].map((at) => ((at + 0.5) * size) / pixels);
      const near = Math.min(
        ...lines.map(([x0, y0, x1, y1]) => Math.hypot(x - Math.min(Math.max(x, x0), x1), y - Math.min(Math.max(y, y0), y1))),
      );
      // How much of the pixel is stroke, as far as its middle tells.
      const covered = Math.min(Math.max(0.5 + ((half - near) * pixels) / size, 0), 1);
      const shade = Math.round(covered * (SHADES - 1));
      bytes[1 + (column >> 1)] |= column % 2 ? shade : shade << 4;
    }
    return bytes;
  });
  const [from, to] = [channels(paper), channels(stroke)];
  const palette = Array.from({ length: SHADES }, (_, n) => from.map((c, at) => Math.round(c + ((to[at] - c) * n) / (SHADES - 1))));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(pixels, 0);
  head.writeUInt32BE(pixels, 4);
  head.set([4, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const [name, pixels] of Object.entries(ICONS)) writeFileSync(here(name), png(pixels));
}
