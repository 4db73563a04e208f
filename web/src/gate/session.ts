// The story at a gate: two holders, a lock service that this page plays, and a board that is emulated or real.
//
// What the gate believes and does is the firmware's; what the holders say is sealed by the module's client.

import init, { Decoder, type Fence, type Keys } from "fencegate-gate";
import { EmulatedBoard, type FromBoard, type Line } from "./board";
import { forget, isKept, type Secrets } from "./flash";
import { Host, now, type Outcome } from "./holder";
import { fresh, keysOf } from "./keys";
import { connect } from "./serial";
import { BEGUN, type Name, type State, type HolderState } from "./state";
import { row } from "./words";

/** The lease: how long it lasts, and how often its holder renews it and drives, in µs and ms. */
const TTL = 3_000_000;
const RENEW = 1_000;
/** How long an answer may take, in ms; the first one after a start. */
const PATIENCE = 1_500;
const FIRST_ANSWER = 20_000;
/** As long as a frozen holder's command waits, in ms. */
const LONG = 3_600_000;
/** How many frames are shown. */
const FRAMES = 200;
const CHANNEL = 0;

interface Holder {
  host: Host;
  state: HolderState;
  loop?: ReturnType<typeof setTimeout> | undefined;
  /** What is under way. */
  busy?: Promise<void> | undefined;
}

class Closed extends Error {}

export class Session {
  state: State = BEGUN;
  #changed: () => void;
  #keys: Keys | undefined;
  #secrets: Secrets | undefined;
  #line: Line | undefined;
  #board: EmulatedBoard | undefined;
  #decoders: { towards: Decoder; from: Decoder } | undefined;
  #hosts = new Set<Host>();
  #holders: Record<Name, Holder> | undefined;
  #operator: Host | undefined;
  /** Who makes a gate of the blank board. */
  #blank: Host | undefined;
  #provisioned = false;
  #lease: { holder: Name; token: number; ends: number } | undefined;
  #outputs = 1;
  #begun = performance.now();
  #frames = 0;
  #closed = false;
  #play = 0;
  /** A board that has lost power says nothing any more, whatever was under way. */
  #life = 0;

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
    this.stop();
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
      (why) => {
        if (life !== this.#life) return;
        // Nobody sees from here any more what the gate does.
        this.#set({ pins: [], fence: null });
        this.#failed(`The line is gone (${why}).`);
      },
    );
    if (this.#closed) return line.close();
    this.#begin(read, "serial");
    this.#line = line;
    life = ++this.#life;
    this.#set({ power: "booting" });
    this.#tell("Asking the gate who it is.");
    const operator = this.#operator as Host;
    const channels = await this.#meet(operator, life);
    // Its outputs are asked for, since nobody sees its pins from here.
    const observer = this.#host("observer");
    while (life === this.#life && !this.#closed && this.state.power === "on") {
      const pins: number[] = [];
      for (let channel = 0; channel < channels; channel += 1) {
        const status = await observer.ask({ kind: "channel", channel }, PATIENCE);
        if (status.kind !== "channel") continue;
        pins.push(...status.values);
        if (channel === CHANNEL) this.#set({ fence: status.fence });
      }
      if (pins.length) this.#set({ pins });
      await this.#sleep(RENEW).catch(() => undefined);
    }
  }

  /** Waits for the gate's first answer, and asks where its fence stands; how many channels it has. */
  async #meet(operator: Host, life: number): Promise<number> {
    const status = await operator.ask({ kind: "status" }, FIRST_ANSWER);
    if (life !== this.#life || this.#closed) return 0;
    if (status.kind !== "status") return this.#failed(`The gate does not answer (${said(status)}).`), 0;
    const channel = await operator.ask({ kind: "channel", channel: CHANNEL }, FIRST_ANSWER);
    if (life !== this.#life || this.#closed) return 0;
    if (channel.kind !== "channel") return this.#failed(`Channel ${CHANNEL} does not answer (${said(channel)}).`), 0;
    this.#outputs = channel.values.length;
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

  // The holders.

  /** Takes a token of the lock service, once nobody's lease runs any more, and drives. */
  async take(name: Name): Promise<void> {
    const holder = this.#holder(name);
    this.#put(name, { doing: "waits", token: null });
    if (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) {
      this.#tell(`${name} waits for the lock service: the lease of ${this.#lease.holder} has not run out.`);
      while (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) await this.#sleep(50);
    }
    const token = this.state.next;
    this.#lease = { holder: name, token, ends: 0 };
    this.#set({ next: token + 1 });
    this.#put(name, { doing: "waits", token });
    await this.#drive(name, holder);
  }

  /** Renews the lease, drives as long as it lasts, and comes again. */
  #drive(name: Name, holder: Holder): Promise<void> {
    const drive = async () => {
      const { token } = holder.state;
      const lease = this.#lease;
      if (token === null || lease?.holder !== name || lease.token !== token) return this.#put(name, { doing: "over", token });
      lease.ends = now() + TTL;
      await this.#outcome(name, holder, await holder.host.ask(this.#command(token, lease.ends), PATIENCE));
    };
    return (holder.busy = drive().finally(() => (holder.busy = undefined)));
  }

  #command(token: number, deadline_us: number) {
    const values = Array<number>(this.#outputs).fill(1);
    const epoch = this.state.fence?.epoch ?? 0;
    return { kind: "drive" as const, channel: CHANNEL, epoch, token, values, deadline_us, window_us: TTL };
  }

  #outcome(name: Name, holder: Holder, outcome: Outcome, late = false): void {
    if (this.#closed || this.#holders?.[name] !== holder) return;
    const { doing, token } = holder.state;
    const mine = this.#lease?.holder === name && this.#lease.token === token;
    switch (outcome.kind) {
      case "done":
        this.#fence(outcome.fence);
        if (late && !(mine && this.#lease && now() < this.#lease.ends)) {
          this.#put(name, { doing: "over", token });
          return this.#tell(`${name} woke, and its lease had run out.`);
        }
        this.#put(name, { doing: "drives", token });
        // One that was not heard for a while goes on, and says nothing of it.
        if (doing === "waits" || doing === "frozen") this.#tell(`${name} holds token ${token}, and output 0 is driven.`, "good");
        break;
      case "refused": {
        if (outcome.by) this.#fence(outcome.by);
        this.#put(name, { doing: outcome.reason === "stale" ? "fenced" : "over", token });
        if (mine) this.#lease = undefined;
        const why = outcome.reason === "stale" && outcome.by ? `stale, ${token} < ${outcome.by.token}` : outcome.reason;
        return this.#tell(`${name}’s ${late ? "late " : ""}command bounced: ${why}.`, outcome.reason === "stale" ? "good" : "bad");
      }
      default:
        // It cannot know whether the gate did what it was asked; it renews its lease and asks again.
        this.#put(name, { doing: "unheard", token });
    }
    holder.loop = setTimeout(() => void this.#drive(name, holder).catch(() => undefined), RENEW);
  }

  /** Stops a holder at the worst instant: it has looked at its lease and sealed its next command, and has not sent it. */
  async freeze(name: Name): Promise<void> {
    const holder = this.#holder(name);
    await holder.busy;
    clearTimeout(holder.loop);
    const { token } = holder.state;
    if (token === null || this.#closed) return;
    holder.host.freeze();
    this.#put(name, { doing: "frozen", token });
    const late = holder.host.ask(this.#command(token, this.#lease?.ends ?? now()), LONG);
    holder.busy = late
      .then((outcome) => this.#outcome(name, holder, outcome, true))
      .finally(() => (holder.busy = undefined));
    this.#tell(`${name} is frozen, with its next command sealed and not sent. Nobody renews its lease now.`);
  }

  async wake(name: Name): Promise<void> {
    const holder = this.#holder(name);
    const { busy } = holder;
    holder.host.wake();
    await busy;
  }

  async release(name: Name): Promise<void> {
    const holder = this.#holder(name);
    await holder.busy;
    clearTimeout(holder.loop);
    const { token } = holder.state;
    if (token === null || this.#closed) return;
    const outcome = await holder.host.ask({ kind: "release", channel: CHANNEL, epoch: this.state.fence?.epoch ?? 0, token }, PATIENCE);
    if (this.#closed) return;
    if (this.#lease?.holder === name) this.#lease = undefined;
    this.#put(name, { doing: "idle", token: null });
    if (outcome.kind === "done") this.#fence(outcome.fence);
    this.#tell(outcome.kind === "done" ? `${name} has closed, and given token ${token} back.` : `${name} wanted to close: ${said(outcome)}.`);
  }

  // The story.

  /** Plays all of it: token, freeze, successor, late command, and for an emulated board a power cut. */
  async play(): Promise<void> {
    const play = ++this.#play;
    const going = () => {
      if (play !== this.#play) throw new Closed();
    };
    const pause = async (ms: number) => (await this.#sleep(ms), going());
    this.#set({ playing: true });
    try {
      for (const name of ["A", "B"] as const) {
        if (this.state.holders[name].doing === "frozen") await this.wake(name);
        if (["drives", "unheard"].includes(this.state.holders[name].doing)) await this.release(name);
        going();
      }
      await this.take("A");
      await pause(2_500);
      await this.freeze("A");
      await pause(1_000);
      await this.take("B");
      await pause(1_500);
      await this.wake("A");
      await pause(2_500);
      if (this.#board) {
        this.cut();
        await pause(2_000);
        await this.boot();
      }
    } catch (error) {
      if (!(error instanceof Closed)) throw error;
    } finally {
      if (play === this.#play && !this.#closed) this.#set({ playing: false });
    }
  }

  stop(): void {
    this.#play += 1;
    this.#set({ playing: false });
  }

  close(): void {
    this.#closed = true;
    this.#play += 1;
    this.#end();
  }

  // What it is made of.

  #begin(keys: Keys, source: "emulator" | "serial"): void {
    this.#end();
    this.#keys = keys;
    this.#decoders = { towards: new Decoder(keys), from: new Decoder(keys) };
    this.#operator = this.#host("operator");
    const holder = (name: Name): Holder => ({ host: this.#host(name.toLowerCase()), state: BEGUN.holders[name] });
    this.#holders = { A: holder("A"), B: holder("B") };
    this.#set({ ...BEGUN, source });
  }

  #end(): void {
    for (const { loop } of Object.values(this.#holders ?? {})) clearTimeout(loop);
    for (const host of this.#hosts) host.close();
    this.#hosts.clear();
    this.#line?.close();
    this.#decoders?.towards.free();
    this.#decoders?.from.free();
    this.#keys?.free();
    this.#line = this.#board = this.#decoders = this.#keys = this.#secrets = this.#lease = this.#blank = undefined;
    this.#provisioned = false;
  }

  #host(who?: string): Host {
    const host = new Host((bytes) => this.#send(bytes), who === undefined ? undefined : this.#keys, who);
    this.#hosts.add(host);
    return host;
  }

  #forget(host: Host): void {
    if (this.#hosts.delete(host)) host.close();
  }

  #holder(name: Name): Holder {
    const holder = this.#holders?.[name];
    if (!holder) throw new Closed();
    return holder;
  }

  #send(bytes: Uint8Array): void {
    if (!this.#decoders || this.state.power === "cut") return;
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
      case "failed":
        return this.#failed(`The emulator stopped: ${message.why}.`);
      default:
    }
  }

  #show(towards: boolean, frames: ReturnType<Decoder["push"]>): void {
    if (!frames.length) return;
    const at = ((performance.now() - this.#begun) / 1_000).toFixed(3);
    const rows = frames.map((frame) => row((this.#frames += 1), at, towards, frame));
    this.#set({ frames: [...rows.reverse(), ...this.state.frames].slice(0, FRAMES) });
  }

  #fence(fence: Fence): void {
    this.#set({ fence, next: Math.max(this.state.next, Number(fence.token) + 1) });
  }

  #put(name: Name, state: HolderState): void {
    if (this.#holders) this.#holders[name].state = state;
    this.#set({ holders: { ...this.state.holders, [name]: state } });
  }

  #failed(words: string): void {
    if (this.#closed) return;
    this.#life += 1;
    this.stop();
    for (const name of ["A", "B"] as const) {
      clearTimeout(this.#holders?.[name].loop);
      if (this.state.holders[name].token !== null) this.#put(name, { ...this.state.holders[name], doing: "over" });
    }
    this.#lease = undefined;
    this.#set({ power: "failed", pace: null });
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

function said(outcome: Outcome): string {
  if (outcome.kind === "refused") return `refused, ${outcome.reason}`;
  return outcome.kind === "failed" ? outcome.why.replace("_", " ") : outcome.kind;
}
