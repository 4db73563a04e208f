// UART0, a PL011 with its FIFOs, at the speed that its divider says.
//
// | offset | register | what is modelled |
// |---|---|---|
// | 0x00 | DR | both FIFOs of 32; an overrun marks the next byte that is kept (bit 11) |
// | 0x18 | FR | TXFE, RXFF, TXFF, RXFE, BUSY |
// | 0x24, 0x28 | IBRD, FBRD | the speed |
// | 0x2c | LCR_H | kept; FIFOs must be on, and a character has 8 bits, no parity, one stop bit |
// | 0x30 | CR | UARTEN, TXE, RXE; nothing else: neither the loop back nor the modem's lines |
// | 0x34 | IFLS | both levels, of the five that there are |
// | 0x38, 0x3c, 0x40, 0x44 | IMSC, RIS, MIS, ICR | RX, TX, RT (receive time-out), OE; FE, PE and BE never come |
// | 0x48 | DMACR | reads 0, takes 0 |
//
// Anything else throws; so does a byte that is written while it cannot be sent. What leaves while GP0 is not UART0's, or comes
// while GP1 is not or is no input, is lost.
//
// The transmit interrupt is a passage of the FIFO's level down through the mark, and not the level itself; the receive
// time-out comes 32 bits after the last byte while some lie below the mark.

import { BasePeripheral } from "rp2040js";
import { hex } from "./registers.js";

const DEPTH = 32;
const MARKS = [4, 8, 16, 24, 28];
const OVERRUN = 1 << 11;
/** Bits of a character on the line: start, eight, stop. */
const BITS = 10;
const RX = 1 << 4;
const TX = 1 << 5;
const RT = 1 << 6;
const OE = 1 << 10;
const IRQ = 20;
/** FUNCSEL of its pins. */
const OWN = 2;
/** CR. */
const [UARTEN, TXE, RXE] = [1, 1 << 8, 1 << 9];
/** What may be asked for in IMSC. */
const SOURCES = RX | TX | RT | (0b111 << 7) | OE;

export class Uart extends BasePeripheral {
  #registers = new Map([[0x24, 0], [0x28, 0], [0x2c, 0], [0x30, 0x300], [0x34, 0x12], [0x38, 0], [0x48, 0]]);
  /** @type {number[]} */
  #received = [];
  /** @type {number[]} */
  #sending = [];
  #overrun = false;
  #raw = 0;
  /** Bytes on their way to the board, and how many of the first piece have arrived. @type {Uint8Array[]} */
  #line = [];
  #arrived = 0;
  #backlog = 0;
  #receiving = false;
  /** Bytes that came while the FIFO was full. */
  overruns = 0;
  /** What the shift register holds. @type {number | null} */
  #shifting = null;
  #arrival;
  #departure;
  #silence;
  #sent;
  #speed;

  /**
   * @param {import('rp2040js').RP2040} chip
   * @param {(byte: number) => void} sent a byte has left the board
   * @param {() => number | null} speed bits a second, where the divider is not to say it
   */
  constructor(chip, sent, speed = () => null) {
    super(chip, "UART0");
    this.#speed = speed;
    this.#sent = sent;
    this.#arrival = chip.clock.createAlarm(() => this.#arrive());
    this.#departure = chip.clock.createAlarm(() => this.#leave());
    this.#silence = chip.clock.createAlarm(() => this.#raise(RT));
  }

  /** Bytes that have not arrived yet. */
  get backlog() {
    return this.#backlog;
  }

  /** Puts bytes onto the line towards the board. @param {Uint8Array} bytes */
  feed(bytes) {
    if (bytes.length === 0) return;
    this.#line.push(bytes);
    this.#backlog += bytes.length;
    if (!this.#receiving) {
      this.#receiving = true;
      this.#arrival.schedule(this.#character());
    }
  }

  /** What is on the line when the board has no power any more. @returns {Uint8Array[]} */
  takeLine() {
    const [first, ...rest] = this.#line;
    return first ? [first.subarray(this.#arrived), ...rest] : [];
  }

  /** Nanoseconds that a character takes. Before the speed is set it is lost at that of the usual 115,200. */
  #character() {
    const divider = this.#get(0x24) + this.#get(0x28) / 64;
    const baud = this.#speed() ?? (divider === 0 ? 115_200 : this.rp2040.clkPeri / (16 * divider));
    return (BITS * 1e9) / baud;
  }

  #arrive() {
    const [piece] = this.#line;
    const byte = piece[this.#arrived++];
    this.#backlog--;
    if (this.#arrived === piece.length) {
      this.#line.shift();
      this.#arrived = 0;
    }
    const pin = this.rp2040.gpio[1];
    if ((this.#get(0x30) & (UARTEN | RXE)) === (UARTEN | RXE) && pin.functionSelect === OWN && pin.inputEnable) {
      if (this.#received.length >= DEPTH) {
        this.#overrun = true;
        this.overruns++;
        this.#raise(OE);
      } else {
        this.#received.push(byte | (this.#overrun ? OVERRUN : 0));
        this.#overrun = false;
      }
      this.#silence.schedule((32 / BITS) * this.#character());
      this.#marks();
    }
    this.#receiving = this.#line.length > 0;
    if (this.#receiving) this.#arrival.schedule(this.#character());
  }

  #leave() {
    // Of CTRL, all that is not FUNCSEL: an override of its level, or of who drives it.
    const { ctrl } = this.rp2040.gpio[0];
    if (this.#shifting !== null && ctrl === OWN) this.#sent(this.#shifting);
    this.#shifting = null;
    this.#shift();
  }

  /** Moves the next byte from the FIFO into the shift register. */
  #shift() {
    const before = this.#sending.length;
    if (before === 0) return;
    this.#shifting = /** @type {number} */ (this.#sending.shift());
    this.#departure.schedule(this.#character());
    const mark = MARKS[this.#get(0x34) & 7];
    if (before > mark && before - 1 <= mark) this.#raise(TX);
  }

  #marks() {
    const level = this.#received.length;
    if (level >= MARKS[(this.#get(0x34) >> 3) & 7]) this.#raw |= RX;
    else this.#raw &= ~RX;
    if (level === 0) {
      this.#raw &= ~RT;
      this.#silence.cancel();
    }
    this.#interrupt();
  }

  /** @param {number} what */
  #raise(what) {
    this.#raw |= what;
    this.#interrupt();
  }

  #interrupt() {
    this.rp2040.setInterrupt(IRQ, (this.#raw & this.#get(0x38)) !== 0);
  }

  /** @param {number} offset */
  #get(offset) {
    return /** @type {number} */ (this.#registers.get(offset));
  }

  /** @param {number} offset */
  readUint32(offset) {
    offset &= 0xfff;
    switch (offset) {
      case 0x00: {
        const byte = this.#received.shift() ?? 0;
        this.#marks();
        return byte;
      }
      case 0x18: {
        const [received, sending] = [this.#received.length, this.#sending.length];
        return (
          (sending === 0 ? 1 << 7 : 0) |
          (received >= DEPTH ? 1 << 6 : 0) |
          (sending >= DEPTH ? 1 << 5 : 0) |
          (received === 0 ? 1 << 4 : 0) |
          (this.#shifting !== null ? 1 << 3 : 0)
        );
      }
      case 0x3c:
        return this.#raw;
      case 0x40:
        return this.#raw & this.#get(0x38);
      default: {
        const value = this.#registers.get(offset);
        if (value === undefined) throw new Error(`UART0: register ${hex(offset)} is not modelled (read)`);
        return value;
      }
    }
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    switch (offset) {
      case 0x00:
        if ((this.#get(0x30) & (UARTEN | TXE)) !== (UARTEN | TXE)) {
          throw new Error("UART0: a byte is written while it does not send");
        }
        if (this.#sending.length >= DEPTH) throw new Error("UART0: a byte is written to a full FIFO");
        this.#sending.push(value & 0xff);
        if (this.#sending.length > MARKS[this.#get(0x34) & 7]) this.#raw &= ~TX;
        if (this.#shifting === null) this.#shift();
        break;
      case 0x2c:
        // Eight bits, FIFOs, no parity, one stop bit; before the driver has set it up, nothing.
        if (value !== 0 && value !== 0x70) throw new Error(`UART0: line control ${hex(value)} is not modelled`);
        this.#registers.set(offset, value);
        break;
      case 0x44:
        // `rawWriteValue`: what was written, before the atomic alias was applied.
        this.#raw &= ~this.rawWriteValue;
        break;
      case 0x48:
        if (value !== 0) throw new Error("UART0: DMA is not modelled");
        break;
      case 0x24:
      case 0x28:
        this.#registers.set(offset, value & 0xffff);
        break;
      case 0x30:
        if (value & ~(UARTEN | TXE | RXE)) throw new Error(`UART0: control ${hex(value)} is not modelled`);
        this.#registers.set(offset, value);
        break;
      case 0x34:
        if (value & ~0x3f || (value & 7) >= MARKS.length || value >>> 3 >= MARKS.length) {
          throw new Error(`UART0: there are no such levels of the FIFOs: ${hex(value)}`);
        }
        this.#registers.set(offset, value);
        break;
      case 0x38:
        if (value & ~SOURCES) throw new Error(`UART0: interrupts ${hex(value)} are not modelled`);
        this.#registers.set(offset, value);
        break;
      default:
        throw new Error(`UART0: register ${hex(offset)} is not modelled (${hex(value)} written)`);
    }
    this.#marks();
  }
}
