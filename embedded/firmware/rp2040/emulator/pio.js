// The PIO's state machines on the chip's clock. The emulator has their instructions and FIFOs, but steps them by a timer of
// its host, all of them, whether enabled or not.
//
// Here each enabled machine steps at clk_sys over its divider (CLKDIV, fraction included), and one that waits for its FIFO
// costs nothing until something is written. An interrupt of the PIO, a wait for a pin or an IRQ, and delays work as the
// emulator has them.

/** How a machine waits for its transmit FIFO (`WaitType.txFIFO` of the emulator). */
const FOR_FIFO = 3;

/**
 * @param {import('rp2040js').RP2040} chip
 * @param {import('rp2040js').RPPIO} pio
 */
export function onTheClock(chip, pio) {
  const machines = pio.machines.map((machine) => new Machine(chip, pio, machine));
  pio.run = () => {};
  const write = pio.writeUint32.bind(pio);
  pio.writeUint32 = (offset, value) => {
    write(offset, value);
    // What the processor did to the pins (an instruction of its own, say) is seen at once.
    pio.checkChangedPins();
    for (const machine of machines) machine.wake();
  };
}

class Machine {
  #chip;
  #pio;
  #machine;
  #alarm;
  #scheduled = false;

  /**
   * @param {import('rp2040js').RP2040} chip
   * @param {import('rp2040js').RPPIO} pio
   * @param {import('rp2040js').StateMachine} machine
   */
  constructor(chip, pio, machine) {
    this.#chip = chip;
    this.#pio = pio;
    this.#machine = machine;
    this.#alarm = chip.clock.createAlarm(() => this.#step());
    // A divider that starts anew: the next step is a whole period away, as after any write here.
    machine.clkDivRestart = () => {};
  }

  /** Nanoseconds a step. */
  get #period() {
    const { clockDivInt, clockDivFrac } = this.#machine;
    return (((clockDivInt || 65_536) + clockDivFrac / 256) * 1e9) / this.#chip.clkSys;
  }

  get #idle() {
    const machine = this.#machine;
    return !machine.enabled || (machine.waiting && machine.waitType === FOR_FIFO && machine.txFIFO.empty);
  }

  wake() {
    if (!this.#scheduled && !this.#idle) {
      this.#scheduled = true;
      this.#alarm.schedule(this.#period);
    }
  }

  #step() {
    this.#scheduled = false;
    if (!this.#machine.enabled) return;
    const before = this.#machine.cycles;
    this.#machine.step();
    this.#pio.checkChangedPins();
    if (!this.#idle) {
      this.#scheduled = true;
      // A delay is cycles that the instruction took beyond its first.
      this.#alarm.schedule(this.#period * Math.max(1, this.#machine.cycles - before));
    }
  }
}
