// The image on an emulated Pico, in virtual time: `node pico.mjs IMAGE.uf2` takes questions on standard input, a line each, and
// says the answers. One at a time: while it answers, the image reads nothing, and the UART keeps 32 bytes.

import { readFileSync } from "node:fs";
import { Board } from "../../embedded/firmware/rp2040/emulator/board.js";

/** How far it runs before the answer is looked at, in ns of the board's. */
const SLICE = 5_000_000;
/** The longest that an answer takes, in ns of the board's. */
const PATIENCE = 1_000_000_000;

let said = "";
const board = new Board(readFileSync(process.argv[2]), new Uint8Array(), {
  sent: (byte) => (said += String.fromCharCode(byte)),
});
// Until it has its port.
board.run(SLICE);
for (const question of readFileSync(0, "utf8").trim().split("\n")) {
  const end = board.nanos + PATIENCE;
  board.feed(Buffer.from(`${question}\n`));
  while (!said.endsWith("\n")) {
    if (board.nanos > end) throw new Error(`no answer to ${question}, but ${JSON.stringify(said)}`);
    board.run(board.nanos + SLICE);
  }
  process.stdout.write(said);
  said = "";
}
if (board.overruns > 0) throw new Error(`${board.overruns} bytes were lost`);
