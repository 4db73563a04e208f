// A gate and who speaks with it: two holders, a lock service that this page plays, and a board that is emulated or real.
//
// What the gate believes and does is the firmware's; what the holders say is sealed by the module's client.

import init, { Decoder, type Fence, type Keys } from "fencegate-gate";
import { EmulatedBoard, type FromBoard, type Line } from "./board";
import { forget, isKept, type Secrets } from "./flash";
import { Host } from "./holder";
import { Holders } from "./holders";
import { fresh, keysOf } from "./keys";
import { connect } from "./serial";
import { CHANNEL, Closed, PATIENCE, RENEW, type Stage } from "./stage";
import { BEGUN, type Name, type State } from "./state";
import { Story, type Cast } from "./story";
import { resetRow, row, said, type Row } from "./words";

/** How long the first answer after a start may take, in ms. */
const FIRST_ANSWER = 20_000;
/** The same on a cable: the gate there is no slower than its own time. */
const FIRST_ANSWER_ON_CABLE = 5_000;
/** How many frames are shown. */
const FRAMES = 200;

export class Session implements Cast {
  state: State = BEGUN;
  #changed: () => void;
  #keys: Keys | undefined;
  #secrets: Secrets | undefined;
  #line: Line | undefined;
  #board: EmulatedBoard | undefined;
  #decoders: { towards: Decoder; from: Decoder } | undefined;
  #hosts = new Set<Host>();
  #holders: Holders | undefined;
  #operator: Host | undefined;
  /** Who makes a gate of the blank board. */
  #blank: Host | undefined;
  #provisioned = false;
  #begun = performance.now();
  #frames = 0;
  #closed = false;
  /** A board that has lost power says nothing any more, whatever was under way. */
  #life = 0;
  #stage: Stage = {
    state: () => this.state,
    set: (change) => this.#set(change),
    tell: (words, cls) => this.#tell(words, cls),
    fence: (fence) => this.#fence(fence),
    sleep: (ms) => this.#sleep(ms),
  };
  #story = new Story(this, this.#stage);

  constructor(changed: () => void) {
    this.#changed = changed;
    void isKept().then((yes) => {
      if (!yes || this.state.source !== "none" || this.state.power !== "off") return;
      this.#set({ kept: { yes, why: "" } });
      this.#tell("Nothing has power yet. The board of your last visit is still here, and so is its fence.");
    });
  }

  // The board.

  /** Gives the emulated board power. A new one becomes a gate with new keys; one that this browser has kept is that gate. */
  async boot(): Promise<void> {
    await init();
    if (this.#closed) return;
    if (!this.#board && !(await this.#open())) return;
    const board = this.#board as EmulatedBoard;
    const life = ++this.#life;
    this.#set({ power: "booting", fence: null });
    this.#tell(this.#provisioned ? "The board boots." : "The board boots, blank, and is provisioned with keys of this page.");
    board.boot();
    const operator = this.#operator as Host;
    if (!this.#provisioned) {
      if (this.#blank) this.#forget(this.#blank);
      const blank = (this.#blank = this.#host());
      const outcome = await blank.provision(this.#keys as Keys, FIRST_ANSWER);
      if (life !== this.#life || this.#closed) return;
      this.#forget(blank);
      this.#blank = undefined;
      // Without an answer it may have been cut right after it became a gate.
      if (outcome.kind === "provisioned" || outcome.kind === "failed") this.#provisioned = true;
      if (this.#provisioned && this.#secrets) board.keep((this.#secrets = { ...this.#secrets, provisioned: true }));
    }
    await this.#meet(operator, life);
  }

  /** Takes the board that this browser keeps, or a new one; whether it is there. */
  async #open(): Promise<boolean> {
    const life = ++this.#life;
    this.#set({ power: "booting" });
    let why = "";
    let come: (message: FromBoard) => void;
    const first = new Promise<FromBoard>((done) => (come = done));
    const board = new EmulatedBoard((message) => {
      if (message.kind === "refused") why = message.why;
      if (message.kind === "opened" || message.kind === "failed") come(message);
      this.#heardBoard(message);
    });
    board.open();
    const message = await first;
    if (this.#closed || life !== this.#life || message.kind !== "opened") return board.close(), false;
    const secrets = message.secrets ?? fresh();
    this.#begin(keysOf(secrets), "emulator");
    this.#line = this.#board = board;
    this.#secrets = secrets;
    this.#provisioned = secrets.provisioned;
    // Before the board is provisioned with them: a gate whose keys are lost is no gate.
    if (!message.secrets) board.keep(secrets);
    this.#set({ kept: { yes: why === "", why } });
    return true;
  }

  /** Throws the board away: the next one is blank. */
  async forget(): Promise<void> {
    this.#life += 1;
    this.#end();
    this.#set({ ...BEGUN });
    try {
      await forget();
      this.#tell("The board is thrown away, its fence with it. The next one is blank, and has keys of its own.");
    } catch (error) {
      this.#set({ kept: { yes: true, why: "" } });
      this.#tell(`The board is kept: ${error instanceof Error ? error.message : error}.`, "bad");
    }
  }

  cut(): void {
    this.#life += 1;
    this.#board?.cut();
    this.#set({ power: "cut", fence: null, pace: null });
    this.#tell("The power is cut. Every output has dropped, and what the gate had in memory is gone.");
  }

  /** Connects to a real gate; its keys come from the operator's key file. */
  async connect(keys: () => Keys): Promise<void> {
    await init();
    const read = keys();
    let life = -1;
    const line = await connect(
      (bytes) => this.#heard(bytes),
      (why) => void (life === this.#life && this.#failed(`The line is gone (${why}).`)),
    ).catch((error: unknown) => {
      read.free();
      throw error;
    });
    if (this.#closed) return read.free(), line.close();
    this.#begin(read, "serial");
    this.#line = line;
    life = ++this.#life;
    this.#set({ power: "booting" });
    this.#tell("Asking the gate who it is.");
    const channels = await this.#meet(this.#operator as Host, life, FIRST_ANSWER_ON_CABLE);
    if (life !== this.#life || this.#closed) return;
    await this.#observe(channels, () => life !== this.#life || this.#closed);
  }

  /** Asks for the outputs again and again, since nobody sees the gate's pins from here. */
  async #observe(channels: number, over: () => boolean): Promise<void> {
    const observer = this.#host("observer");
    for (;;) {
      let pins: number[] | undefined = [];
      for (let channel = 0; channel < channels; channel += 1) {
        const status = await observer.ask({ kind: "channel", channel }, PATIENCE);
        if (over()) return;
        if (status.kind === "channel") pins?.push(...status.values);
        // Without it nobody knows which outputs come after.
        else pins = undefined;
        if (status.kind === "channel" && channel === CHANNEL) this.#fence(status.fence);
      }
      this.#set({ pins: pins ?? [] });
      await this.#sleep(RENEW).catch(() => undefined);
      if (over()) return;
    }
  }

  /** Waits for the gate's first answer, and asks where its fence stands; how many channels it has. */
  async #meet(operator: Host, life: number, patience = FIRST_ANSWER): Promise<number> {
    const status = await operator.ask({ kind: "status" }, patience);
    if (life !== this.#life || this.#closed) return 0;
    if (status.kind !== "status") return this.#failed(`The gate does not answer (${said(status)}).`), 0;
    const channel = await operator.ask({ kind: "channel", channel: CHANNEL }, patience);
    if (life !== this.#life || this.#closed) return 0;
    if (channel.kind !== "channel") return this.#failed(`Channel ${CHANNEL} does not answer (${said(channel)}).`), 0;
    this.#there().outputs = channel.values.length;
    this.#set({ power: "on", boots: status.boots });
    this.#fence(channel.fence);
    this.#tell(
      channel.fence.holder === null
        ? `The gate is ready: boot ${status.boots}, and nobody has raised its fence.`
        : `The gate is ready: boot ${status.boots}, and its fence still stands at ${channel.fence.token}, of ${channel.fence.holder.toUpperCase()}.`,
      channel.fence.holder === null ? "" : "good",
    );
    return status.channels;
  }

  // The holders, and their story.

  async take(name: Name): Promise<void> {
    await this.#there().take(name);
  }

  async freeze(name: Name): Promise<void> {
    await this.#there().freeze(name);
  }

  async wake(name: Name): Promise<void> {
    await this.#there().wake(name);
  }

  async release(name: Name): Promise<void> {
    await this.#there().release(name);
  }

  play(): Promise<void> {
    return this.#story.play();
  }

  stop(): void {
    this.#story.stop();
  }

  close(): void {
    this.#closed = true;
    this.#end();
  }

  // What it is made of.

  #begin(keys: Keys, source: "emulator" | "serial"): void {
    this.#end();
    this.#keys = keys;
    this.#decoders = { towards: new Decoder(keys), from: new Decoder(keys) };
    this.#operator = this.#host("operator");
    this.#holders = new Holders(this.#stage, (name) => this.#host(name.toLowerCase()));
    this.#set({ ...BEGUN, source, ...(source === "serial" && { pins: [] }) });
  }

  #end(): void {
    // A story is told of one gate: it goes no further with another.
    this.stop();
    this.#holders?.end();
    for (const host of this.#hosts) host.close();
    this.#hosts.clear();
    this.#leave();
    this.#decoders?.towards.free();
    this.#decoders?.from.free();
    this.#keys?.free();
    this.#board = this.#decoders = this.#keys = this.#secrets = this.#blank = undefined;
    this.#provisioned = false;
  }

  #leave(): void {
    this.#line?.close();
    this.#line = undefined;
  }

  #host(who?: string): Host {
    const host = new Host((bytes) => this.#send(bytes), who === undefined ? undefined : this.#keys, who);
    this.#hosts.add(host);
    return host;
  }

  #forget(host: Host): void {
    if (this.#hosts.delete(host)) host.close();
  }

  #there(): Holders {
    if (!this.#holders) throw new Closed();
    return this.#holders;
  }

  #send(bytes: Uint8Array): void {
    if (!this.#decoders || this.state.power === "cut" || this.state.power === "failed") return;
    this.#show(true, this.#decoders.towards.push(bytes));
    this.#line?.send(bytes);
  }

  #heard(bytes: Uint8Array): void {
    if (!this.#decoders) return;
    this.#show(false, this.#decoders.from.push(bytes));
    for (const host of [...this.#hosts]) host.hear(bytes);
  }

  #heardBoard(message: FromBoard): void {
    switch (message.kind) {
      case "bytes":
        return this.#heard(message.bytes);
      case "pins":
        return this.#set({ pins: BEGUN.pins.map((_, n) => (message.outputs >> n) & 1) });
      case "lamp":
        return this.#set({ lamp: message.lit });
      case "pace":
        return this.state.power === "cut" ? undefined : this.#set({ pace: message });
      case "refused":
        return this.#set({ kept: { yes: false, why: message.why } });
      case "reset":
        return this.#log((at) => [resetRow((this.#frames += 1), at, message.why)]);
      case "failed":
        return this.#failed(`The emulator stopped: ${message.why}.`);
      default:
    }
  }

  #show(towards: boolean, frames: ReturnType<Decoder["push"]>): void {
    if (frames.length) this.#log((at) => frames.map((frame) => row((this.#frames += 1), at, towards, frame)));
  }

  #log(rows: (at: string) => Row[]): void {
    const at = ((performance.now() - this.#begun) / 1_000).toFixed(3);
    this.#set({ frames: [...rows(at).reverse(), ...this.state.frames].slice(0, FRAMES) });
  }

  #fence(fence: Fence): void {
    const above = BigInt(fence.token) + 1n;
    this.#set({ fence, next: above > this.state.next ? above : this.state.next });
  }

  #failed(words: string): void {
    if (this.#closed) return;
    this.#life += 1;
    this.stop();
    this.#holders?.over();
    this.#set({ power: "failed", pace: null });
    if (this.state.source === "serial") {
      // Nobody sees from here any more what the gate does, and its port is free for another try.
      this.#set({ pins: [], fence: null });
      this.#leave();
    }
    this.#tell(words, "bad");
  }

  #tell(words: string, cls: State["told"]["cls"] = ""): void {
    this.#set({ told: { words, cls } });
  }

  #set(change: Partial<State>): void {
    if (this.#closed) return;
    this.state = { ...this.state, ...change };
    this.#changed();
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise((done) => setTimeout(done, ms));
    if (this.#closed) throw new Closed();
  }
}
