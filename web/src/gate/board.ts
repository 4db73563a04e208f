// The emulated board, as the page has it: a line, pins and a switch. It runs in a worker.

import type { Secrets } from "./flash";

export type ToBoard =
  /** Asks for what this browser keeps. */
  | { kind: "open" }
  | { kind: "keep"; secrets: Secrets }
  | { kind: "boot" }
  | { kind: "cut" }
  | { kind: "bytes"; bytes: Uint8Array };
export type FromBoard =
  /** The keys of the board that is kept, if one is. */
  | { kind: "opened"; secrets?: Secrets | undefined }
  /** From now on nothing is kept, and why. */
  | { kind: "refused"; why: string }
  | { kind: "up" }
  | { kind: "off" }
  | { kind: "failed"; why: string }
  | { kind: "bytes"; bytes: Uint8Array }
  /** Bit n is output n. */
  | { kind: "pins"; outputs: number }
  | { kind: "lamp"; lit: boolean }
  | { kind: "reset"; why: string }
  /** The board's time over the page's, and for which part of it the emulator had to work. */
  | { kind: "pace"; speed: number; load: number };

/** A line that carries bytes both ways. */
export interface Line {
  send(bytes: Uint8Array): void;
  close(): void;
}

export class EmulatedBoard implements Line {
  #worker: Worker;

  constructor(heard: (message: FromBoard) => void) {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }: MessageEvent<FromBoard>) => heard(data);
    this.#worker.onerror = () => heard({ kind: "failed", why: "the worker with the emulator did not load" });
  }

  open(): void {
    this.#tell({ kind: "open" });
  }

  keep(secrets: Secrets): void {
    this.#tell({ kind: "keep", secrets });
  }

  boot(): void {
    this.#tell({ kind: "boot" });
  }

  cut(): void {
    this.#tell({ kind: "cut" });
  }

  send(bytes: Uint8Array): void {
    this.#tell({ kind: "bytes", bytes });
  }

  close(): void {
    this.#worker.terminate();
  }

  #tell(message: ToBoard): void {
    this.#worker.postMessage(message);
  }
}
