// Every register that this emulator has, but for those of UART0 (`uart.js`) and of the USB controller (`usb.js`), which
// are documented there. What is in none of the three throws, and is named; so does a value that is not modelled, and any
// access to a block that RESETS holds.
//
// {@link TABLE} says which registers may be read, what may be written to each, and what comes of it. It is the
// documentation, and {@link guard} holds every access against it. Behind it are rp2040js' own models, and those at the end
// of this file.

import { BasePeripheral } from "rp2040js";

/** @typedef {import('rp2040js').RP2040} RP2040 */
/** @typedef {(value: number, chip: RP2040) => boolean} Takes whether a value may be written */

/** @param {number} n */
export const hex = (n) => `0x${(n >>> 0).toString(16)}`;

/** Offsets from `first` to `last`. @param {number} first @param {number} last @param {number} [step] */
const each = (first, last, step = 4) => Array.from({ length: (last - first) / step + 1 }, (_, n) => first + step * n);
/** Only these values. @param {number[]} values @returns {Takes} */
const only = (...values) => (value) => values.includes(value >>> 0);
/** Any value. */
const ANY = 0xffff_ffff;
/** None: it is read. */
const READ = null;
/** A PLL's PWR: down, its oscillator up, its dividers up as well. Nobody may take it down while the processor runs on it.
 * @type {Takes} */
const POWER = (value, chip) => value === 0x0c || value === 0x04 || (value === 0x2d && (chip.clocks.sysCtrl & 1) === 0);
/** An IO_BANK0 CTRL: of the functions only these; OUTOVER and OEOVER. @param {number[]} functions @returns {Takes} */
const pin = (...functions) => (value) => (value & ~0x331f) === 0 && functions.includes(value & 0x1f);
/** An instruction of PIO's that there is, by the data sheet (RP2040, 3.4), and that makes no other one (EXEC): what there is
 * not, rp2040js takes for one that does nothing. @type {Takes} */
const INSTRUCTION = (code) => {
  const [operation, argument] = [code >>> 13, code & 0xff];
  const [first, last] = [argument >> 5, argument & 7]; // destination or source; a MOV's source
  switch (operation) {
    case 0: return true; // JMP
    case 1: return (first & 3) < 2 || ((first & 3) === 2 && (argument & 0x08) === 0); // WAIT
    case 2: return first !== 4 && first !== 5; // IN
    case 3: return first !== 7; // OUT
    case 4: return (argument & 0x1f) === 0; // PUSH, PULL
    case 5: return first !== 3 && first !== 4 && last !== 4 && (argument & 0x18) !== 0x18; // MOV
    case 6: return (argument & 0x88) === 0; // IRQ
    case 7: return [0, 1, 2, 4].includes(first); // SET
    default: return false; // of more than 16 bits
  }
};
/** Of which the watchdog resets all: whatever there is but both oscillators (PSM's WDSEL). */
export const ALL_BUT_OSCILLATORS = 0x1_fffc;

/**
 * Whose register, its offset, what may be written (a mask of bits, or whatever is taken), and what is modelled of it.
 *
 * @type {[string[], number | number[], number | Takes | null, string][]}
 */
export const TABLE = [
  [["XIP_CTRL"], [0x00, 0x04], ANY, "CTRL, FLUSH: nothing, there is no cache; it is always empty"],
  [["XIP_CTRL"], [0x08, 0x14, 0x18], READ, "STAT: ready; STREAM_ADDR, STREAM_CTR: no stream is under way"],
  [["SSI"], [0x00, 0x04, 0x08, 0x14, 0xf0, 0xf4], ANY, "CTRLR0, CTRLR1, SSIENR, BAUDR, RX_SAMPLE_DLY, SPI_CTRLR0: kept"],
  [["SSI"], 0x28, READ, "SR: never busy"],
  [["SSI"], 0x60, ANY, "DR0: whatever the flash is asked, it says 0, which is idle; it is always there"],

  [["CLOCKS"], 0x30, only(0, 2), "CLK_REF_CTRL: the ring oscillator of 6.5 MHz, or the crystal's of 12"],
  [["CLOCKS"], 0x3c, only(0, 1), "CLK_SYS_CTRL: CLK_REF, or PLL_SYS"],
  [["CLOCKS"], [0x34, 0x40], only(0x100), "CLK_REF_DIV, CLK_SYS_DIV: by 1"],
  [["CLOCKS"], [0x38, 0x44], READ, "CLK_REF_SELECTED, CLK_SYS_SELECTED: at once"],
  [["CLOCKS"], 0x48, only(0x800), "CLK_PERI_CTRL: CLK_SYS"],
  [["CLOCKS"], [0x54, 0x60, 0x6c], only(0x800), "CLK_USB_CTRL, CLK_ADC_CTRL, CLK_RTC_CTRL: kept; USB has a time of its own"],
  [["CLOCKS"], [0x58, 0x64, 0x70], only(0x100, 0x4_0000), "CLK_USB_DIV, CLK_ADC_DIV, CLK_RTC_DIV: kept"],
  [["CLOCKS"], 0x78, only(0), "CLK_SYS_RESUS_CTRL: off"],
  [["PLL_SYS", "PLL_USB"], 0x00, only(1), "CS: REFDIV 1; always locked"],
  [["PLL_SYS", "PLL_USB"], 0x04, POWER, "PWR: kept; down only while the processor does not run on it"],
  [["PLL_SYS", "PLL_USB"], 0x08, 0xfff, "FBDIV_INT"],
  [["PLL_SYS", "PLL_USB"], 0x0c, 0x7_7000, "PRIM: POSTDIV1, POSTDIV2"],
  [["XOSC"], 0x00, only(0xfa_baa0), "CTRL: enabled, 1 to 15 MHz"],
  [["XOSC"], 0x04, READ, "STATUS: STABLE once STARTUP's time is over, ENABLED"],
  [["XOSC"], 0x0c, 0x3fff, "STARTUP: so many times 256 cycles of 12 MHz"],
  [["ROSC"], [0x00, 0x04, 0x08, 0x10], ANY, "CTRL, FREQA, FREQB, DIV: kept; it has 6.5 MHz all the time"],
  [["VREG"], 0x00, READ, "VREG: in regulation, 1.1 V"],

  [["RESETS"], 0x00, 0x1ff_ffff, "RESET: at first all but IO_QSPI, PADS_QSPI, TIMER; who is held throws, and loses nothing"],
  [["RESETS"], 0x08, READ, "RESET_DONE: of all that are not in reset, at once"],
  [["PSM"], [0x00], only(0, 0x8000), "FRCE_ON: kept; the first processor"],
  [["PSM"], [0x04], only(0, 0x1_4000), "FRCE_OFF: kept; the second processor and SIO, as the driver does at first"],
  [["PSM"], 0x08, only(ALL_BUT_OSCILLATORS), "WDSEL: all but the oscillators; unset, the watchdog throws"],
  [["WATCHDOG"], 0x00, 0xc7ff_ffff, "CTRL: TRIGGER, ENABLE, TIME; PAUSE_* kept, there is no debugger"],
  [["WATCHDOG"], 0x04, 0xff_ffff, "LOAD: two counts a microsecond (erratum RP2040-E1)"],
  [["WATCHDOG"], 0x08, READ, "REASON: outlasts every reset but the RUN pin's"],
  [["WATCHDOG"], 0x2c, only(0x20c), "TICK: enabled, 12 cycles; the watchdog counts from then on"],
  [["TIMER"], [0x24, 0x28], READ, "TIMERAWH, TIMERAWL: µs since reset, also before TICK"],
  [["TIMER"], 0x10, ANY, "ALARM0"],
  [["TIMER"], [0x20, 0x34, 0x38], 1, "ARMED, INTR, INTE: of ALARM0"],

  [["IO_BANK0"], [0x04, 0x0c], pin(2, 5, 6, 7, 31), "CTRL of GP0 and GP1: FUNCSEL also UART0, which hears and is heard there"],
  [["IO_BANK0"], each(0x14, 0xec, 8), pin(5, 6, 7, 31), "CTRL: FUNCSEL (SIO, PIO0, PIO1, none), OUTOVER, OEOVER"],
  [["IO_BANK0"], each(0xf0, 0xfc), ANY, "INTR: levels and edges; an edge is cleared by a one"],
  [["PADS_BANK0"], each(0x04, 0x78), 0x7f, "IE, PUE, PDE; SLEWFAST, SCHMITT, DRIVE kept; 0x56 at reset"],
  [["PADS_QSPI"], each(0x04, 0x18), 0x7f, "kept"],
  [["SIO"], [0x00, 0x04], READ, "CPUID: 0; GPIO_IN"],
  [["SIO"], [0x14, 0x18, 0x24, 0x28], 0x3fff_ffff, "GPIO_OUT_SET, GPIO_OUT_CLR, GPIO_OE_SET, GPIO_OE_CLR"],
  [["SIO"], 0x17c, ANY, "SPINLOCK31"],
  [["PIO0", "PIO1"], 0x00, 0xfff, "CTRL: SM_ENABLE, SM_RESTART; CLKDIV_RESTART: the next step is a period away"],
  [["PIO0", "PIO1"], 0x04, READ, "FSTAT"],
  [["PIO0", "PIO1"], each(0x10, 0x1c), ANY, "TXF0 to TXF3"],
  [["PIO0", "PIO1"], each(0x48, 0xc4), INSTRUCTION, "INSTR_MEM0 to INSTR_MEM31: what there is, without EXEC"],
  [["PIO0", "PIO1"], each(0xc8, 0x110, 24), 0xffff_ff00, "CLKDIV"],
  [["PIO0", "PIO1"], each(0xcc, 0x114, 24), 0x7f01_ff9f, "EXECCTRL: all but OUT_STICKY, INLINE_OUT_EN, OUT_EN_SEL"],
  [["PIO0", "PIO1"], each(0xd0, 0x118, 24), 0x3fff_0000, "SHIFTCTRL: all but FJOIN_TX, FJOIN_RX"],
  [["PIO0", "PIO1"], each(0xd8, 0x120, 24), INSTRUCTION, "INSTR: as in INSTR_MEM"],
  [["PIO0", "PIO1"], each(0xdc, 0x124, 24), ANY, "PINCTRL"],
  [["DMA"], [...each(0x00, 0x2c0, 0x40), ...each(0x0c, 0x2cc, 0x40)], READ, "READ_ADDR, CTRL: 0, none is busy"],

  [["PPB"], [0x100, 0x180, 0x200], 0x3ff_ffff, "NVIC: ISER, ICER, ISPR"],
  [["PPB"], 0x280, 0x3ff_ffff, "NVIC: ICPR; nothing, what is pending follows its source"],
  [["PPB"], each(0x400, 0x41c), 0xc0c0_c0c0, "NVIC: IPR"],
  [["PPB"], 0xd08, 0xffff_ff00, "VTOR"],
];

/** Where they are, by rp2040js' pages. */
const BLOCKS = {
  0x1_4000: "XIP_CTRL", 0x1_8000: "SSI", 0x4_0008: "CLOCKS", 0x4_000c: "RESETS", 0x4_0010: "PSM", 0x4_0014: "IO_BANK0",
  0x4_001c: "PADS_BANK0", 0x4_0020: "PADS_QSPI", 0x4_0024: "XOSC", 0x4_0028: "PLL_SYS", 0x4_002c: "PLL_USB",
  0x4_0054: "TIMER", 0x4_0058: "WATCHDOG", 0x4_0060: "ROSC", 0x4_0064: "VREG", 0x5_0000: "DMA", 0x5_0200: "PIO0",
  0x5_0300: "PIO1",
};

/** Which are not there at all. */
const ABSENT = {
  0x4_0000: "SYSINFO", 0x4_0004: "SYSCFG", 0x4_0018: "IO_QSPI", 0x4_0030: "BUSCTRL", 0x4_0038: "UART1", 0x4_003c: "SPI0",
  0x4_0040: "SPI1", 0x4_0044: "I2C0", 0x4_0048: "I2C1", 0x4_004c: "ADC", 0x4_0050: "PWM", 0x4_005c: "RTC", 0x4_006c: "TBMAN",
};

/** The bit in RESETS of those that can be held in reset. */
const HELD_BY = {
  DMA: 2, IO_BANK0: 5, PADS_BANK0: 8, PADS_QSPI: 9, PIO0: 10, PIO1: 11, PLL_SYS: 12, PLL_USB: 13, TIMER: 21, UART0: 22,
  USB: 24,
};

/** Each register's check, by whose it is and its offset. @type {Map<string, Map<number, Takes | null>>} */
const TAKES = new Map([...Object.values(BLOCKS), ...Object.values(ABSENT), "SIO", "PPB"].map((name) => [name, new Map()]));
for (const [names, offsets, takes] of TABLE) {
  for (const name of names) {
    for (const offset of [offsets].flat()) {
      TAKES.get(name)?.set(offset, typeof takes === "number" ? (value) => (value & ~takes) === 0 : takes);
    }
  }
}

/**
 * Puts the models of this file in their places, and holds every access to a register against the table.
 *
 * @param {RP2040} chip
 * @param {boolean} oscillates whether the crystal's oscillator has outlasted the last reset
 */
export function guard(chip, oscillates) {
  const { peripherals } = chip;
  const resets = new Resets(chip, "RESETS");
  Object.assign(peripherals, {
    0x1_4000: new Kept(chip, { 0x00: 3, 0x08: 3 }, [0x04]),
    0x4_000c: resets,
    0x4_0024: new Xosc(chip, oscillates),
    0x4_0060: new Kept(chip, {}),
    0x4_0064: new Kept(chip, { 0x00: 0x10b1 }),
    0x5_0000: new Kept(chip, {}),
  });
  for (const pin of chip.gpio) pin.padValue = 0x56; // rp2040js has inputs disabled
  for (const [page, name] of Object.entries({ ...BLOCKS, ...ABSENT })) hold(chip, name, peripherals[Number(page)]);
  hold(chip, "SIO", chip.sio);
  hold(chip, "PPB", chip.ppb);
  for (const [page, name] of Object.entries({ ...BLOCKS, 0x4_0034: "UART0", 0x5_0110: "USB" })) {
    const bit = HELD_BY[/** @type {keyof typeof HELD_BY} */ (name)];
    if (bit !== undefined) awaken(resets, name, bit, peripherals[Number(page)]);
  }
}

/** @typedef {{ readUint32(offset: number): number, writeUint32(offset: number, value: number): void }} Block */

/**
 * Lets nobody at a block while it is held in reset.
 *
 * @param {Resets} resets
 * @param {string} name
 * @param {number} bit
 * @param {Block} block
 */
function awaken(resets, name, bit, block) {
  const [read, write] = [block.readUint32.bind(block), block.writeUint32.bind(block)];
  const check = () => {
    if ((resets.held >>> bit) & 1) throw new Error(`${name}: it is held in reset`);
  };
  block.readUint32 = (offset) => (check(), read(offset));
  block.writeUint32 = (offset, value) => (check(), write(offset, value));
}

/**
 * @param {RP2040} chip
 * @param {string} name
 * @param {Block} block
 */
function hold(chip, name, block) {
  const rows = /** @type {Map<number, Takes | null>} */ (TAKES.get(name));
  const [read, write] = [block.readUint32.bind(block), block.writeUint32.bind(block)];
  block.readUint32 = (offset) => {
    if (!rows.has(offset)) throw new Error(`${name}: register ${hex(offset)} is not modelled (read)`);
    return read(offset);
  };
  block.writeUint32 = (offset, value) => {
    if (!rows.get(offset)?.(value, chip)) {
      throw new Error(`${name}: register ${hex(offset)} is not modelled (${hex(value)} written)`);
    }
    write(offset, value);
  };
}

/** Registers that keep what is written to them, and behind which nothing happens. */
class Kept extends BasePeripheral {
  #values;
  #zero;

  /**
   * @param {RP2040} chip
   * @param {Record<number, number>} values at reset, where it is not 0
   * @param {number[]} [zero] which stay 0
   */
  constructor(chip, values, zero = []) {
    super(chip, "");
    this.#values = new Map(Object.entries(values).map(([offset, value]) => [Number(offset), value]));
    this.#zero = zero;
  }

  /** @param {number} offset */
  readUint32(offset) {
    return this.#values.get(offset) ?? 0;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    if (!this.#zero.includes(offset)) this.#values.set(offset, value);
  }
}

/** Who is in reset. */
class Resets extends BasePeripheral {
  held = 0x1ff_ffff & ~((1 << 6) | (1 << 9) | (1 << 21));

  /** @param {number} offset */
  readUint32(offset) {
    return offset === 0 ? this.held : 0x1ff_ffff & ~this.held;
  }

  /** @param {number} _ @param {number} value */
  writeUint32(_, value) {
    this.held = value;
  }
}

/** The crystal's oscillator. */
class Xosc extends BasePeripheral {
  #startup = 0xc4;
  #stable;

  /** @param {RP2040} chip @param {boolean} oscillates */
  constructor(chip, oscillates) {
    super(chip, "XOSC");
    this.#stable = oscillates ? 0 : Infinity;
  }

  /** @param {number} offset */
  readUint32(offset) {
    if (offset === 0x0c) return this.#startup;
    if (this.#stable === Infinity) return 0;
    if (offset === 0x00) return 0xfa_baa0;
    return this.rp2040.clock.nanos >= this.#stable ? 0x8000_1000 : 0x1000;
  }

  /** @param {number} offset @param {number} value */
  writeUint32(offset, value) {
    if (offset === 0x0c) this.#startup = value;
    else if (this.#stable === Infinity) {
      this.#stable = this.rp2040.clock.nanos + (this.#startup * 256 * 1e9) / this.rp2040.xoscFreq;
    }
  }
}
