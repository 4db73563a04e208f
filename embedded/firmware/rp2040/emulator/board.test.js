// The board without its firmware: what a few instructions see, and that nothing is made up.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Board, FLASH_LENGTH, WORST } from "./board.js";
import { check } from "./rom.js";

/** A UF2 image with `code` (Thumb, 16 bits each) at the flash's begin, as a second stage of the boot; words for `ldr` may follow.
 * @param {number[]} code */
function image(code) {
  const block = new DataView(new ArrayBuffer(512));
  [0x0a324655, 0x9e5d5157, 0, 0x1000_0000, 256, 0, 1, 0].forEach((word, n) => block.setUint32(4 * n, word, true));
  code.forEach((half, n) => block.setUint16(32 + 2 * n, half, true));
  block.setUint32(32 + 252, check(new Uint8Array(block.buffer, 32, 252)), true);
  block.setUint32(508, 0x0ab16f30, true);
  return new Uint8Array(block.buffer);
}

const word = (/** @type {number} */ n) => [n & 0xffff, n >>> 16];
/** Where the ROM has a function: they are called where its table has them. @param {"EX" | "RE" | "CX"} name */
const function_ = (name) => 0x100 + 4 * { EX: 1, RE: 2, CX: 5 }[name] + 1;
const STAY = 0xe7fe;

/** @param {number[]} code @param {Partial<import("./board.js").Outside>} [outside] */
function cold(code, outside = {}) {
  return new Board(image(code), new Uint8Array(FLASH_LENGTH).fill(0xff), { sent() {}, ...outside });
}

/** The same with no block held in reset, so that the code need not see to it. @type {typeof cold} */
function board(code, outside) {
  const awake = cold(code, outside);
  awake.chip.peripherals[0x4_000c].writeUint32(0, 0);
  return awake;
}

/** `ldr r0, =address; ldr r1, [r0]; b .` @param {number} address */
const reads = (address) => [0x4801, 0x6801, STAY, STAY, ...word(address), ...word(0)];
/** `ldr r0, =address; ldr r1, =value; str r1, [r0]; b .` @param {number} address @param {number} value */
const writes = (address, value) => [0x4801, 0x4902, 0x6001, STAY, ...word(address), ...word(value)];
/** A store to UART0's DR while CR is `value`. @param {number} value */
const sends = (value) => [0x4801, 0x4902, 0x6301, 0x6001, ...word(0x4003_4000), ...word(value), STAY];

test("what is not modelled throws and says what it is", () => {
  for (const [code, what] of /** @type {[number[], RegExp][]} */ ([
    // UART0.
    [reads(0x4003_4050), /UART0: register 0x50 is not modelled/],
    [writes(0x4003_4048, 1), /UART0: DMA is not modelled/],
    [writes(0x4003_402c, 0x7f), /UART0: line control 0x7f is not modelled/],
    [writes(0x4003_4030, 0x381), /UART0: control 0x381 is not modelled/], // the loop back
    [writes(0x4003_4034, 0x7), /UART0: there are no such levels of the FIFOs: 0x7/],
    [writes(0x4003_4034, 0x28), /UART0: there are no such levels of the FIFOs: 0x28/],
    [writes(0x4003_4038, 0x1), /UART0: interrupts 0x1 are not modelled/],
    [sends(0x300), /UART0: a byte is written while it does not send/],
    [sends(0x201), /UART0: a byte is written while it does not send/],
    // USB.
    [reads(0x5011_0060), /USB: register 0x60 is not modelled/],
    [writes(0x5011_0040, 3), /USB: the host's side is not modelled/],
    [writes(0x5011_0000, 0x80), /USB: an address 0x80 is not modelled/], // an endpoint of the host's side
    [writes(0x5011_0068, 4), /USB: EP_STALL_ARM 0x4 is not modelled/],
    [writes(0x5011_009c, 0), /USB: register 0x9c is not modelled/],
    [writes(0x5011_0090, 1), /USB: interrupts 0x1 are not modelled/],
    [writes(0x5010_0080, 0x0400_0000), /USB: second buffers are not modelled/],
    // What is in no table, or not all of it.
    [reads(0x1400_0010), /XIP_CTRL: register 0x10 is not modelled/],
    [reads(0x1800_0010), /SSI: register 0x10 is not modelled/],
    [writes(0x4000_8030, 1), /CLOCKS: register 0x30 is not modelled/],
    [writes(0x4000_8040, 0x200), /CLOCKS: register 0x40 is not modelled/],
    [writes(0x4000_c004, 1), /RESETS: register 0x4 is not modelled/],
    [writes(0x4001_0004, 4), /PSM: register 0x4 is not modelled/],
    [writes(0x4001_0008, 0x1_ffff), /PSM: register 0x8 is not modelled/],
    [writes(0x4001_4014, 0x1_0000), /IO_BANK0: register 0x14 is not modelled/], // an input's override
    [writes(0x4001_4014, 4), /IO_BANK0: register 0x14 is not modelled/], // PWM
    [reads(0x4001_4100), /IO_BANK0: register 0x100 is not modelled/],
    [writes(0x4001_c00c, 0x80), /PADS_BANK0: register 0xc is not modelled/], // an output that is off
    [writes(0x4002_4000, 0xd1_eaa0), /XOSC: register 0x0 is not modelled/],
    [writes(0x4002_4008, 0x636f_6d61), /XOSC: register 0x8 is not modelled/], // dormant
    [writes(0x4002_8004, 0x20), /PLL_SYS: register 0x4 is not modelled/],
    [reads(0x4005_4008), /TIMER: register 0x8 is not modelled/],
    [writes(0x4005_4030, 1), /TIMER: register 0x30 is not modelled/],
    [writes(0x4005_800c, 1), /WATCHDOG: register 0xc is not modelled/], // what outlasts a reset
    [writes(0x4005_802c, 0x201), /WATCHDOG: register 0x2c is not modelled/],
    [reads(0x4006_0ffc), /ROSC: register 0xffc is not modelled/],
    [writes(0x4006_4000, 0), /VREG: register 0x0 is not modelled/],
    [writes(0x5020_00cc, 0x2_0000), /PIO0: register 0xcc is not modelled/], // OUT_STICKY
    [writes(0x5020_00cc, 0x4_0000), /PIO0: register 0xcc is not modelled/], // INLINE_OUT_EN
    [writes(0x5020_00cc, 0x8_0000), /PIO0: register 0xcc is not modelled/], // OUT_EN_SEL
    ...[0x4000_0000, 0x8000_0000, 1] // SHIFTCTRL: one FIFO of both; what is not there
      .map((value) => /** @type {[number[], RegExp]} */ ([writes(0x5020_00d0, value), /PIO0: register 0xd0 is not modelled/])),
    // Instructions that are none: WAIT, IN, PUSH, MOV, IRQ, SET; and ones that make another (EXEC).
    ...[0x2060, 0x2048, 0x4080, 0x8001, 0xa018, 0xa060, 0xa004, 0xc080, 0xc008, 0xe060, 0xe0a0, 0x60e0, 0xa080, 0x1_0000]
      .flatMap((code) => [
        [writes(0x5020_0048, code), /PIO0: register 0x48 is not modelled/],
        [writes(0x5030_00d8, code), /PIO1: register 0xd8 is not modelled/],
      ])
      .map((pair) => /** @type {[number[], RegExp]} */ (pair)),
    [writes(0x5020_0038, 1), /PIO0: register 0x38 is not modelled/],
    [reads(0x5030_0020), /PIO1: register 0x20 is not modelled/],
    [writes(0x5000_000c, 1), /DMA: register 0xc is not modelled/],
    [reads(0x5000_0444), /DMA: register 0x444 is not modelled/],
    [reads(0xd000_0054), /SIO: register 0x54 is not modelled/], // core 1's FIFO
    [writes(0xd000_0054, 1), /SIO: register 0x54 is not modelled/],
    [reads(0xd000_0ffc), /SIO: register 0xffc is not modelled/],
    [writes(0xe000_e010, 1), /PPB: register 0x10 is not modelled/], // SysTick
    [writes(0xe000_ed0c, 0x05fa_0004), /PPB: register 0xd0c is not modelled/], // SYSRESETREQ, which leaves the peripherals
    // Who is not there at all.
    ...[
      ...[0x0000, 0x4000, 0x1_8000, 0x3_0000, 0x3_8000, 0x3_c000, 0x4_0000, 0x4_4000, 0x4_8000, 0x4_c000, 0x5_0000],
      ...[0x5_c000, 0x6_c000],
    ]
      .flatMap((at) => [reads(0x4000_0000 + at), writes(0x4000_0000 + at, 0)])
      .map((code) => /** @type {[number[], RegExp]} */ ([code, /^Error: [A-Z0-9_]+: register 0x0 is not modelled/])),
    // Memory.
    [reads(0x6000_0000), /60000000/],
    ...[0x1, 0x4000, 0x1000_0000, 0x101e_0000, 0x11ff_fffc, 0x1300_0000]
      .flatMap((at) => [writes(at & ~3, 0), [0x4801, 0x7001, STAY, STAY, ...word(at)]]) // a word; a byte
      .map((code) => /** @type {[number[], RegExp]} */ ([code, /is stored to, or nothing is there/])),
    [writes(0x2000_0002, 1), /0x20000002 is not aligned/],
    [writes(0x5010_0081, 1), /0x50100081 is not aligned/],
    [[0x4801, 0x8001, STAY, STAY, ...word(0x2000_0001)], /0x20000001 is not aligned/], // strh
    [[0x4801, 0x8801, STAY, STAY, ...word(0x2000_0001)], /0x20000001 is not aligned/], // ldrh
    [reads(0x2000_0002), /not 32 bit aligned/],
    [reads(0x1020_0000), /is stored to, or nothing is there/], // behind the flash's end
    [reads(0x1320_0000), /is stored to, or nothing is there/],
    [[0x4801, 0x7801, STAY, STAY, ...word(0x1020_0000)], /is stored to, or nothing is there/], // ldrb
    [[0x4700], /no function of the boot ROM/], // bx r0, with r0 = 0
    [[0xbe00], /a breakpoint at 0x10000000, which nobody waits for/], // bkpt
    [[0xde02], /a breakpoint at 0x10000000, which nobody waits for/], // udf
    [writes(0x4001_4014, 2), /IO_BANK0: register 0x14 is not modelled/], // UART0 on another pin
    // The ROM's functions for the flash: leave XIP, erase, from the flash itself.
    [[0x4800, 0x4780, ...word(function_("EX"))], /is stored to, or nothing is there/],
    [[0xb672, 0x4801, 0x4780, STAY, ...word(function_("RE"))], /flash: it is changed within XIP/],
  ])) {
    assert.throws(() => board(code).run(1_000_000), what);
  }
});

test("who is held in reset is not asked", () => {
  for (const [at, who] of /** @type {[number, string][]} */ ([
    [0x4001_4004, "IO_BANK0"], [0x4001_c004, "PADS_BANK0"], [0x4002_8004, "PLL_SYS"], [0x4002_c004, "PLL_USB"],
    [0x4003_4018, "UART0"], [0x5000_0000, "DMA"], [0x5011_0050, "USB"], [0x5020_0004, "PIO0"], [0x5030_0004, "PIO1"],
  ])) {
    const held = new RegExp(`${who}: it is held in reset`);
    assert.throws(() => cold(reads(at)).run(1_000_000), held);
    assert.throws(() => cold(writes(at, 0)).run(1_000_000), held);
    board(reads(at)).run(1_000_000);
  }
  cold(reads(0x4005_4028)).run(1_000_000); // TIMER, which nobody holds at first
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

/** PSM's WDSEL, if it is told to; REASON into r3; WATCHDOG's TICK, LOAD 2,000 and CTRL enable. @param {boolean} [told] */
const bites = (told = true) => [
  ...[0x4805, 0x4906, told ? 0x6081 : 0xbf00, 0x4806, 0x6883, 0x4906, 0x62c1, 0x4906, 0x6041, 0x4906, 0x6001, STAY],
  ...[0x4001_0000, 0x1_fffc, 0x4005_8000, 0x20c, 2_000, 0x4000_0000].flatMap(word),
];

test("a watchdog that is not told to reset all but the oscillators does not get away with it", () => {
  assert.throws(() => board(bites(false)).run(2e6), /PSM: a watchdog that resets 0x0 alone is not modelled/);
});

test("why the watchdog has bitten is forgotten where the RUN pin is pulled, and nowhere else", () => {
  const bitten = board(bites());
  const reason = (/** @type {number} */ nanos) => (bitten.run(nanos), bitten.chip.core.registers[3]);
  assert.deepEqual([reason(500_000), reason(1_500_000)], [0, 1]);
  bitten.pullRun();
  assert.equal(reason(1_600_000), 0);
});

test("the crystal's oscillator takes its time from a cold start, and none after a watchdog's reset", () => {
  // STARTUP 0xc4 as at reset: 256 · 196 / 12 MHz, 4.18 ms. CTRL enable, and STATUS into r2 again and again.
  const slow = board([0x4802, 0x4903, 0x6001, 0x6842, 0xe7fd, STAY, ...word(0x4002_4000), ...word(0xfa_baa0)]);
  const status = (/** @type {number} */ ms) => (slow.run(ms * 1e6), slow.chip.core.registers[2] >>> 0);
  assert.deepEqual([status(4.1), status(4.3)], [0x1000, 0x8000_1000]);
  slow.pullRun();
  assert.deepEqual([status(8.3), status(8.6)], [0x1000, 0x8000_1000]);
});

test("the watchdog bites when its load is counted down, two counts a microsecond", () => {
  /** @type {[string, number][]} */
  const resets = [];
  const bitten = board(bites(), { reset: (why) => void resets.push([why, bitten.nanos]) });
  bitten.run(2_500_000);
  assert.deepEqual(resets.map(([why]) => why), ["watchdog", "watchdog"]);
  // The instructions before it are the ring oscillator's, of 6.5 MHz.
  assert.ok(Math.abs(resets[0][1] - 1_000_000) < 6_000 && Math.abs(resets[1][1] - 2_000_000) < 12_000, String(resets));
});

/** Has code in RAM executed, where it can leave XIP. @param {Board} there @param {number[]} code */
function inRam(there, code) {
  there.poke(0x2000_0000, Uint8Array.from(code.flatMap((half) => [half & 0xff, half >>> 8])));
  there.chip.core.PC = 0x2000_0000;
}

/** Leaves XIP, erases the two sectors at 0x1e0000, enters XIP, and stays there. @param {number} interrupts `cpsid i` or `cpsie i` */
const erases = (interrupts) => [
  ...[interrupts, 0x4a05, 0x4790, 0x4805, 0x4905, 0x4a06, 0x4790, 0x4a06, 0x4790, STAY, STAY, STAY],
  ...[function_("EX"), 0x001e_0000, 0x2000, function_("RE"), function_("CX")].flatMap(word),
];

test("the flash is not changed with interrupts on", () => {
  const careless = board([STAY]);
  inRam(careless, erases(0xb662));
  assert.throws(() => careless.run(1_000_000), /flash: it is changed with interrupts on/);
});

test("an image whose second stage has rotted does not start", () => {
  const rotten = image([STAY]);
  rotten[32 + 100] ^= 1;
  assert.throws(() => new Board(rotten, new Uint8Array(FLASH_LENGTH), { sent() {} }), /second stage/);
});

test("an open contact has the level that its pad pulls to, and is counted where nothing does", () => {
  const pads = board([STAY]);
  const level = (/** @type {number} */ pin) => pads.chip.gpio[pin].rawInputValue;
  const pull = (/** @type {number} */ pin, /** @type {number} */ pad) => {
    pads.chip.peripherals[0x4_001c].writeUint32(4 + 4 * pin, pad);
  };
  assert.deepEqual([level(8), level(14), level(15), pads.floated], [false, false, false, 0], "pulled down, as at reset");
  for (const pin of [8, 9, 10, 11, 12, 13, 14]) pull(pin, 0x5a); // up
  assert.deepEqual([level(8), level(14)], [true, false], "open, and closed to ground");
  pads.inhibit(true);
  assert.equal(level(14), true);
  pads.presence(true);
  assert.equal(level(15), true);
  assert.equal(pads.floated, 0);
  pull(14, 0x52);
  assert.deepEqual([level(14), pads.floated], [true, 0], "for as long as nobody looks");
  pads.presence(false);
  assert.equal(pads.floated, 1);
});

/** Sends 0x55 at 115,200 baud: GP0's CTRL, the divider, LCR_H, CR, DR. @param {number} select FUNCSEL of GP0 */
const says = (select) => [
  ...[0x4807, 0x2100 | select, 0x6041, 0x4807, 0x2103, 0x6241, 0x2170, 0x62c1, 0x4905, 0x6301, 0x2155, 0x6001, STAY, STAY],
  ...[STAY, STAY],
  ...[0x4001_4000, 0x4003_4000, 0x301].flatMap(word),
];

test("UART0 is heard on its pin alone, and hears on its pin alone", () => {
  /** @type {number[]} */
  const sent = [];
  board(says(2), { sent: (byte) => void sent.push(byte) }).run(5e6);
  assert.deepEqual(sent, [0x55]);
  board(says(5), { sent: (byte) => void sent.push(byte) }).run(5e6); // SIO's
  assert.deepEqual(sent, [0x55]);

  const hears = (/** @type {number} */ select, /** @type {number} */ pad) => {
    const there = board(says(2));
    there.run(5e6);
    there.chip.peripherals[0x4_0014].writeUint32(0x0c, select);
    there.chip.peripherals[0x4_001c].writeUint32(0x08, pad);
    there.feed(Uint8Array.of(1));
    there.run(10e6);
    return (there.chip.peripherals[0x4_0034].readUint32(0x18) & 0x10) === 0;
  };
  assert.deepEqual([hears(2, 0x4a), hears(5, 0x4a), hears(2, 0x0a)], [true, false, false]);
});

test("an erase takes its time, reaches the outside before it is over, and leaves dead cells as they are", () => {
  const r0 = 0x001e_0000;
  /** @type {[number, number][]} */
  const stored = [];
  /** @type {[number, number][]} */
  const erased = [];
  const short = new Board(image([STAY]), new Uint8Array(0x1800), {
    sent() {},
    stored: (at, bytes) => void stored.push([at, bytes.length]),
    erased: (from, to) => void erased.push([from, to]),
  });
  inRam(short, erases(0xb672));
  short.flashTime = WORST;
  short.run(10_000);
  assert.deepEqual(stored, [[0, 0x1000], [0x1000, 0x800]]);
  assert.deepEqual(erased.map(([from, to]) => Math.round(to - from)), [400e6, 400e6]);
  assert.ok(short.nanos >= 800e6, "the processor stands still meanwhile");
  short.run(short.nanos + 10_000);
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
