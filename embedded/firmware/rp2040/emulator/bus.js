// What is wrong with an access before anybody is asked: rp2040js lets all of this pass. On the chip an unaligned access is a
// hard fault, and a store to ROM or flash never changes either; a firmware that does one of them goes wrong here at once.

import { hex } from "./registers.js";

/** Where ROM, flash and the flash's aliases end. */
const FIXED = 0x1400_0000;

/** @param {import('rp2040js').RP2040} chip */
export function watch(chip) {
  const { core, peripherals } = chip;
  // It is asked first by every store, and by a load only where there is neither ROM nor flash nor RAM.
  chip.findPeripheral = (address) => {
    if (address >>> 28 === 2) return undefined; // RAM: what is stored most
    if (address >>> 0 < FIXED) throw new Error(`${hex(address)} is stored to, or nothing is there (near ${hex(core.PC)})`);
    return peripherals[(address >>> 14) << 2];
  };
  const unaligned = (/** @type {number} */ address) =>
    new Error(`${hex(address)} is not aligned for what is read or written there (near ${hex(core.PC)})`);
  core.readUint16 = (address) => {
    if (address & 1) throw unaligned(address);
    return chip.readUint16(address);
  };
  core.writeUint16 = (address, value) => {
    if (address & 1) throw unaligned(address);
    chip.writeUint16(address, value);
  };
  core.writeUint32 = (address, value) => {
    if (address & 3) throw unaligned(address);
    chip.writeUint32(address, value);
  };
}
