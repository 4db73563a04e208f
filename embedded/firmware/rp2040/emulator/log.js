// The firmware's log as a debug probe takes it: the ring of SEGGER's RTT in RAM, found by its name.

const NAME = "SEGGER RTT\0\0\0\0\0\0";
const RAM = 0x2000_0000;

export class Log {
  /** Where the control block lies; it is found once the firmware has started. @type {number | null} */
  #block = null;

  /** What the firmware has said since the last time. @param {DataView} ram @returns {Uint8Array} */
  take(ram) {
    this.#block ??= find(ram);
    if (this.#block === null) return new Uint8Array();
    // The first ring upwards: name, buffer, size, write, read, flags.
    const ring = this.#block + 24;
    const [buffer, size, write, read] = [4, 8, 12, 16].map((offset) => ram.getUint32(ring + offset, true));
    const at = buffer - RAM;
    if (write === read || size === 0 || write >= size || read >= size || at + size > ram.byteLength) {
      return new Uint8Array();
    }
    const said = Uint8Array.from({ length: (write - read + size) % size }, (_, n) => ram.getUint8(at + ((read + n) % size)));
    ram.setUint32(ring + 16, write, true);
    return said;
  }
}

/** @param {DataView} ram */
function find(ram) {
  for (let at = 0; at + 48 <= ram.byteLength; at += 4) {
    if (ram.getUint8(at) !== NAME.charCodeAt(0)) continue;
    if ([...NAME].every((letter, n) => ram.getUint8(at + n) === letter.charCodeAt(0))) return at;
  }
  return null;
}
