// A computer at the other end of the USB cable: it enumerates the board as an operating system does, finds the serial port
// by its descriptors, opens it, and passes bytes both ways.
//
// What a host would not put up with throws: an endpoint that is out of step, a request refused, descriptors without a port.

/** Nanoseconds: the contacts settle; a reset of the bus; a device's time to get over that, or to take its address. */
const [DEBOUNCE, RESET, RECOVERY] = [100e6, 10e6, 10e6];
/** Nanoseconds of a transaction: its token, its handshake and the gaps take about as long as 13 bytes. */
const transaction = (/** @type {number} */ bytes) => ((13 + bytes) * 8 * 1e9) / 12e6;
const PACKET = 64;
const ADDRESS = 1;

/** @typedef {{ setup: Uint8Array, data: Uint8Array, then: (received: Uint8Array) => void }} Transfer */

const word = (/** @type {number} */ n) => [n & 0xff, n >>> 8];
const request = (/** @type {number} */ type, /** @type {number} */ what, /** @type {number} */ value,
  /** @type {number} */ index, /** @type {number} */ length) =>
  Uint8Array.from([type, what, ...word(value), ...word(index), ...word(length)]);

export class UsbHost {
  /** Whether the cable is in. */
  isPlugged = false;
  /** Whether whoever has opened the port reads. */
  listens = true;
  #received;
  /** @type {import("./usb.js").Usb} */
  #device;
  /** @type {{ schedule(nanos: number): void, cancel(): void, scheduled: boolean }} */
  #alarm;
  /** What the alarm is for. @type {() => void} */
  #due = () => {};
  /** Whether the alarm is for something else than the next transaction. */
  #enumerating = false;
  #address = 0;
  /** @type {Transfer | null} */
  #transfer = null;
  /** @type {"data" | "status"} */
  #stage = "data";
  /** @type {number[]} */
  #control = [];
  /** The port's endpoints, and which of the two kinds of packet is due. */
  #port = { in: 0, out: 0, comm: 0, inData1: false, outData1: false };
  #open = false;
  /** @type {number[]} */
  #toSend = [];

  /** @param {(bytes: Uint8Array) => void} received the port has brought bytes */
  constructor(received) {
    this.#received = received;
  }

  /** Bytes that the board has not taken yet. */
  get backlog() {
    return this.#toSend.length;
  }

  /** Whether the port is open. */
  get isOpen() {
    return this.#open;
  }

  /** Another chip is at the other end, or the same after a reset: it is new to the host. @param {import("./usb.js").Usb} device */
  meet(device) {
    this.#device = device;
    this.#alarm = device.rp2040.clock.createAlarm(() => {
      this.#alarm.scheduled = false;
      this.#due();
    });
    this.#lose();
  }

  /** Puts the cable in, or pulls it. @param {boolean} plugged */
  plug(plugged) {
    if (plugged === this.isPlugged) return;
    this.isPlugged = plugged;
    this.#lose();
    this.#device.frames(plugged);
    this.somethingChanged();
  }

  /** Writes to the port, once it is open. @param {Uint8Array} bytes */
  send(bytes) {
    this.#toSend.push(...bytes);
    this.somethingChanged();
  }

  /** Begins to read, or stops. @param {boolean} listens */
  listen(listens) {
    this.listens = listens;
    this.somethingChanged();
  }

  /** A buffer of the device's is free or full, or it has come or gone. */
  somethingChanged() {
    if (!this.isPlugged || this.#alarm.scheduled) return;
    if (!this.#device.isThere) return this.#lose();
    if (this.#address === 0 && !this.#enumerating) {
      this.#enumerating = true;
      this.#after(DEBOUNCE + RESET, () => this.#enumerate());
    } else if (this.#transfer || this.#open) {
      this.#after(transaction(PACKET), () => this.#transact());
    }
  }

  #lose() {
    this.#alarm.cancel();
    this.#open = this.#enumerating = false;
    this.#address = 0;
    this.#transfer = null;
    this.#toSend = [];
  }

  /** @param {number} nanos @param {() => void} what */
  #after(nanos, what) {
    this.#due = what;
    this.#alarm.schedule(nanos);
  }

  #enumerate() {
    this.#device.reset();
    const device = request(0x80, 6, 0x0100, 0, 64);
    const head = request(0x80, 6, 0x0200, 0, 9);
    this.#after(RECOVERY, () =>
      this.#ask(device, (said) => {
        if (said.length !== 18 || said[1] !== 1) throw new Error(`USB: the device's descriptor is ${said}`);
        this.#tell(request(0x00, 5, ADDRESS, 0, 0), [], () => {
          this.#address = ADDRESS;
          this.#after(RECOVERY, () =>
            this.#ask(head, (said) =>
              this.#ask(request(0x80, 6, 0x0200, 0, said[2] | (said[3] << 8)), (all) => this.#configure(all)),
            ),
          );
        });
      }),
    );
  }

  /** @param {Uint8Array} descriptors */
  #configure(descriptors) {
    this.#port = { ...find(descriptors), inData1: false, outData1: false };
    const { comm } = this.#port;
    // 115,200 baud, 8N1; then DTR and RTS: somebody has opened the port.
    const coding = [...word(115_200 & 0xffff), ...word(115_200 >>> 16), 0, 0, 8];
    this.#tell(request(0x00, 9, descriptors[5], 0, 0), [], () =>
      this.#tell(request(0x21, 0x20, 0, comm, coding.length), coding, () =>
        this.#tell(request(0x21, 0x22, 3, comm, 0), [], () => {
          this.#enumerating = false;
          this.#open = true;
          this.somethingChanged();
        }),
      ),
    );
  }

  /** @param {Uint8Array} setup @param {(received: Uint8Array) => void} then */
  #ask(setup, then) {
    this.#begin({ setup, data: new Uint8Array(), then });
  }

  /** @param {Uint8Array} setup @param {number[]} data @param {() => void} then */
  #tell(setup, data, then) {
    this.#begin({ setup, data: Uint8Array.from(data), then });
  }

  /** @param {Transfer} transfer */
  #begin(transfer) {
    this.#transfer = transfer;
    this.#control = [];
    const wanted = transfer.setup[6] | (transfer.setup[7] << 8);
    this.#stage = wanted > 0 ? "data" : "status";
    this.#device.setup(this.#address, transfer.setup);
    this.somethingChanged();
  }

  /** One transaction, if the device is ready for one; the next follows. */
  #transact() {
    if (this.#transfer ? this.#controlled(this.#transfer) : this.#passed()) this.somethingChanged();
  }

  /** Goes on with a control transfer; whether it could. @param {Transfer} transfer */
  #controlled(transfer) {
    const { setup, data, then } = transfer;
    const [asks, wanted] = [(setup[0] & 0x80) !== 0, setup[6] | (setup[7] << 8)];
    const data1 = Math.floor(this.#control.length / PACKET) % 2 === 0;
    const refused = () => new Error(`USB: the device refuses ${setup}`);
    if (this.#stage === "data" && asks) {
      const packet = this.#device.take(0, data1);
      if (packet === "stall") throw refused();
      if (packet === null) return false;
      this.#control.push(...packet);
      if (packet.length < PACKET || this.#control.length >= wanted) this.#stage = "status";
      return true;
    }
    if (this.#stage === "data") {
      const taken = this.#device.give(0, data, true);
      if (taken === "stall") throw refused();
      if (taken) this.#stage = "status";
      return taken;
    }
    const over = asks ? this.#device.give(0, new Uint8Array(), true) : this.#device.take(0, true);
    if (over === "stall") throw refused();
    if (over === false || over === null) return false;
    this.#transfer = null;
    then(Uint8Array.from(this.#control));
    return true;
  }

  /** Passes a packet each way, as far as there is one; whether there was. */
  #passed() {
    const port = this.#port;
    const packet = this.listens ? this.#device.take(port.in, port.inData1) : null;
    if (packet === "stall") throw new Error("USB: the port refuses to be read");
    if (packet !== null) {
      port.inData1 = !port.inData1;
      this.#received(packet);
    }
    const bytes = Uint8Array.from(this.#toSend.slice(0, PACKET));
    const given = bytes.length > 0 && this.#device.give(port.out, bytes, port.outData1);
    if (given === "stall") throw new Error("USB: the port refuses to be written to");
    if (given) {
      port.outData1 = !port.outData1;
      this.#toSend.splice(0, bytes.length);
    }
    return packet !== null || given;
  }
}

/** The serial port among the descriptors: its interface, and its two endpoints. @param {Uint8Array} descriptors */
function find(descriptors) {
  let [comm, inPoint, outPoint, inData] = [-1, 0, 0, false];
  for (let at = 0; at < descriptors.length; at += descriptors[at]) {
    const [length, kind, first, , , what, subclass] = descriptors.subarray(at);
    if (length < 2) throw new Error("USB: a descriptor without an end");
    if (kind === 4) inData = what === 0x0a;
    if (kind === 4 && what === 0x02 && subclass === 0x02) comm = first;
    if (kind === 5 && inData && first & 0x80) inPoint = first & 0xf;
    else if (kind === 5 && inData) outPoint = first;
  }
  if (comm < 0 || inPoint === 0 || outPoint === 0) throw new Error("USB: no serial port among the descriptors");
  return { comm, in: inPoint, out: outPoint };
}
