#!/usr/bin/env node
// How long the board takes to boot, and how fast the emulator runs here, as JSON.
//
//     node speed.js --image gate.uf2 --flash gate.flash
//
// Of a boot, in the board's nanoseconds since the boot loader's hand-over: when the last output is an output, and low; when the
// gate's loop has come round for the first time, which sets the LED: blank, and with the flash of that file. Of the speed:
// nanoseconds of the board for a millisecond of the host. Idle, the processor sleeps between the beats of the gate's loop. Busy,
// noise comes in at ten times the line's usual speed.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Board, FLASH_LENGTH, OUTPUT_COUNT } from "./board.js";

/** SIO's GPIO_OUT_SET and GPIO_OUT_CLR, and the LED's bit. */
const [SET, CLEAR, LAMP] = [0x14, 0x18, 1 << 25];

const { values: options } = parseArgs({ options: { image: { type: "string" }, flash: { type: "string" } } });
if (!options.image || !options.flash) throw new Error("--image and --flash are needed");
const [image, memory] = [readFileSync(options.image), readFileSync(options.flash)];

/** Boots with a flash: when the outputs are low, and when the loop has begun. @param {Uint8Array} memory */
function boot(memory) {
  let [low, loop] = [0, 0];
  const board = new Board(image, memory, { sent() {} });
  const { sio } = board.chip;
  const write = sio.writeUint32;
  sio.writeUint32 = (offset, value) => {
    // Whoever makes the pin an output sets it before that.
    if ((offset === SET || offset === CLEAR) && value & sio.gpioOutputEnable & LAMP) loop ||= board.nanos;
    write(offset, value);
  };
  while (low === 0 || loop === 0) {
    board.run(board.nanos + 10_000);
    const pins = board.chip.gpio.slice(2, 2 + OUTPUT_COUNT);
    if (pins.every((pin) => pin.outputEnable && !pin.outputValue)) low ||= board.nanos;
    if (board.nanos > 10e9) throw new Error("no loop within ten seconds");
  }
  return { low: Math.round(low), loop: Math.round(loop) };
}

const boots = { blank: boot(new Uint8Array(FLASH_LENGTH).fill(0xff)), provisioned: boot(memory) };
const board = new Board(image, memory, { sent() {} });

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
console.log(JSON.stringify({ boots, idle, busy, hertz: board.chip.clkSys }));
