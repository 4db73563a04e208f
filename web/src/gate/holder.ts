// One principal that speaks with the gate: the module's client over the line, and what it is asked to do, one thing after
// the other. A frozen one does nothing, and hears what came meanwhile when it wakes.

import { GateClient, type Keys, type Operation, type Reply } from "fencegate-gate";
import { random64 } from "./keys";

export type Outcome = Reply | { kind: "failed"; why: string };

/** The page's clock, in µs. */
export const now = (): number => Math.round(performance.now() * 1_000);
const MS = 1_000;

export class Host {
  #client: GateClient;
  #send: (bytes: Uint8Array) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #done: ((outcome: Outcome) => void) | undefined;
  #frozen = false;
  #unheard: Uint8Array[] = [];

  constructor(send: (bytes: Uint8Array) => void, keys?: Keys, who = "operator") {
    this.#client = keys ? new GateClient(random64(), keys, who) : GateClient.blank(random64());
    this.#send = send;
  }

  /** Asks for one thing, and waits for its end: at the latest after `patience` ms. */
  ask(operation: Operation, patience: number): Promise<Outcome> {
    return this.#begin(() => this.#client.begin(operation, now() + patience * MS));
  }

  provision(keys: Keys, patience: number): Promise<Outcome> {
    return this.#begin(() => this.#client.provision(keys, now() + patience * MS));
  }

  /** From now on it does nothing. */
  freeze(): void {
    this.#frozen = true;
    clearTimeout(this.#timer);
  }

  /** Gives up what it was asked, and is awake. */
  drop(): void {
    clearTimeout(this.#timer);
    this.#frozen = false;
    this.#unheard = [];
    this.#settle({ kind: "failed", why: "given up" });
  }

  wake(): void {
    this.#frozen = false;
    for (const bytes of this.#unheard.splice(0)) this.#client.push(bytes, now());
    this.#turn();
  }

  /** The line has brought something. */
  hear(bytes: Uint8Array): void {
    if (this.#frozen) return void this.#unheard.push(bytes);
    this.#client.push(bytes, now());
    this.#turn();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#settle({ kind: "failed", why: "closed" });
    this.#client.free();
  }

  #begin(begin: () => void): Promise<Outcome> {
    this.#settle({ kind: "failed", why: "given up for something else" });
    return new Promise((done) => {
      this.#done = done;
      begin();
      this.#turn();
    });
  }

  #turn(): void {
    clearTimeout(this.#timer);
    if (this.#frozen || !this.#done) return;
    for (;;) {
      const step = this.#client.poll(now());
      if (step.kind === "send") this.#send(step.bytes);
      else if (step.kind === "wait") {
        this.#timer = setTimeout(() => this.#turn(), Math.max(0, (Number(step.until_us) - now()) / MS) + 1);
        return;
      } else {
        return this.#settle(step.kind === "done" ? step.reply : step.kind === "failed" ? step : { kind: "failed", why: "idle" });
      }
    }
  }

  #settle(outcome: Outcome): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(outcome);
  }
}
