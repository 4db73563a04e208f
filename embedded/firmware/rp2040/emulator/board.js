// The Raspberry Pi Pico with the gate's wiring, run by rp2040js 1.4.1: the unmodified image, on a clock of its own.
//
// It runs in Node and in a browser's worker, imports nothing of either, and knows no real time: whoever holds it says how
// far to run. Runs are repeatable to the instruction. What is not modelled throws, and is named: `registers.js` has every
// register that is, and `bus.js` what no access may do.
//
// Of the emulator's own, these are replaced or added: the boot ROM and the flash behind it (`rom.js`), UART0 (`uart.js`),
// the USB controller (`usb.js`) and a host for it (`usb-host.js`), the PIO's clock (`pio.js`), a few more registers
// (`registers.js`), the watchdog's reset, and SEV.
// The emulator's own `Simulator` is not used: in WFE it jumps to the next alarm, which may be 71 minutes away.

import { GPIOPinState, RP2040 } from "rp2040js";
import { watch } from "./bus.js";
import { Log } from "./log.js";
import { onTheClock } from "./pio.js";
import { ALL_BUT_OSCILLATORS, guard, hex } from "./registers.js";
import * as rom from "./rom.js";
import { Uart } from "./uart.js";
import * as uf2 from "./uf2.js";
import { UsbHost } from "./usb-host.js";
import { Usb } from "./usb.js";

/** Bytes of the gate's memory, the last of the flash (`src/flash.rs`). */
export const FLASH_LENGTH = 128 * 1024;
/** Bytes of the whole flash. */
const FLASH_SIZE = 2 * 1024 * 1024;
/** Where the gate's memory begins in it. */
const FLASH_BEGIN = FLASH_SIZE - FLASH_LENGTH;
const [FLASH, RAM] = [0x1000_0000, 0x2000_0000];
/** The GPIOs (`src/board.rs`). */
const [OUTPUTS, CONTACTS, INHIBIT, PRESENCE, LAMP] = [2, 8, 14, 15, 25];
/** `b .` */
const STAY_HERE = 0xe7fe;
/** How many outputs there are. */
export const OUTPUT_COUNT = 6;
/** What a contact behind an output does. */
export const CONTACT = /** @type {const} */ (["follows", "open", "closed"]);

/**
 * @typedef {object} Outside what the board is joined to
 * @property {(byte: number) => void} sent a byte has left UART0
 * @property {(bytes: Uint8Array) => void} [received] the USB port has brought bytes to its host
 * @property {(outputs: number, nanos: number) => void} [moved] the outputs have changed: bit n is output n
 * @property {(lit: boolean, nanos: number) => void} [lit] the LED has changed
 * @property {(offset: number, bytes: Uint8Array) => void} [stored] cells of the gate's memory have changed; when this
 *   returns, they must outlast whatever comes
 * @property {(from: number, to: number) => void} [erased] a sector is being erased, in nanoseconds since the power came
 * @property {(said: Uint8Array) => void} [logged] a piece of the log, as `defmt` encodes it
 * @property {(why: 'watchdog' | 'firmware' | 'pin') => void} [reset] the chip has been reset
 */

/** How long the flash takes, in µs: the typical times of the Pico's (W25Q16JV). */
export const TYPICAL = { erase: 45_000, program: 400 };
/** The longest. */
export const WORST = { erase: 400_000, program: 3_000 };

export class Board {
  /** The chip. It is another after each reset. @type {RP2040} */
  chip;
  /** What the flash takes from now on, in µs. */
  flashTime = TYPICAL;
  /** The line's speed in bits a second, where the divider is not to say it. @type {number | null} */
  baud = null;
  /** Instructions that the processor has executed since the power came. */
  executed = 0;
  /** How often an output was seen that nobody drives and nothing pulls down, or an open contact that nothing pulls. */
  floated = 0;
  #image;
  #memory;
  /** What is in the flash, also while it cannot be read. @type {Uint8Array} */
  #flash;
  #outside;
  /** What the USB cable leads to, once it is plugged in. */
  usb = new UsbHost((bytes) => this.#outside.received?.(bytes));
  /** @type {Uart} */
  #uart;
  #log = new Log();
  /** Nanoseconds of earlier lives of the chip. */
  #before = 0;
  /** Nanoseconds a cycle. */
  #cycle = 8;
  /** Nanoseconds that the instruction under way takes beyond its cycles. */
  #blocked = 0;
  /** Nanoseconds that the processor has slept, and since when it sleeps. */
  #slept = 0;
  /** @type {number | null} */
  #asleep = null;
  /** @type {"watchdog" | "firmware" | "pin" | null} */
  #reset = null;
  #inputs = { inhibit: false, presence: false, contacts: Array(OUTPUT_COUNT).fill(CONTACT[0]) };
  #outputs = 0;

  /**
   * Switches the power on.
   *
   * @param {Uint8Array} image the firmware, as UF2
   * @param {Uint8Array} memory what the gate's part of the flash holds: all of it, or what is left of it. Cells that are not
   *   there read as 0 and neither an erase nor a program changes them.
   * @param {Outside} outside
   */
  constructor(image, memory, outside) {
    if (memory.length > FLASH_LENGTH) throw new Error(`the gate's memory has ${FLASH_LENGTH} bytes, not ${memory.length}`);
    [this.#image, this.#memory, this.#outside] = [image, memory.slice(), outside];
    this.#powerOn(null, true, []);
  }

  /** Nanoseconds since the power came. */
  get nanos() {
    return this.#before + this.chip.clock.nanos;
  }

  /** Nanoseconds since the power came in which the processor was at work, or stood for the flash. */
  get busy() {
    return this.nanos - this.#slept - (this.#asleep === null ? 0 : this.nanos - this.#asleep);
  }

  /** The outputs: bit n is output n. */
  get outputs() {
    return this.#outputs;
  }

  /** Bytes that are on the line towards the board. */
  get backlog() {
    return this.#uart.backlog;
  }

  /** Bytes that UART0 has lost since the last reset, because nobody took those before them. */
  get overruns() {
    return this.#uart.overruns;
  }

  /** Nanoseconds until something happens by itself: 0 while the processor is at work. */
  get idle() {
    const { core } = this.chip;
    return core.waiting && this.#reset === null ? this.#quiet() : 0;
  }

  /** Puts bytes onto the line: they arrive at its speed. @param {Uint8Array} bytes */
  feed(bytes) {
    this.#uart.feed(bytes.slice());
  }

  /** Presses the emergency stop, or pulls it out. @param {boolean} pressed */
  inhibit(pressed) {
    this.#inputs.inhibit = pressed;
    this.#wire();
  }

  /** Somebody steps up to the board, or leaves. @param {boolean} there */
  presence(there) {
    this.#inputs.presence = there;
    this.#wire();
  }

  /** Makes the contact behind an output do something. @param {number} output @param {typeof CONTACT[number]} what */
  contact(output, what) {
    this.#inputs.contacts[output] = what;
    this.#wire();
  }

  /** Pulls the RUN pin: the whole chip is reset. */
  pullRun() {
    this.#reset = "pin";
  }

  /** Changes cells of the flash or of RAM behind the firmware's back, those of the flash until the next reset: what a cosmic
   * ray would do. @param {number} address @param {Uint8Array} bytes */
  poke(address, bytes) {
    if (address < RAM) this.#flash.set(bytes, address - FLASH);
    else this.chip.sram.set(bytes, address - RAM);
  }

  /**
   * Runs until `nanos` since the power came. An instruction that is under way then runs to its end, and with it what the
   * flash takes.
   *
   * @param {number} nanos
   */
  run(nanos) {
    while (this.nanos < nanos) {
      this.#live(nanos - this.#before);
      if (this.#reset !== null) this.#restart(this.#reset);
    }
    this.#drain();
  }

  /**
   * Runs the chip until `until` of its clock, or a reset. It is the host's time: half of what an instruction costs is here.
   *
   * @param {number} until
   */
  #live(until) {
    const { core, clock } = this.chip;
    const { registers } = core;
    while (clock.nanosCounter < until && this.#reset === null) {
      if (core.waiting) {
        this.#asleep = this.nanos;
        clock.tick(Math.min(this.#quiet(), until - clock.nanosCounter));
        this.#slept += this.nanos - this.#asleep;
        this.#asleep = null;
        continue;
      }
      const pc = registers[15];
      this.executed++;
      clock.nanosCounter += core.executeInstruction() * this.#cycle;
      if (this.#blocked > 0) {
        const blocked = this.#blocked;
        this.#blocked = 0;
        clock.tick(blocked);
      } else if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) {
        clock.tick(0);
      } else if (registers[15] === pc && this.chip.readUint16((pc & ~1) >>> 0) === STAY_HERE) {
        // Nothing happens until something else does. Executed, it would cost the host ten times the time that it lasts.
        clock.tick(Math.min(this.#quiet(), Math.max(0, until - clock.nanosCounter)));
      }
    }
  }

  /** Nanoseconds until the next alarm. */
  #quiet() {
    return this.chip.clock.nextAlarm === null ? Infinity : this.chip.clock.nanosToNextAlarm;
  }

  /** @param {"watchdog" | "firmware" | "pin"} why */
  #restart(why) {
    this.#drain();
    this.#reset = null;
    const [old, line] = [this.chip, this.#uart.takeLine()];
    this.#before += old.clock.nanos;
    this.#log = new Log();
    this.#powerOn(old, why === "pin", line);
    this.#outside.reset?.(why);
  }

  /**
   * @param {RP2040 | null} old the chip before a reset: its RAM outlasts that
   * @param {boolean} cold whether the oscillators and the watchdog's REASON do not
   * @param {Uint8Array[]} line
   */
  #powerOn(old, cold, line) {
    const chip = new RP2040();
    this.chip = chip;
    // Until the firmware has set its clocks up, the processor runs on the ring oscillator.
    chip.clkSys = chip.roscFreq;
    this.#cycle = 1e9 / chip.clkSys;
    chip.addClockListener((frequency) => (this.#cycle = 1e9 / frequency));
    if (old) chip.sram.set(old.sram);
    chip.logger = this.#logger();
    rom.write(chip.bootrom);
    // As long as the Pico's: there is nothing behind its end.
    const flash = new Uint8Array(FLASH_SIZE).fill(0xff);
    const [there, none] = [flash, new Uint8Array()].map((flash) => ({ flash, flashView: new DataView(flash.buffer) }));
    Object.assign(chip, there);
    this.#flash = flash;
    uf2.load(this.#image, (address, bytes) => chip.flash.set(bytes, address - FLASH));
    if (!rom.starts(chip.flash)) throw new Error("the image's second stage of the boot has no right check value");
    chip.flash.fill(0, FLASH_BEGIN, FLASH_SIZE);
    chip.flash.set(this.#memory, FLASH_BEGIN);
    const performing = {
      erase: this.#erase,
      program: this.#program,
      get xip() {
        return chip.flash === flash;
      },
      set xip(on) {
        Object.assign(chip, on ? there : none);
      },
    };
    chip.onBreak = (number) => rom.perform(chip, number, performing);

    this.#uart = new Uart(chip, this.#outside.sent, () => this.baud);
    // The type says that it is the emulator's own, of which the chip needs `DPRAMUpdated` alone.
    const usb = new Usb(chip, this.usb);
    chip.usbCtrl = /** @type {any} */ (usb);
    chip.peripherals[0x40034] = this.#uart;
    chip.peripherals[0x50110] = usb;
    watch(chip);
    guard(chip, !cold);
    after(chip.peripherals[0x1_8000], (offset, value) => {
      // SSI is started to read by itself: XIP, as the second stage leaves it (CTRLR0's TMOD is 3).
      const { crtlr0 } = /** @type {any} */ (chip.peripherals[0x1_8000]);
      if (offset === 0x08 && value === 1 && ((crtlr0 >>> 8) & 3) === 3) performing.xip = true;
    });
    // A pull may have come or gone; the driver takes one away for a few instructions before it sets the other.
    after(chip.peripherals[0x4_001c], () => this.#wire(false));
    for (const pio of chip.pio) onTheClock(chip, pio);

    const watchdog = /** @type {any} */ (chip.peripherals[0x40058]);
    watchdog.tickEnable = false; // until TICK is written
    watchdog.onWatchdogTrigger = () => {
      const { wdsel } = /** @type {any} */ (chip.peripherals[0x40010]);
      if (wdsel !== ALL_BUT_OSCILLATORS) throw new Error(`PSM: a watchdog that resets ${hex(wdsel)} alone is not modelled`);
      // Its alarm would come again at once, for ever.
      watchdog.alarm.enable = false;
      // REASON: 1 the timer, 2 the firmware's own wish.
      this.#reset = watchdog.reason === 2 ? "firmware" : "watchdog";
    };
    if (old && !cold) watchdog.reason = /** @type {any} */ (old.peripherals[0x40058]).reason;

    for (const pin of chip.gpio.slice(OUTPUTS, OUTPUTS + OUTPUT_COUNT)) {
      pin.checkForUpdates(); // it does not know yet that it is pulled down
      pin.addListener(() => this.#look());
    }
    chip.gpio[LAMP].addListener((value) => this.#outside.lit?.(value === GPIOPinState.High, this.nanos));
    this.#look();
    this.#wire();
    // The second stage of the boot lies at the flash's begin; without a return address it goes on into the image.
    chip.core.PC = FLASH;
    chip.core.LR = 0;
    // Where the boot ROM leaves the stack: at the end of RAM.
    chip.core.SP = 0x2004_2000;
    for (const bytes of line) this.#uart.feed(bytes);
  }

  /** What the emulator finds fault with throws: it goes on as if nothing were. SEV it only mentions. */
  #logger() {
    const wrong = (/** @type {string} */ name, /** @type {string} */ message) => {
      const pc = this.chip.core.PC;
      throw new Error(`${name}: ${message} (near ${hex(pc)})`);
    };
    return {
      debug() {},
      info: (/** @type {string} */ _, /** @type {string} */ message) => {
        if (message === "SEV") this.chip.core.eventRegistered = true;
      },
      warn: wrong,
      error: wrong,
    };
  }

  #look() {
    let outputs = 0;
    for (let pin = 0; pin < OUTPUT_COUNT; pin++) {
      const { value } = this.chip.gpio[OUTPUTS + pin];
      if (value === GPIOPinState.High) outputs |= 1 << pin;
      else if (value !== GPIOPinState.Low && value !== GPIOPinState.InputPullDown) this.floated++;
    }
    if (outputs !== this.#outputs) {
      this.#outputs = outputs;
      this.#outside.moved?.(outputs, this.nanos);
      this.#wire();
    }
  }

  /** Sets the inputs as their contacts have them: those of the stop and behind the outputs close to ground, presence to 3.3 V.
   * An open one has the level that its pad pulls to; with neither pull or both it keeps the one it had.
   * @param {boolean} [counts] whether that is counted */
  #wire(counts = true) {
    const set = (/** @type {number} */ pin, /** @type {boolean} */ closed, /** @type {boolean} */ to) => {
      const gpio = this.chip.gpio[pin];
      const floats = !closed && gpio.pullupEnabled === gpio.pulldownEnabled;
      if (floats && counts) this.floated++;
      const level = closed ? to : floats ? gpio.rawInputValue : gpio.pullupEnabled;
      if (gpio.rawInputValue !== level) gpio.setInputValue(level);
    };
    set(INHIBIT, !this.#inputs.inhibit, false);
    set(PRESENCE, this.#inputs.presence, true);
    this.#inputs.contacts.forEach((contact, output) => {
      set(CONTACTS + output, contact === "follows" ? ((this.#outputs >> output) & 1) === 1 : contact === "closed", false);
    });
  }

  #erase = (/** @type {number} */ offset) => {
    const begun = this.nanos + this.#blocked;
    this.#blocked += this.flashTime.erase * 1000;
    this.#outside.erased?.(begun, this.nanos + this.#blocked);
    this.#cells(offset, 4096, () => 0xff);
  };

  #program = (/** @type {number} */ offset, /** @type {Uint8Array} */ bytes) => {
    this.#blocked += this.flashTime.program * 1000;
    this.#cells(offset, bytes.length, (cell, n) => cell & bytes[n]);
  };

  /**
   * Changes cells of the gate's memory.
   *
   * @param {number} offset in the flash @param {number} length
   * @param {(cell: number, n: number) => number} change
   */
  #cells(offset, length, change) {
    const at = offset - FLASH_BEGIN;
    if (at < 0 || at + length > FLASH_LENGTH) throw new Error(`flash: ${hex(offset)} is not the gate's to change`);
    const there = this.#memory.subarray(at, at + length);
    there.forEach((cell, n) => (there[n] = change(cell, n)));
    this.#flash.set(there, offset);
    if (there.length > 0) this.#outside.stored?.(at, there);
  }

  #drain() {
    const said = this.#log.take(this.chip.sramView);
    if (said.length > 0) this.#outside.logged?.(said);
  }
}

/**
 * Tells of each write to a block, once it is done.
 *
 * @param {{ writeUint32(offset: number, value: number): void }} block
 * @param {(offset: number, value: number) => void} tell
 */
function after(block, tell) {
  const write = block.writeUint32.bind(block);
  block.writeUint32 = (offset, value) => {
    write(offset, value);
    tell(offset, value);
  };
}
