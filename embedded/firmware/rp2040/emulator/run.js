#!/usr/bin/env node
// Runs the board under Node, paced to real time: the serial line on a socket, the flash in a file, the front panel and a
// monitor on sockets of their own.
//
//     node run.js --image gate.uf2 --flash gate.flash --serial PLACE [--usb PLACE] [--panel PLACE] [--monitor PLACE]… [--log]
//
// A place is a socket's file (an absolute path) or `host:port`. With `--log` the log's frames leave on standard output. Who
// connects to `--usb` puts the USB cable in and opens the port; who leaves pulls it.
//
// The board's clock never runs ahead of the host's. Where the host is too slow for a moment, it falls behind and catches up.

import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { parseArgs } from "node:util";
import { Board, FLASH_LENGTH } from "./board.js";
import { Monitor } from "./monitor.js";
import { Panel } from "./panel.js";

/** Bytes that may wait on the line: what comes after them waits in the socket, as at a host whose port is busy. */
const LINE = 64;
/** The same for the USB port. */
const PORT = 4_096;
/** For how long the board may run before sockets get their turn, in ms. */
const TURN = 5;
/** How far it runs before the time is looked at, in ns. */
const SLICE = 500_000;
/** The longest sleep, in ms. */
const NAP = 50;

const { values: options } = parseArgs({
  options: {
    image: { type: "string" },
    flash: { type: "string" },
    serial: { type: "string" },
    usb: { type: "string" },
    panel: { type: "string" },
    monitor: { type: "string", multiple: true, default: [] },
    log: { type: "boolean", default: false },
  },
});
if (!options.image || !options.flash || !options.serial) throw new Error("--image, --flash and --serial are needed");

const flash = openFlash(options.flash);
/** @type {import("node:net").Socket | null} */
let host = null;
/** The same at the USB port. @type {import("node:net").Socket | null} */
let computer = null;
/** @type {number[]} */
let sent = [];
const board = new Board(readFileSync(options.image), readFlash(flash), {
  sent: (byte) => {
    sent.push(byte);
    monitor.sent();
  },
  received: (bytes) => void computer?.write(bytes),
  moved: (outputs, nanos) => monitor.moved(outputs, nanos),
  lit: (lit, nanos) => monitor.lit(lit, nanos),
  // One write, in place, before the firmware goes on: what it then says is stored outlives this process.
  stored: (offset, bytes) => void writeSync(flash, bytes, 0, bytes.length, offset),
  erased: (from, to) => monitor.erased(from, to),
  logged: (said) => {
    if (options.log) writeAll(1, said);
  },
  reset: (why) => {
    if (why === "firmware") process.stderr.write("fencegate-rp2040: gave up, and reset itself; `--log` says why\n");
  },
});
const monitor = new Monitor(board, catchUp);
const panel = new Panel(board);

const begun = performance.now();
const due = () => (performance.now() - begun) * 1e6;
/** @type {NodeJS.Timeout | undefined} */
let nap;
let soon = false;

/** Runs the board up to now, or for a turn, and comes back when something is due. */
function turn() {
  clearTimeout(nap);
  const end = performance.now() + TURN;
  while (board.nanos < due() && performance.now() < end) board.run(Math.min(due(), board.nanos + SLICE));
  deliver();
  if (board.nanos < due() - SLICE) {
    if (!soon) {
      soon = true;
      setImmediate(() => {
        soon = false;
        turn();
      });
    }
  } else {
    nap = setTimeout(turn, Math.min(board.idle / 1e6, NAP));
  }
}

/** Runs the board up to now, however long that takes. */
function catchUp() {
  for (const goal = due(); board.nanos < goal; ) board.run(Math.min(goal, board.nanos + SLICE));
  deliver();
}

/** Hands over what has left the board, and lets the host go on where there is room on the line. */
function deliver() {
  if (sent.length > 0) {
    host?.write(Uint8Array.from(sent));
    sent = [];
  }
  if (host?.isPaused() && board.backlog < LINE) host.resume();
  if (computer?.isPaused() && board.usb.backlog < PORT) computer.resume();
}

serve(options.serial, (socket) => {
  host?.destroy();
  host = socket;
  socket.setNoDelay(true);
  socket.on("data", (bytes) => {
    catchUp();
    monitor.fed(bytes.length);
    board.feed(bytes);
    if (board.backlog >= LINE) socket.pause();
    turn();
  });
  socket.on("close", () => {
    if (host === socket) host = null;
  });
});
if (options.usb) {
  serve(options.usb, (socket) => {
    computer?.destroy();
    computer = socket;
    catchUp();
    board.usb.plug(false);
    board.usb.plug(true);
    socket.on("data", (bytes) => {
      catchUp();
      board.usb.send(bytes);
      if (board.usb.backlog >= PORT) socket.pause();
      turn();
    });
    socket.on("close", () => {
      if (computer !== socket) return;
      computer = null;
      catchUp();
      board.usb.plug(false);
    });
    turn();
  });
}
if (options.panel) serve(options.panel, (socket) => panel.open(socket, () => (catchUp(), turn())));
for (const place of options.monitor) serve(place, (socket) => monitor.open(socket, turn));
turn();

/** @param {string} place @param {(socket: import("node:net").Socket) => void} visit */
function serve(place, visit) {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy()); // who has gone has gone
    visit(socket);
  });
  if (place.startsWith("/")) {
    if (existsSync(place)) unlinkSync(place);
    server.listen(place);
  } else {
    const at = place.lastIndexOf(":");
    server.listen(Number(place.slice(at + 1)), place.slice(0, at));
  }
}

/** Opens the flash's file, and makes it, all erased, where there is none: under another name first, so that a kill half-way
 * does not leave a short one. @param {string} file */
function openFlash(file) {
  if (!existsSync(file)) {
    const made = openSync(`${file}.new`, "w");
    writeAll(made, new Uint8Array(FLASH_LENGTH).fill(0xff));
    closeSync(made);
    renameSync(`${file}.new`, file);
  }
  return openSync(file, "r+");
}

/** @param {number} file */
function readFlash(file) {
  const bytes = new Uint8Array(fstatSync(file).size);
  for (let at = 0; at < bytes.length; ) at += readSync(file, bytes, at, bytes.length - at, at);
  return bytes;
}

/** @param {number} file @param {Uint8Array} bytes */
function writeAll(file, bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}
