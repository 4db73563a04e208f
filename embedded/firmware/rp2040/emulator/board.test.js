// The board without its firmware: what a few instructions see, and that nothing is made up.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Board, FLASH_LENGTH, WORST } from "./board.js";

/** A UF2 image with `code` (Thumb, 16 bits each) at the flash's begin; words for `ldr` may follow. @param {number[]} code */
function image(code) {
  const block = new DataView(new ArrayBuffer(512));
  [0x0a324655, 0x9e5d5157, 0, 0x1000_0000, 256, 0, 1, 0].forEach((word, n) => block.setUint32(4 * n, word, true));
  code.forEach((half, n) => block.setUint16(32 + 2 * n, half, true));
  block.setUint32(508, 0x0ab16f30, true);
  return new Uint8Array(block.buffer);
}

const word = (/** @type {number} */ n) => [n & 0xffff, n >>> 16];
const STAY = 0xe7fe;

/** @param {number[]} code @param {Partial<import("./board.js").Outside>} [outside] */
function board(code, outside = {}) {
  return new Board(image(code), new Uint8Array(FLASH_LENGTH).fill(0xff), { sent() {}, ...outside });
}

/** `ldr r0, =address; ldr r1, [r0]; b .` @param {number} address */
const reads = (address) => [0x4801, 0x6801, STAY, STAY, ...word(address), ...word(0)];
/** `ldr r0, =address; ldr r1, =value; str r1, [r0]; b .` @param {number} address @param {number} value */
const writes = (address, value) => [0x4801, 0x4902, 0x6001, STAY, ...word(address), ...word(value)];

test("what is not modelled throws and says what it is", () => {
  for (const [code, what] of /** @type {[number[], RegExp][]} */ ([
    [reads(0x4003_4050), /UART0: register 0x50 is not modelled/],
    [writes(0x4003_4048, 1), /UART0: DMA is not modelled/],
    [writes(0x4003_402c, 0x7f), /UART0: line control 0x7f is not modelled/],
    [reads(0x1400_0010), /XIP_CTRL: register 0x10 is not modelled/],
    [reads(0x4006_0ffc), /ROSC: register 0xffc is not modelled/],
    [writes(0x4001_8000, 1), /IO_QSPI_BASE/],
    [reads(0x5011_0060), /USB: register 0x60 is not modelled/],
    [writes(0x5011_0040, 3), /USB: the host's side is not modelled/],
    [writes(0x5010_0080, 0x0400_0000), /USB: second buffers are not modelled/],
    [reads(0x6000_0000), /60000000/],
    [[0x4700], /no function of the boot ROM/], // bx r0, with r0 = 0
  ])) {
    assert.throws(() => board(code).run(1_000_000), what);
  }
});

test("what is no image, and a memory that is too long", () => {
  const memory = new Uint8Array(FLASH_LENGTH);
  const outside = { sent() {} };
  assert.throws(() => new Board(new Uint8Array(100), memory, outside), /UF2/);
  assert.throws(() => new Board(new Uint8Array(512), memory, outside), /magic/);
  assert.throws(() => new Board(image([STAY]), new Uint8Array(FLASH_LENGTH + 1), outside), /131072/);
});

test("it runs as far as it is told and no further, and a branch to itself costs nothing", () => {
  const idle = board([STAY]);
  idle.run(3_600e9);
  assert.ok(idle.nanos >= 3_600e9 && idle.nanos < 3_600e9 + 1_000, String(idle.nanos));
});

test("the watchdog bites when its load is counted down, two counts a microsecond", () => {
  /** @type {[string, number][]} */
  const resets = [];
  // WATCHDOG at 0x4005_8000: LOAD 2,000; CTRL enable.
  const code = [0x4802, 0x4903, 0x6041, 0x4903, 0x6001, STAY, ...word(0x4005_8000), ...word(2_000), ...word(0x4000_0000)];
  const bitten = board(code, { reset: (why) => void resets.push([why, bitten.nanos]) });
  bitten.run(2_500_000);
  assert.deepEqual(resets.map(([why]) => why), ["watchdog", "watchdog"]);
  assert.ok(Math.abs(resets[0][1] - 1_000_000) < 1_000 && Math.abs(resets[1][1] - 2_000_000) < 2_000, String(resets));
});

test("an erase takes its time, reaches the outside before it is over, and leaves dead cells as they are", () => {
  // rom_table_lookup is at 0x18; here its functions are called where the table has them: `RE` is the third.
  const erase = 0x100 + 4 * 2 + 1;
  const [r0, r1] = [0x001e_0000, 0x2000];
  const code = [0x4802, 0x4903, 0x4a03, 0x4790, STAY, STAY, ...word(r0), ...word(r1), ...word(erase)];
  /** @type {[number, number][]} */
  const stored = [];
  /** @type {[number, number][]} */
  const erased = [];
  const short = new Board(image(code), new Uint8Array(0x1800), {
    sent() {},
    stored: (at, bytes) => void stored.push([at, bytes.length]),
    erased: (from, to) => void erased.push([from, to]),
  });
  short.flashTime = WORST;
  short.run(1_000);
  assert.deepEqual(stored, [[0, 0x1000], [0x1000, 0x800]]);
  assert.deepEqual(erased.map(([from, to]) => to - from), [400e6, 400e6]);
  assert.ok(short.nanos >= 800e6, "the processor stands still meanwhile");
  const cell = (/** @type {number} */ at) => short.chip.readUint8(0x1300_0000 + r0 + at);
  assert.deepEqual([cell(0), cell(0x17ff), cell(0x1800), cell(0x1fff)], [0xff, 0xff, 0, 0]);
});

test("a processor that sleeps is not at work", () => {
  const asleep = board([0xbf20, 0xe7fd]); // wfe; b back
  asleep.run(1_000_000);
  assert.ok(asleep.busy < 10_000, String(asleep.busy));
  const awake = board([0x3001, 0xe7fd]); // adds r0, #1; b back
  awake.run(1_000_000);
  assert.equal(awake.busy, awake.nanos);
});

test("a USB bus without a host is suspended after 3 ms, and one with a host is reset", () => {
  // r0 = the controller; MAIN_CTRL enable; SIE_CTRL pull-up; and then r2 = SIE_STATUS again and again.
  const code = [0x4803, 0x2101, 0x6401, 0x4903, 0x64c1, 0x6d02, 0xe7fd, STAY, ...word(0x5011_0000), ...word(0x2001_0000)];
  const there = board(code);
  const status = (/** @type {number} */ ms) => (there.run(ms * 1e6), there.chip.core.registers[2] & 0x8_0010);
  assert.deepEqual([status(2.9), status(3.1)], [0, 0x10]);
  there.usb.plug(true);
  assert.deepEqual([status(100), status(120)], [0x10, 0x8_0010]);
});

test("the same calls give the same run", () => {
  const runs = [0, 1].map(() => {
    const one = board([0x3001, 0xe7fd]); // adds r0, #1; b back
    for (let n = 1; n <= 10; n++) one.run(n * 12_345);
    return [one.nanos, one.chip.core.registers[0]];
  });
  assert.deepEqual(runs[0], runs[1]);
});
