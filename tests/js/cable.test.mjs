// The page's view of a gate, joined to a real one: the port is made up, and behind it is the emulated board, under Node.

import assert from "node:assert/strict";
import { describe } from "node:test";
import { Bench, INSTANCE, SECRETS } from "./gate-bench.mjs";
import { button, fence, holder, lit, press, told } from "./gate-view.mjs";
import { setting } from "./page.mjs";

const { story } = setting();

const FILE = {
  fencegate_key: 1,
  gate: SECRETS.gate.toString("hex"),
  key_id: 7,
  instance: "INSTANCE",
  root: SECRETS.root.toString("hex"),
  operator: SECRETS.operator.toString("hex"),
};
const text = (fields) => JSON.stringify(fields).replace('"INSTANCE"', String(INSTANCE));
const choose = (page, content) =>
  page.getByLabel("The operator’s key file").setInputFiles({ name: "press.key", mimeType: "", buffer: Buffer.from(content) });

/**
 * Puts a port into the page that is made up; the board behind it is the emulated one, under Node, so that the bytes are a
 * gate's. Like a real one it opens once until it is closed, and is the same whenever it is chosen. Until `tell` has ended.
 */
const withPort = async (page, tell) => {
  const bench = new Bench();
  bench.provision();
  const begun = performance.now() - bench.board.nanos / 1e6;
  await page.exposeFunction("toBoard", (bytes) => bench.board.feed(Uint8Array.from(bytes)));
  await page.evaluate(() => {
    const close = async () => {
      if (port.readable?.locked || port.writable?.locked) throw new TypeError("Cannot close a locked port");
      await new Promise((done) => setTimeout(done, 1_000));
      port.readable = port.writable = null;
    };
    const open = async ({ baudRate }) => {
      const words = "Failed to execute 'open' on 'SerialPort': The port is already open.";
      if (port.readable) throw new DOMException(words, "InvalidStateError");
      window.baud = baudRate;
      port.readable = new ReadableStream({
        start: (to) => {
          window.fromBoard = (bytes) => to.enqueue(Uint8Array.from(bytes));
          window.pull = () => to.error(new DOMException("The device has been lost.", "NetworkError"));
        },
      });
      port.writable = new WritableStream({ write: (bytes) => window.toBoard([...bytes]) });
    };
    const port = { readable: null, writable: null, open, close };
    Object.defineProperty(navigator, "serial", { value: { requestPort: async () => port } });
  });
  const paced = setInterval(async () => {
    bench.board.run(Math.min((performance.now() - begun) * 1e6, bench.board.nanos + 20e6));
    const bytes = bench.sent.splice(0);
    if (bytes.length) await page.evaluate((some) => window.fromBoard?.(some), bytes).catch(() => undefined);
  }, 5);
  try {
    await tell(bench);
  } finally {
    clearInterval(paced);
  }
};

/** Connects to the gate behind the port. */
const connected = async (page) => {
  await choose(page, text(FILE));
  await press(page, "Connect a real gate");
  await told(page, /The gate is ready/);
};

/** How many outputs the view claims to know. */
const pins = (page) => page.locator("[id^=pin-]").count();

describe("a gate on a cable", () => {
  story("says that a browser without Web Serial reaches no real gate", "#size", async (page) => {
    await page.evaluate(() => Object.defineProperty(navigator, "serial", { value: undefined }));
    await page.getByRole("link", { name: "Try a gate" }).click();
    await page.getByText("has no Web Serial").waitFor();
    assert.equal(await button(page, "Connect a real gate").count(), 0);
  });

  story("refuses a file that is not the operator's, and shows nothing of it", "#gate", async (page) => {
    const why = page.locator("#key-file-error");
    await press(page, "Connect a real gate");
    await why.filter({ hasText: "Choose the operator’s key file first." }).waitFor();
    for (const [content, words] of [
      ["abracadabra", "no JSON"],
      ["null", "no key file"],
      [text({ ...FILE, root: undefined }), "has not all of the keys"],
      [text({ ...FILE, instance: undefined }), "has not all of the keys"],
      [text({ ...FILE, gate: "00" }), "names no gate"],
      [text({ ...FILE, demonstration: true }), "without fencing"],
    ]) {
      await choose(page, content);
      await press(page, "Connect a real gate");
      await why.filter({ hasText: words }).waitFor();
      assert.doesNotMatch(await page.locator("body").innerText(), new RegExp(`abracadabra|${FILE.operator}`));
    }
  });

  story("speaks over a serial port with the same view, to a port that is made up", "#gate", (page) =>
    withPort(page, async (bench) => {
      await connected(page);
      assert.equal(await page.evaluate(() => window.baud), 115_200);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      assert.equal(bench.board.outputs, 1);
      await press(page, "Freeze A");
      await lit(page, 0, false);
      await press(page, "B takes token 34 and opens");
      await told(page, /B holds token 34/);
      await press(page, "Wake A");
      await told(page, "A’s late command bounced: stale, 33 < 34.");
      assert.equal(await button(page, "Cut the power").isDisabled(), true);
    }),
  );

  story("says that the line is gone where a port fails in the middle of a window, and claims nothing of the outputs", "#gate", (page) =>
    withPort(page, async (bench) => {
      await connected(page);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      await page.evaluate(() => window.pull());
      await told(page, /^The line is gone \(The device has been lost\)\.$/);
      assert.equal(await pins(page), 0);
      await fence(page, "unknown");
      await holder(page, "A", "its lease is over");
      for (let tries = 0; bench.board.outputs !== 0; tries += 1) {
        assert.ok(tries < 200, "the gate's own dead man's switch");
        await page.waitForTimeout(50);
      }
      assert.equal(await button(page, "Connect a real gate").isEnabled(), true);
    }),
  );

  story("says in a sentence that no port was chosen, or that it does not open", "#gate", async (page) => {
    const why = page.locator("#port-error");
    await choose(page, text(FILE));
    for (const [of, name, message, words] of [
      ["requestPort", "NotFoundError", "Failed to execute 'requestPort' on 'Serial': No port selected by the user.", "No port was chosen."],
      ["requestPort", "SecurityError", "Failed to execute 'requestPort' on 'Serial': Access denied.", "The browser gives no port (Access denied)."],
      [
        "open",
        "NetworkError",
        "Failed to execute 'open' on 'SerialPort': Failed to open serial port.",
        "The port does not open (Failed to open serial port): another program may have it.",
      ],
    ]) {
      await page.evaluate(
        ([of, name, message]) => {
          const refuse = () => Promise.reject(new DOMException(message, name));
          const requestPort = of === "requestPort" ? refuse : async () => ({ [of]: refuse });
          Object.defineProperty(navigator, "serial", { configurable: true, value: { requestPort } });
        },
        [of, name, message],
      );
      await press(page, "Connect a real gate");
      await why.filter({ hasText: words }).waitFor();
      assert.equal(await why.textContent(), words);
      assert.equal(await page.locator("#status").textContent(), words, "and it is said");
      assert.equal(await page.getByLabel("The operator’s key file").getAttribute("aria-invalid"), "false");
      assert.equal(await page.locator("#told").textContent(), "Nothing has power yet.");
      assert.equal(await button(page, "Boot the board").isEnabled(), true);
    }
  });
});
