// The firmware in virtual time, under Node, and whoever speaks with it through the module's client.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { Board, FLASH_LENGTH } from "../../embedded/firmware/rp2040/emulator/board.js";
import { DIST } from "./page.mjs";

export const PACKAGE = new URL("../../wasm/gate/pkg/", import.meta.url);
const module = await import(new URL("fencegate_gate.js", PACKAGE));
export const { Decoder, GateClient, Keys } = module;
await module.default({ module_or_path: await readFile(new URL("fencegate_gate_bg.wasm", PACKAGE)) });
const assets = new URL("assets/", DIST);
/** The image as the page has it. */
const IMAGE = await readFile(new URL((await readdir(assets)).find((name) => name.endsWith(".uf2")), assets));

/** A number of the size that a key file may have, and JavaScript cannot count to. */
export const INSTANCE = 18_446_744_073_709_551_557n;
export const SECRETS = { gate: randomBytes(8), root: randomBytes(32), operator: randomBytes(32) };
const keys = () => new Keys(SECRETS.gate, 7, INSTANCE, SECRETS.root, SECRETS.operator);
let nonce = 1n;

/** A board in virtual time, and whoever speaks with it. */
export class Bench {
  memory = new Uint8Array(FLASH_LENGTH).fill(0xff);
  sent = [];
  frames = [];
  decoders = [this.decoder(), this.decoder()];

  constructor() {
    this.power();
  }

  power() {
    const stored = (offset, cells) => this.memory.set(cells, offset);
    this.board = new Board(IMAGE, this.memory, { sent: (byte) => this.sent.push(byte), stored });
  }

  get now() {
    return Math.floor(this.board.nanos / 1_000);
  }

  /** Until the client has an end of what it was asked. */
  converse(client) {
    for (;;) {
      const step = client.poll(this.now);
      if (step.kind === "send") {
        this.frames.push(...this.decoders[0].push(step.bytes));
        this.board.feed(step.bytes);
      } else if (step.kind === "wait") {
        this.board.run(this.board.nanos + 1e6);
        const bytes = Uint8Array.from(this.sent.splice(0));
        this.frames.push(...this.decoders[1].push(bytes));
        client.push(bytes, this.now);
      } else return step;
    }
  }

  ask(client, operation, patience = 20e6) {
    client.begin(operation, this.now + patience);
    return this.converse(client);
  }

  decoder() {
    return new Decoder(keys());
  }

  speaker(who) {
    return new GateClient((nonce += 1n << 32n), keys(), who);
  }

  provision() {
    const blank = GateClient.blank((nonce += 1n << 32n));
    blank.provision(keys(), this.now + 20e6);
    assert.deepEqual(this.converse(blank), { kind: "done", reply: { kind: "provisioned" } });
  }
}
