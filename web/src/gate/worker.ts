// The Pico in a worker of its own: the same image that goes onto a real one, run by the emulator, paced to real time.
//
// The board's clock never runs ahead of the page's. A machine that is too slow, or a page that slept, loses the time that
// is missing: the board then was slow, and does not hurry afterwards.
//
// The flash is kept here over every cut, and in the browser's storage over the view's end (`flash.ts`). What the firmware says
// after it has stored something leaves the board only when that is kept there: an answer never knows more than the next boot.

import { Board, FLASH_LENGTH } from "fencegate-rp2040-emulator";
import image from "./firmware.uf2?url";
import type { FromBoard, ToBoard } from "./board";
import { Flash, SECTOR } from "./flash";

/** For how long the board may run before messages get their turn, in ms. */
const TURN = 8;
/** How far it runs before the time is looked at, in ns. */
const SLICE = 500_000;
/** The longest sleep, in ms. */
const NAP = 20;
/** What may be caught up with, in ns. */
const BEHIND = 100_000_000;
/** How often it is said how fast the board runs, in ms. */
const REPORT = 1_000;

const page = self as unknown as { postMessage(message: FromBoard): void; onmessage: (event: MessageEvent<ToBoard>) => void };
const tell = (message: FromBoard) => page.postMessage(message);

const memory = new Uint8Array(FLASH_LENGTH).fill(0xff);
/** Where that outlasts this worker, if it does. */
let flash: Flash | undefined;
/** Sectors that have changed since they were kept. */
const changed = new Set<number>();
/** How much is on its way there. */
let keeping = 0;
let firmware: Promise<Uint8Array> | undefined;
let board: Board | undefined;
/** Which time the board has power, or has lost it: what an earlier one has asked for is nobody's any more. */
let life = 0;
/** The page's time at the board's zero, in ms. */
let begun = 0;
let sent: number[] = [];
let nap: ReturnType<typeof setTimeout> | undefined;
/** For the report: when the last was, the board's time then, and how long the emulator has worked since. */
let last = { at: 0, nanos: 0, worked: 0 };
/** A turn that comes after what the page has said meanwhile; a timer would come 4 ms later. */
const soon = new MessageChannel();
soon.port1.onmessage = () => attempt(turn);

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));
const due = () => (performance.now() - begun) * 1e6;

function turn(): void {
  clearTimeout(nap);
  if (!board) return;
  const start = performance.now();
  while (board.nanos < due() && performance.now() < start + TURN) board.run(Math.min(due(), board.nanos + SLICE));
  const now = performance.now();
  last.worked += now - start;
  keep();
  speak();
  const behind = due() - board.nanos;
  if (behind > BEHIND) begun += behind / 1e6;
  if (now - last.at >= REPORT) {
    const passed = now - last.at;
    tell({ kind: "pace", speed: (board.nanos - last.nanos) / 1e6 / passed, load: last.worked / passed });
    last = { at: now, nanos: board.nanos, worked: 0 };
  }
  if (behind > SLICE) soon.port2.postMessage(undefined);
  // An erase has taken the board ahead, or nothing happens by itself before `idle` is over.
  else nap = setTimeout(() => attempt(turn), Math.min(Math.max(board.idle, -behind) / 1e6, NAP));
}

/** Says what the board has said, once all that it had stored before is kept. */
function speak(): void {
  if (keeping || !sent.length) return;
  tell({ kind: "bytes", bytes: Uint8Array.from(sent) });
  sent = [];
}

function keep(): void {
  if (flash && changed.size) kept(flash.write(changed, memory));
  changed.clear();
}

function kept(done: Promise<void>): void {
  keeping += 1;
  done.catch(refused).finally(() => ((keeping -= 1), speak()));
}

/** From now on the flash is in memory alone. */
function refused(error: unknown): void {
  flash = undefined;
  tell({ kind: "refused", why: words(error).replace(/\.$/, "") });
}

async function open(): Promise<void> {
  let secrets;
  try {
    flash = await Flash.open();
    secrets = await flash.read(memory);
  } catch (error) {
    refused(error);
  }
  tell({ kind: "opened", secrets });
}

async function boot(): Promise<void> {
  const mine = ++life;
  let bytes: Uint8Array;
  try {
    bytes = await (firmware ??= load());
  } catch (error) {
    firmware = undefined;
    if (mine === life) failed(error);
    return;
  }
  if (mine === life) attempt(() => power(bytes));
}

function power(bytes: Uint8Array): void {
  sent = [];
  board = new Board(bytes, memory, {
    sent: (byte) => void sent.push(byte),
    moved: (outputs) => tell({ kind: "pins", outputs }),
    lit: (lit) => tell({ kind: "lamp", lit }),
    stored: (offset, cells) => {
      memory.set(cells, offset);
      for (let n = Math.floor(offset / SECTOR); n * SECTOR < offset + cells.length; n += 1) changed.add(n);
    },
    reset: (why) => tell({ kind: "reset", why }),
  });
  begun = performance.now();
  last = { at: begun, nanos: 0, worked: 0 };
  tell({ kind: "up" });
  turn();
}

async function load(): Promise<Uint8Array> {
  const answer = await fetch(image);
  if (!answer.ok) throw new Error(`the firmware did not load (${answer.status})`);
  return new Uint8Array(await answer.arrayBuffer());
}

function cut(): void {
  life += 1;
  clearTimeout(nap);
  keep();
  board = undefined;
  sent = [];
  tell({ kind: "pins", outputs: 0 });
  tell({ kind: "lamp", lit: false });
  tell({ kind: "off" });
}

/** What the emulator does not model throws: the board is then off, and the page says so. */
function attempt(what: () => void): void {
  try {
    what();
  } catch (error) {
    failed(error);
  }
}

function failed(error: unknown): void {
  cut();
  tell({ kind: "failed", why: words(error) });
}

page.onmessage = ({ data }) => {
  if (data.kind === "open") void open();
  else if (data.kind === "keep") flash && kept(flash.keep(data.secrets));
  else if (data.kind === "boot") void boot();
  else if (data.kind === "cut") cut();
  else
    attempt(() => {
      turn();
      board?.feed(data.bytes);
      turn();
    });
};
