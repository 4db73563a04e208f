// The page's view of a gate, joined to a real one: the port is made up, and behind it is the emulated board, under Node.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe } from "node:test";
import { Bench, INSTANCE, SECRETS } from "./gate-bench.mjs";
import { button, fence, holder, lit, press, stopClock, told } from "./gate-view.mjs";
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
  /** Whether the line loses a frame that goes to the gate. */
  const line = { loses: () => false };
  const decoder = bench.decoder();
  const begun = performance.now() - bench.board.nanos / 1e6;
  await page.exposeFunction("toBoard", (bytes) => {
    const frame = Uint8Array.from(bytes);
    if (!decoder.push(frame).some(({ said }) => line.loses(said ?? {}))) bench.board.feed(frame);
  });
  await page.evaluate(() => {
    let opened = false;
    const close = async () => {
      if (port.readable?.locked || port.writable?.locked) throw new TypeError("Cannot close a locked port");
      await Promise.all([window.closing, new Promise((done) => setTimeout(done, 1_000))]);
      port.readable = port.writable = null;
      opened = false;
    };
    const open = async ({ baudRate }) => {
      const words = "Failed to execute 'open' on 'SerialPort': The port is already open.";
      if (opened) throw new DOMException(words, "InvalidStateError");
      opened = true;
      window.baud = baudRate;
      port.readable = new ReadableStream({
        start: (to) => {
          window.fromBoard = (bytes) => to.enqueue(Uint8Array.from(bytes));
          window.pull = () => to.error(new DOMException("The device has been lost.", "NetworkError"));
        },
      });
      port.writable = new WritableStream({ write: (bytes) => window.toBoard([...bytes]) });
      if (window.lacks) port[window.lacks] = null;
    };
    const requestPort = async () => {
      await window.choice;
      window.chosen = (window.chosen ?? 0) + 1;
      return port;
    };
    const port = { readable: null, writable: null, open, close };
    Object.defineProperty(navigator, "serial", { value: { requestPort } });
  });
  const paced = setInterval(async () => {
    bench.board.run(Math.min((performance.now() - begun) * 1e6, bench.board.nanos + 20e6));
    const bytes = bench.sent.splice(0);
    if (bytes.length) await page.evaluate((some) => window.fromBoard?.(some), bytes).catch(() => undefined);
  }, 5);
  try {
    await tell(bench, line);
  } finally {
    clearInterval(paced);
  }
};

/** Connects to the gate behind the port, with its own keys or others. */
const connect = async (page, file = FILE) => {
  await choose(page, text(file));
  await press(page, "Connect a real gate");
};
const connected = async (page) => {
  await connect(page);
  await told(page, /The gate is ready/);
};

/** How many outputs the view claims to know. */
const pins = (page) => page.locator("[id^=pin-]").count();
const drives = ({ kind }) => kind === "drive";

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
      await press(page, "Connect a real gate");
      await told(page, /its fence still stands at 33, of A/);
    }),
  );

  story("is connected again where the first key was another gate's, on the same port", "#gate", (page) =>
    withPort(page, async () => {
      await connect(page, { ...FILE, root: randomBytes(32).toString("hex"), operator: randomBytes(32).toString("hex") });
      await told(page, "The gate does not answer (no answer).");
      assert.equal(await pins(page), 0);
      await connected(page);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      assert.equal(await page.locator("#port-error").textContent(), "");
    }),
  );

  for (const [way, leave] of [
    [
      "after a board that was booted and thrown away",
      async (page) => {
        await page.evaluate(() => window.pull());
        await told(page, /^The line is gone/);
        await press(page, "Boot the board");
        await told(page, /The gate is ready/);
        await press(page, "Cut the power");
        await press(page, "Take a new board");
        await told(page, /thrown away/);
      },
    ],
    [
      "in the view that is opened next",
      async (page) => {
        await page.getByRole("link", { name: "Size a lease" }).click();
        await page.locator("#window_us").waitFor();
        await page.getByRole("link", { name: "Try a gate" }).click();
        await told(page, "Nothing has power yet.");
      },
    ],
  ]) {
    story(`opens a port again that takes its time to close, ${way}`, "#gate", (page) =>
      withPort(page, async () => {
        await connected(page);
        await page.evaluate(() => void (window.closing = new Promise((done) => (window.closes = done))));
        await leave(page);
        await connect(page);
        await page.waitForFunction(() => window.chosen === 2);
        await page.evaluate(() => window.closes());
        await told(page, /The gate is ready/);
        assert.equal(await page.locator("#port-error").textContent(), "");
      }),
    );
  }

  for (const side of ["readable", "writable"]) {
    story(`leaves a port that opens without its ${side} side to the next try`, "#gate", (page) =>
      withPort(page, async () => {
        await page.evaluate((side) => void (window.lacks = side), side);
        await connect(page);
        await page.locator("#port-error", { hasText: "The port opened without a line in it." }).waitFor();
        await page.evaluate(() => void (window.lacks = undefined));
        await connected(page);
        assert.equal(await page.locator("#port-error").textContent(), "");
      }),
    );
  }

  story("shows only outputs that it knows: all of a round, and none before the first", "#gate", (page) =>
    withPort(page, async (bench, line) => {
      const unknown = () => page.getByText("Unknown: the gate does not say.").waitFor({ timeout: 20_000 });
      line.loses = () => true;
      await connect(page);
      await told(page, "Asking the gate who it is.");
      await unknown();
      assert.equal(await pins(page), 0);
      line.loses = () => false;
      await told(page, /The gate is ready/);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      assert.equal(await pins(page), 6);

      // One channel is not heard: the outputs of those behind it do not take its place.
      line.loses = ({ kind, channel }) => kind === "channel" && channel === 2;
      await unknown();
      assert.equal(await pins(page), 0);
      line.loses = () => false;
      await lit(page, 0, true);
      assert.equal(await pins(page), 6);

      line.loses = () => true;
      await unknown();
      assert.equal(await pins(page), 0);
    }),
  );

  story("seals what a holder says with the epoch of its grant, whatever the operator has set since", "#gate", (page) =>
    withPort(page, async (bench, line) => {
      await connected(page);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      line.loses = drives;
      await holder(page, "A", "hears no answer");
      const { reply } = bench.ask(bench.speaker("operator"), { kind: "epoch", channel: 0, epoch: 1, floor: 0 });
      assert.equal(reply.fence.epoch, 1);
      await fence(page, "epoch 1, nobody above 0");
      await page.waitForTimeout(2_000); // What A sealed before the page knew of it has been given up.
      line.loses = () => false;
      await told(page, "A’s command bounced: stale, epoch 0 < 1.");
      await holder(page, "A", "fenced off");
      assert.equal(bench.board.outputs, 0);

      await press(page, "A takes token 34 and opens");
      await told(page, /A holds token 34/);
      await fence(page, "epoch 1, token 34 of a");
    }),
  );

  story("counts tokens that JavaScript's numbers cannot", "#gate", (page) =>
    withPort(page, async (bench) => {
      const [token, next] = [2n ** 60n, 2n ** 60n + 1n];
      bench.ask(bench.speaker("z"), { kind: "raise", channel: 0, epoch: 0, token });
      await connected(page);
      await press(page, `A takes token ${next} and opens`);
      await told(page, `A holds token ${next}`);
      await fence(page, `token ${next} of a`);
      await lit(page, 0, true);
    }),
  );

  story("leaves a holder's lease over where the line goes while it closes", "#gate", (page) =>
    withPort(page, async (bench, line) => {
      await connected(page);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      line.loses = ({ kind }) => kind === "release";
      await press(page, "A closes");
      await page.evaluate(() => window.pull());
      await told(page, /^The line is gone/);
      await page.waitForTimeout(2_000); // Longer than the answer may take.
      await told(page, /^The line is gone/);
      await holder(page, "A", "its lease is over");
    }),
  );

  story("wakes a holder whatever was pressed while its command was under way", "#gate", (page) =>
    withPort(page, async (bench, line) => {
      await connected(page);
      await press(page, "A takes token 33 and opens");
      await lit(page, 0, true);
      /** Presses two buttons while a command of A is under way: for as long as that takes, nothing is given up. */
      const twice = async (first, second) => {
        await stopClock(page);
        await holder(page, "A", "drives");
        await new Promise((sent) => (line.loses = (said) => drives(said) && (sent(), true)));
        await press(page, first);
        await press(page, second);
        line.loses = () => false;
        await page.evaluate(() => window.startClock());
      };
      await twice("Freeze A", "Freeze A");
      await told(page, /A is frozen/);
      await press(page, "Wake A");
      await told(page, /^A (holds token 33|woke)/);
      if (/woke/.test(await page.locator("#told").textContent())) await press(page, "A takes token 34 and opens");
      await lit(page, 0, true);

      await twice("A closes", "Freeze A");
      await told(page, /^A has closed/);
      await holder(page, "A", "does nothing");
      await press(page, /A takes token/);
      await lit(page, 0, true);
    }),
  );

  story("ends a story whose gate is exchanged for another", "#gate", (page) =>
    withPort(page, async (bench) => {
      await page.evaluate(() => void (window.choice = new Promise((done) => (window.choose = done))));
      await connect(page);
      await press(page, "Boot the board");
      await told(page, /The gate is ready/);
      await press(page, "Play the story");
      await told(page, /A holds token 33/);
      await page.evaluate(() => window.choose());
      await page.getByRole("heading", { name: "The gate on the cable" }).waitFor();
      await told(page, /The gate is ready/);
      await button(page, "Play the story").waitFor();
      await page.waitForTimeout(5_000); // By then B would have its turn.
      assert.equal(bench.ask(bench.speaker("observer"), { kind: "channel", channel: 0 }).reply.fence.holder, null);
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
