// The USB controller as a device, with what a cable and a host do to it (`usb-host.js`). The emulator's own never makes the
// firmware wait: each packet is taken at once, and a bus without a host is not idle.
//
// | offset | register | what is modelled |
// |---|---|---|
// | 0x00 | ADDR_ENDP | the device's address |
// | 0x40 | MAIN_CTRL | CONTROLLER_EN; the host's side throws |
// | 0x4c | SIE_CTRL | PULLUP_EN joins the bus; EP0_INT_1BUF must be set with it |
// | 0x50 | SIE_STATUS | VBUS_DETECTED, SUSPENDED, RESUME, CONNECTED, SETUP_REC, BUS_RESET; all but the first are cleared by a one |
// | 0x54 | INT_EP_CTRL | kept (it is the host's side's) |
// | 0x58 | BUFF_STATUS | a bit a buffer that is done, cleared by a one |
// | 0x68 | EP_STALL_ARM | both bits; a set-up packet clears them |
// | 0x74, 0x78 | USB_MUXING, USB_PWR | kept |
// | 0x8c, 0x90, 0x98 | INTR, INTE, INTS | BUFF_STATUS, BUS_RESET, DEV_CONN_DIS, DEV_SUSPEND, DEV_RESUME_FROM_HOST, SETUP_REQ |
//
// Any other register throws, but for the zero that embassy's driver writes at first to each up to 0x98. Of the buffers in
// the DPRAM the first of each endpoint is modelled, with its length, PID, STALL, AVAILABLE and FULL; each that is done says
// so (INTERRUPT_PER_BUFF in its endpoint's control, without which it throws). A bus on which nothing happens for 3 ms is
// suspended; so is one without a host, where the board's own pull-up holds the line idle.

import { BasePeripheral } from "rp2040js";
import { hex } from "./registers.js";

const IRQ = 5;
/** Buffer control. */
const [LENGTH, AVAILABLE, STALL, DATA1, FULL] = [0x3ff, 1 << 10, 1 << 11, 1 << 13, 1 << 15];
/** SIE_STATUS. */
const [VBUS, SUSPENDED, RESUME, CONNECTED, SETUP, RESET] = [1, 1 << 4, 1 << 11, 1 << 16, 1 << 17, 1 << 19];
/** INTR. */
const BUFF_STATUS = 1 << 4;
const RAISED_BY = [[RESET, 1 << 12], [CONNECTED, 1 << 13], [SUSPENDED, 1 << 14], [RESUME, 1 << 15], [SETUP, 1 << 16]];
const SOURCES = RAISED_BY.reduce((all, [, bit]) => all | bit, BUFF_STATUS);
/** SIE_CTRL. */
const [PULLUP_EN, EP0_INT_1BUF] = [1 << 16, 1 << 29];
/** After so long without a start of frame a bus is suspended, in ns. */
const IDLE = 3e6;
const KEPT = [0x54, 0x74, 0x78];
/** The last register that the driver writes a zero to. */
const LAST = 0x98;
/** An endpoint's control: ENABLE and INTERRUPT_PER_BUFF, its kind, where its buffer lies. */
const [PER_BUFFER, KIND, PLACE] = [(1 << 31) | (1 << 29), 3 << 26, 0xffc0];

export class Usb extends BasePeripheral {
  #kept = new Map(KEPT.map((offset) => [offset, 0]));
  #address = 0;
  #main = 0;
  #sieCtrl = 0;
  #sieStatus = 0;
  #done = 0;
  #stall = 0;
  #enabled = 0;
  #host;
  #idle;

  /** @param {import('rp2040js').RP2040} chip @param {import("./usb-host.js").UsbHost} host */
  constructor(chip, host) {
    super(chip, "USB");
    this.#host = host;
    this.#idle = chip.clock.createAlarm(() => this.#raise(SUSPENDED));
    host.meet(this);
  }

  /** Whether its pull-up holds the line: a host sees that something is there. */
  get isThere() {
    return (this.#sieCtrl & PULLUP_EN) !== 0 && (this.#main & 1) !== 0;
  }

  /** The host has come (its frames begin), or has gone (they end). @param {boolean} there */
  frames(there) {
    if (there) this.#idle.cancel();
    else if (this.isThere) this.#idle.schedule(IDLE);
  }

  /** The host resets the bus. */
  reset() {
    this.#raise(RESET | CONNECTED);
  }

  /** The host sends a set-up packet to `address`. @param {number} address @param {Uint8Array} packet */
  setup(address, packet) {
    if (address !== this.#address) throw new Error(`USB: the host speaks to ${address}, the device is ${this.#address}`);
    this.rp2040.usbDPRAM.set(packet, 0);
    this.#stall = 0;
    this.#raise(SETUP);
  }

  /**
   * The host asks an endpoint for a packet: what there is, `null` for none yet, "stall" for a refusal.
   *
   * @param {number} endpoint @param {boolean} data1 which of the two kinds is due
   * @returns {Uint8Array | null | "stall"}
   */
  take(endpoint, data1) {
    const at = 0x80 + 8 * endpoint;
    const control = this.#buffer(at);
    if (this.#stalled(endpoint, control, 1)) return "stall";
    if (!(control & AVAILABLE)) return null;
    if (((control & DATA1) !== 0) !== data1 || !(control & FULL)) throw new Error(`USB: endpoint ${endpoint} is out of step`);
    const from = this.#place(endpoint, 0);
    const packet = this.rp2040.usbDPRAM.slice(from, from + (control & LENGTH));
    this.#settle(at, control & ~(AVAILABLE | FULL), 2 * endpoint);
    return packet;
  }

  /**
   * The host offers an endpoint a packet: whether it took it; "stall" for a refusal.
   *
   * @param {number} endpoint @param {Uint8Array} packet @param {boolean} data1
   * @returns {boolean | "stall"}
   */
  give(endpoint, packet, data1) {
    const at = 0x84 + 8 * endpoint;
    const control = this.#buffer(at);
    if (this.#stalled(endpoint, control, 2)) return "stall";
    if (!(control & AVAILABLE)) return false;
    if (((control & DATA1) !== 0) !== data1) throw new Error(`USB: endpoint ${endpoint} is out of step`);
    if (packet.length > (control & LENGTH)) throw new Error(`USB: ${packet.length} bytes for endpoint ${endpoint}`);
    this.rp2040.usbDPRAM.set(packet, this.#place(endpoint, 4));
    this.#settle(at, (control & ~(AVAILABLE | LENGTH)) | FULL | packet.length, 2 * endpoint + 1);
    return true;
  }

  /** The emulator says that a word of the DPRAM was written. @param {number} offset @param {number} value */
  DPRAMUpdated(offset, value) {
    if (offset % 4 !== 0) throw new Error(`USB: ${hex(offset)} in the DPRAM is no word's place`);
    if (offset < 0x80 || offset >= 0x100) return;
    if ((value >>> 16) & AVAILABLE) throw new Error("USB: second buffers are not modelled");
    if (value & (AVAILABLE | STALL)) this.#host.somethingChanged();
  }

  /** @param {number} at */
  #buffer(at) {
    return this.rp2040.usbDPRAMView.getUint32(at, true);
  }

  /** @param {number} endpoint @param {number} control @param {number} arm endpoint 0's bit in EP_STALL_ARM */
  #stalled(endpoint, control, arm) {
    return (control & STALL) !== 0 && (endpoint !== 0 || (this.#stall & arm) !== 0);
  }

  /** Where an endpoint's buffer lies. @param {number} endpoint @param {0 | 4} direction 4 is out */
  #place(endpoint, direction) {
    if (endpoint === 0) return 0x100;
    const control = this.#buffer(8 * endpoint + direction);
    if ((control & ~(KIND | PLACE)) !== PER_BUFFER) {
      throw new Error(`USB: endpoint ${endpoint}'s control ${hex(control)} is not modelled`);
    }
    return control & PLACE;
  }

  /** A buffer is done. @param {number} at @param {number} control @param {number} bit */
  #settle(at, control, bit) {
    this.rp2040.usbDPRAMView.setUint32(at, control, true);
    this.#done |= 1 << bit;
    this.#interrupt();
  }

  /** @param {number} status */
  #raise(status) {
    this.#sieStatus |= status;
    this.#interrupt();
  }

  get #raw() {
    const raised = RAISED_BY.reduce((raw, [status, bit]) => raw | (this.#sieStatus & status ? bit : 0), 0);
    return raised | (this.#done !== 0 ? BUFF_STATUS : 0);
  }

  #interrupt() {
    this.rp2040.setInterrupt(IRQ, (this.#raw & this.#enabled) !== 0);
  }

  /** @param {number} offset */
  readUint32(offset) {
    offset &= 0xfff;
    switch (offset) {
      case 0x00:
        return this.#address;
      case 0x40:
        return this.#main;
      case 0x4c:
        return this.#sieCtrl;
      case 0x50:
        return this.#sieStatus | VBUS;
      case 0x58:
        return this.#done;
      case 0x68:
        return this.#stall;
      case 0x8c:
        return this.#raw;
      case 0x90:
        return this.#enabled;
      case 0x98:
        return this.#raw & this.#enabled;
      default: {
        const value = this.#kept.get(offset);
        if (value === undefined) throw new Error(`USB: register ${hex(offset)} is not modelled (read)`);
        return value;
      }
    }
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00:
        if (value & ~0x7f) throw new Error(`USB: an address ${hex(value)} is not modelled`);
        this.#address = value;
        break;
      case 0x40:
        if (value & ~1) throw new Error("USB: the host's side is not modelled");
        this.#main = value;
        this.#host.somethingChanged();
        break;
      case 0x4c:
        if (value & ~(PULLUP_EN | EP0_INT_1BUF)) throw new Error(`USB: SIE_CTRL ${hex(value)} is not modelled`);
        if (value === PULLUP_EN) throw new Error("USB: endpoint 0 without its interrupt is not modelled");
        this.#sieCtrl = value;
        this.frames(this.#host.isPlugged);
        this.#host.somethingChanged();
        break;
      case 0x50:
        // `rawWriteValue`: what was written, before the atomic alias was applied.
        this.#sieStatus &= ~this.rawWriteValue;
        break;
      case 0x58:
        this.#done &= ~this.rawWriteValue;
        break;
      case 0x68:
        if (value & ~3) throw new Error(`USB: EP_STALL_ARM ${hex(value)} is not modelled`);
        this.#stall = value;
        break;
      case 0x90:
        if (value & ~SOURCES) throw new Error(`USB: interrupts ${hex(value)} are not modelled`);
        this.#enabled = value;
        break;
      default:
        if (this.#kept.has(offset)) this.#kept.set(offset, value);
        else if (value !== 0 || offset > LAST) {
          throw new Error(`USB: register ${hex(offset)} is not modelled (${hex(value)} written)`);
        }
    }
    this.#interrupt();
  }
}
