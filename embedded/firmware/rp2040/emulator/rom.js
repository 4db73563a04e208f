// A boot ROM of our own: the table of functions where the chip has it, each of them a breakpoint that the emulator
// performs. No maker's ROM is needed.
//
// | address | what |
// |---|---|
// | 0x10 | `Mu`, 1, version 3 |
// | 0x14, 0x16, 0x18 | table of functions, table of data (empty), the function that looks things up (16 bits each) |
//
// | code | function | what it does here |
// |---|---|---|
// | `IF`, `FC` | connect the flash, flush the cache | nothing: the flash is always there, uncached |
// | `EX`, `CX` | leave XIP, enter XIP | from the one to the other, or to SSI's next start, there is nothing to read where the flash is |
// | `RE` | erase a range | sets bits, a sector of 4 KiB at a time, and takes its time |
// | `RP` | program a range | clears bits, a page of 256 bytes at a time, and takes its time |
// | `MC`, `C4`, `MS`, `S4` | memcpy, memset, and for whole words | that |
//
// A code that is not here is found as 0, as in the chip, and is named; whoever calls it lands at address 0, which throws. So do
// RE and RP within XIP or with interrupts on, whose handlers could be in the flash, and whoever reads or runs what is in the
// flash without XIP.

import { hex } from "./registers.js";

const CODES = ["IF", "EX", "RE", "RP", "FC", "CX", "MC", "C4", "MS", "S4"];
/** The function that looks up; its number among the breakpoints. */
const LOOK_UP = 0x7f;
const TABLE = 0x40;
const FUNCTIONS = 0x100;
/** Nothing is there. */
const NOWHERE = 0xfe;
/** Where the ROM ends. */
const END = 0x4000;
/** The second stage of the boot, without its check value. */
const STAGE = 252;

const code = (/** @type {string} */ name) => name.charCodeAt(0) | (name.charCodeAt(1) << 8);

/** Writes the ROM. @param {Uint32Array} rom */
export function write(rom) {
  const bytes = new DataView(rom.buffer);
  // Whatever jumps to 0 or to a vector meets this.
  for (let at = 0; at < FUNCTIONS; at += 2) bytes.setUint16(at, 0xbe00 | NOWHERE, true);
  bytes.setUint32(0x10, 0x0301754d, true);
  const place = (/** @type {number} */ n) => FUNCTIONS + 4 * n;
  const define = (/** @type {number} */ n, /** @type {number} */ number) => {
    bytes.setUint16(place(n), 0xbe00 | number, true); // BKPT number
    bytes.setUint16(place(n) + 2, 0x4770, true); // BX LR
    return place(n) | 1;
  };
  CODES.forEach((name, n) => {
    bytes.setUint16(TABLE + 4 * n, code(name), true);
    bytes.setUint16(TABLE + 4 * n + 2, define(n, n), true);
  });
  bytes.setUint32(TABLE + 4 * CODES.length, 0, true);
  bytes.setUint16(0x14, TABLE, true);
  bytes.setUint16(0x16, TABLE + 4 * CODES.length, true);
  bytes.setUint16(0x18, define(CODES.length, LOOK_UP), true);
}

/**
 * Whether the ROM would start what lies at the flash's begin: the second stage of the boot ends with its check value, a CRC-32
 * (polynomial 0x04c11db7, bits not reflected, not inverted) of all before it (RP2040 data sheet, 2.8.1.3.1).
 *
 * @param {Uint8Array} flash
 */
export function starts(flash) {
  const stage = new DataView(flash.buffer, flash.byteOffset, STAGE + 4);
  return stage.getUint32(STAGE, true) === check(flash.subarray(0, STAGE));
}

/** @param {Uint8Array} bytes */
export function check(bytes) {
  let value = 0xffff_ffff;
  for (const byte of bytes) {
    value ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ 0x04c1_1db7 : value << 1;
  }
  return value >>> 0;
}

/**
 * Performs the function behind a breakpoint.
 *
 * @param {import('rp2040js').RP2040} chip
 * @param {number} number of the breakpoint
 * @param {{ xip: boolean, erase(offset: number): void, program(offset: number, bytes: Uint8Array): void }} flash
 * @throws where there is none, or it may not be called there
 */
export function perform(chip, number, flash) {
  const { core } = chip;
  const { registers } = core;
  const [r0, r1, r2] = registers;
  if (core.PC - 2 >>> 0 >= END) throw new Error(`a breakpoint at ${hex(core.PC - 2)}, which nobody waits for`);
  const alone = () => {
    if (flash.xip) throw new Error("flash: it is changed within XIP");
    if (!core.PM) throw new Error("flash: it is changed with interrupts on");
  };
  if (number === LOOK_UP) {
    for (let at = r0; chip.readUint16(at) !== 0; at += 4) {
      if (chip.readUint16(at) === (r1 & 0xffff)) {
        registers[0] = chip.readUint16(at + 2);
        return;
      }
    }
    registers[0] = 0;
    return;
  }
  switch (CODES[number]) {
    case "EX":
    case "CX":
      flash.xip = CODES[number] === "CX";
      return;
    case "IF":
    case "FC":
      return;
    case "RE":
      alone();
      aligned(r0, r1, 4096);
      for (let offset = r0; offset < r0 + r1; offset += 4096) flash.erase(offset);
      return;
    case "RP":
      alone();
      aligned(r0, r2, 256);
      for (let done = 0; done < r2; done += 256) {
        flash.program(r0 + done, Uint8Array.from({ length: 256 }, (_, n) => chip.readUint8(r1 + done + n)));
      }
      return;
    case "MC":
    case "C4":
      for (let n = 0; n < r2; n++) chip.writeUint8(r0 + n, chip.readUint8(r1 + n));
      return;
    case "MS":
    case "S4":
      for (let n = 0; n < r2; n++) chip.writeUint8(r0 + n, r1 & 0xff);
      return;
    default:
      throw new Error(`breakpoint ${number} at ${hex(core.PC - 2)} is no function of the boot ROM`);
  }
}

/** @param {number} offset @param {number} length @param {number} unit */
function aligned(offset, length, unit) {
  if (offset % unit !== 0 || length % unit !== 0) {
    throw new Error(`flash: ${length} bytes at ${offset} are no whole number of ${unit}`);
  }
}
