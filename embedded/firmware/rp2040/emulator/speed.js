#!/usr/bin/env node
// How fast the emulator runs here: nanoseconds of the board for a millisecond of the host, twice, as JSON.
//
//     node speed.js --image gate.uf2 [--flash gate.flash]
//
// Idle, the processor sleeps between the beats of the gate's loop. Busy, noise comes in at ten times the line's usual speed.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Board } from "./board.js";

const { values: options } = parseArgs({ options: { image: { type: "string" }, flash: { type: "string" } } });
if (!options.image) throw new Error("--image is needed");
const memory = options.flash ? readFileSync(options.flash) : new Uint8Array(128 * 1024).fill(0xff);
const board = new Board(readFileSync(options.image), memory, { sent() {} });

/** Runs for so long, in ns; what was run for a millisecond of the host, and how much of it the processor was at work.
 * @param {number} nanos */
function speed(nanos) {
  const [from, busy, begun] = [board.nanos, board.busy, performance.now()];
  board.run(from + nanos);
  const [ran, took] = [board.nanos - from, performance.now() - begun];
  return { nanosEachMs: Math.round(ran / took), busyPercent: Math.round((100 * (board.busy - busy)) / ran) };
}

board.run(1e9); // a boot
const idle = speed(20e9);
board.baud = 1_152_000;
board.feed(Uint8Array.from({ length: 100_000 }, (_, n) => (n * 167) & 0xff || 1));
const busy = speed(500e6);
console.log(JSON.stringify({ idle, busy, hertz: board.chip.clkSys }));
