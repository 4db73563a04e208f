// The front panel: what a person or a relay would do to the board's inputs, two characters for each level, as on the other
// boards. What was understood is written back with a line feed, once it holds.
//
// | written | level |
// |---|---|
// | `i1`, `i0` | the emergency stop is pressed; pulled out again |
// | `p1`, `p0` | somebody is at the board; nobody is |
// | `c0` … `c5` | the contact behind that output sticks closed (a welded relay) |
// | `o0` … `o5` | it sticks open |
// | `f0` … `f5` | it follows the output |

import { OUTPUT_COUNT } from "./board.js";

export class Panel {
  #board;
  /** The last letter, while its digit is awaited. */
  #letter = "";

  /** @param {import("./board.js").Board} board */
  constructor(board) {
    this.#board = board;
  }

  /** @param {import("node:net").Socket} socket @param {() => void} now runs the board up to now */
  open(socket, now) {
    socket.on("data", (bytes) => {
      now();
      for (const byte of bytes) {
        const set = this.#take(String.fromCharCode(byte));
        if (set) socket.write(`${set}\n`);
      }
      now();
    });
  }

  /** Takes a character; the level that it sets, if it does. @param {string} character */
  #take(character) {
    const letter = this.#letter;
    this.#letter = /[a-z]/.test(character) ? character : "";
    if (letter === "" || !/[0-9]/.test(character)) return null;
    const number = Number(character);
    const contact = { f: "follows", o: "open", c: "closed" }[letter];
    if (letter === "i" && number < 2) this.#board.inhibit(number === 1);
    else if (letter === "p" && number < 2) this.#board.presence(number === 1);
    else if (contact && number < OUTPUT_COUNT) {
      this.#board.contact(number, /** @type {"follows" | "open" | "closed"} */ (contact));
    } else return null;
    return letter + character;
  }
}
