// Peripherals of which the firmware uses a few registers, and nothing behind them matters.

import { BasePeripheral } from "rp2040js";

/** A register that says so: writes are taken, and read back. */
export class Registers extends BasePeripheral {
  #values;

  /**
   * @param {import('rp2040js').RP2040} chip
   * @param {string} name
   * @param {Record<number, number>} values each register's offset, and its value at reset; any other register throws
   */
  constructor(chip, name, values) {
    super(chip, name);
    this.#values = new Map(Object.entries(values).map(([offset, value]) => [Number(offset), value]));
  }

  /** @param {number} offset */
  readUint32(offset) {
    const value = this.#values.get(offset & 0xfff);
    if (value === undefined) throw new Error(`${this.name}: register ${hex(offset)} is not modelled (read)`);
    return value;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    if (!this.#values.has(offset)) {
      throw new Error(`${this.name}: register ${hex(offset)} is not modelled (${hex(value)} written)`);
    }
    this.#values.set(offset, value);
  }
}

/** The cache's registers: there is no cache here, so it is always empty and ready. */
export class XipCtrl extends BasePeripheral {
  /** @param {number} offset */
  readUint32(offset) {
    switch (offset & 0xfff) {
      case 0x00: // CTRL: enabled
        return 3;
      case 0x04: // FLUSH: done
        return 0;
      case 0x08: // STAT: stream FIFO empty, flush ready
        return 3;
      case 0x14: // STREAM_ADDR
      case 0x18: // STREAM_CTR: no stream is under way
        return 0;
      default:
        throw new Error(`XIP_CTRL: register ${hex(offset)} is not modelled (read)`);
    }
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    // CTRL and FLUSH change nothing where there is no cache.
    if (offset !== 0x00 && offset !== 0x04) {
      throw new Error(`XIP_CTRL: register ${hex(offset)} is not modelled (${hex(value)} written)`);
    }
  }
}

/** @param {number} n */
export const hex = (n) => `0x${(n >>> 0).toString(16)}`;
