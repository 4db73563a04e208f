// The monitor: pins, time and faults of the emulated board, a line for a line, each answer ended by the prompt.
//
// | command | answer |
// |---|---|
// | `pins` | `outputs: 0x00000001` |
// | `time` | `1234567: 0`, nanoseconds since the power came |
// | `edges` | each change of the outputs since this was last asked: `nanos: 0x00000001`, a line each |
// | `floats` | `0: 0`, how often an output was seen that nobody drives and nothing pulls down, since the power came |
// | `lamp` | each change of the LED since this was last asked: `nanos: 0x00000001`, a line each |
// | `pad N` | `1: 0x0000004a`, GPIO N and its pad's register |
// | `erases` | each erase of a sector since this was last asked: `from: to`, in nanoseconds, a line each |
// | `overruns` | `12: 0`, bytes that UART0 has lost since the last reset |
// | `trips` | each frame and its answer since this was last asked: `from: to cycles instructions there back`, a line each:
//   nanoseconds from the first bit there to the last one back, what the processor did in between, bytes |
// | `erase MS` | from now on the flash takes so long for a sector |
// | `glitch US` | opens the emergency stop for so long; `nanos: 0`, when |
// | `poke ADDRESS BYTES` | changes code, until the next reset, or RAM; both in hexadecimal |
// | `usb deaf`, `usb listens` | whoever has opened the USB port stops reading; reads again |
// | `system_reset` | pulls the RUN pin |

const PROMPT = "(rp2040) ";
/** How many edges are kept. */
const KEPT = 10_000;

const hex = (/** @type {number} */ n) => `0x${n.toString(16).padStart(8, "0")}`;

export class Monitor {
  #board;
  #catchUp;
  /** @type {string[]} */
  #edges = [];
  /** @type {string[]} */
  #erases = [];
  /** @type {string[]} */
  #lamp = [];
  /**
   * @type {{ from: number, to: number, busy: number, worked: number, executed: number, did: number, there: number,
   *   back: number }[]}
   */
  #trips = [];

  /** @param {import("./board.js").Board} board @param {() => void} catchUp runs the board up to now */
  constructor(board, catchUp) {
    [this.#board, this.#catchUp] = [board, catchUp];
  }

  /** The outputs have changed. @param {number} outputs @param {number} nanos */
  moved(outputs, nanos) {
    if (this.#edges.length < KEPT) this.#edges.push(`${Math.round(nanos)}: ${hex(outputs)}`);
  }

  /** The LED has changed. @param {boolean} lit @param {number} nanos */
  lit(lit, nanos) {
    if (this.#lamp.length < KEPT) this.#lamp.push(`${Math.round(nanos)}: ${hex(Number(lit))}`);
  }

  /** A sector is being erased, in nanoseconds since the power came. @param {number} from @param {number} to */
  erased(from, to) {
    if (this.#erases.length < KEPT) this.#erases.push(`${Math.round(from)}: ${Math.round(to)}`);
  }

  /** Bytes go onto the line now. @param {number} there */
  fed(there) {
    const { nanos: now, busy, executed } = this.#board;
    const last = this.#trips.at(-1);
    // What comes before there is an answer belongs to the same frame.
    if (last?.back === 0) last.there += there;
    else if (this.#trips.length < KEPT) {
      this.#trips.push({ from: now, to: now, busy, worked: 0, executed, did: 0, there, back: 0 });
    }
  }

  /** A byte has left the board. */
  sent() {
    const last = this.#trips.at(-1);
    if (!last) return;
    last.back++;
    last.to = this.#board.nanos;
    last.worked = this.#board.busy - last.busy;
    last.did = this.#board.executed - last.executed;
  }

  /** @param {import("node:net").Socket} socket @param {() => void} turn lets the board go on */
  open(socket, turn) {
    let line = "";
    socket.write(PROMPT);
    socket.on("data", (bytes) => {
      line += bytes.toString("latin1");
      for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
        const command = line.slice(0, end).trim();
        line = line.slice(end + 1);
        this.#catchUp();
        socket.write(`${this.#do(command)}\n${PROMPT}`);
      }
      turn();
    });
  }

  /** @param {string} command */
  #do(command) {
    const board = this.#board;
    const [word, ...rest] = command.split(/\s+/);
    switch (word) {
      case "pins":
        return `outputs: ${hex(board.outputs)}`;
      case "time":
        return `${Math.round(board.nanos)}: 0`;
      case "edges":
        return this.#edges.splice(0).join("\n");
      case "trips": {
        const answered = this.#trips.splice(0).filter(({ back }) => back > 0);
        return answered
          .map(({ from, to, worked, did, there, back }) => {
            const cycles = (worked * board.chip.clkSys) / 1e9;
            return `${Math.round(from)}: ${[to, cycles, did, there, back].map(Math.round).join(" ")}`;
          })
          .join("\n");
      }
      case "overruns":
        return `${board.overruns}: 0`;
      case "floats":
        return `${board.floated}: 0`;
      case "lamp":
        return this.#lamp.splice(0).join("\n");
      case "pad":
        return `${rest[0]}: ${hex(board.chip.gpio[Number(rest[0])].padValue)}`;
      case "erases":
        return this.#erases.splice(0).join("\n");
      case "erase":
        board.flashTime = { ...board.flashTime, erase: Number(rest[0]) * 1_000 };
        return "";
      case "glitch": {
        const opened = board.nanos;
        board.inhibit(true);
        board.run(opened + Number(rest[0]) * 1_000);
        board.inhibit(false);
        return `${Math.round(opened)}: 0`;
      }
      case "poke":
        board.poke(Number.parseInt(rest[0], 16), Buffer.from(rest[1], "hex"));
        return "";
      case "usb":
        if (rest[0] !== "deaf" && rest[0] !== "listens") return `${command}: deaf or listens?`;
        board.usb.listen(rest[0] === "listens");
        return "";
      case "system_reset":
        board.pullRun();
        return "";
      default:
        return `${command}: no such command`;
    }
  }
}
