// A real gate on a serial port, by Web Serial, where the browser has it. Never run with hardware.

import type { Line } from "./board";

/** What is used of Web Serial; TypeScript's own declarations have none of it. */
interface Port {
  readable: ReadableStream<Uint8Array> | null;
  writable: WritableStream<Uint8Array> | null;
  open(options: { baudRate: number }): Promise<void>;
  close(): Promise<void>;
}

/** The line's speed, which every board has unless it was built otherwise (`fast`). The page speaks no other. */
const BAUD = 115_200;

const ports = () => (navigator as { serial?: { requestPort(): Promise<Port> } }).serial;

/** What a browser says of an error, as the end of a sentence of ours. */
const words = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).replace(/^Failed to execute .*?: /, "").replace(/\.$/, "");

/** Ports that were left, and when they are closed: only then does one open again, whoever asks for it. */
const left = new WeakMap<Port, Promise<void>>();

export const hasSerial = (): boolean => ports() !== undefined;

/** Lets the visitor choose a port, and opens it. `over` is called once, when it brings nothing any more. */
export async function connect(heard: (bytes: Uint8Array) => void, over: (why: string) => void): Promise<Line> {
  const serial = ports();
  if (!serial) throw new Error("this browser has no Web Serial");
  const port = await serial.requestPort().catch((error: unknown) => {
    // So it calls a chooser that was closed without a choice.
    const cancelled = error instanceof DOMException && error.name === "NotFoundError";
    throw new Error(cancelled ? "no port was chosen" : `the browser gives no port (${words(error)})`);
  });
  await left.get(port);
  await port.open({ baudRate: BAUD }).catch((error: unknown) => {
    throw new Error(`the port does not open (${words(error)}): another program may have it`);
  });
  const { readable, writable } = port;
  if (!readable || !writable) {
    // Neither is locked: a port with a reader would not close.
    await port.close().catch(() => undefined);
    throw new Error("the port opened without a line in it");
  }
  const [reader, writer] = [readable.getReader(), writable.getWriter()];
  let gone = false;
  const read = async () => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "the port was closed";
      heard(value);
    }
  };
  const end = async () => {
    await reader.cancel().catch(() => undefined);
    reader.releaseLock();
    // What has not gone out by now never does: a device that takes nothing any more would hold the port for ever.
    await writer.abort().catch(() => undefined);
    writer.releaseLock();
    await port.close().catch(() => undefined);
  };
  const close = (why: string) => {
    if (gone) return;
    gone = true;
    left.set(port, end());
    over(why);
  };
  void read().then(close, (error: unknown) => close(words(error)));
  return {
    send: (bytes) => void writer.write(bytes).catch((error: unknown) => close(words(error))),
    close: () => close("closed"),
  };
}
