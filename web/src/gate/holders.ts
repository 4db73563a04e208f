// The two holders of the story, and the lock service that this page plays for them: its tokens, and one lease at a time.

import { now, type Host, type Outcome } from "./holder";
import { CHANNEL, PATIENCE, RENEW, type Stage } from "./stage";
import { BEGUN, type HolderState, type Name } from "./state";
import { said } from "./words";

/** How long the lease lasts, in µs. */
const TTL = 3_000_000;
/** As long as a frozen holder's command waits, in ms. */
const LONG = 3_600_000;

interface Holder {
  host: Host;
  state: HolderState;
  loop?: ReturnType<typeof setTimeout> | undefined;
  /** What is under way. */
  busy?: Promise<void> | undefined;
}

export class Holders {
  /** How many values the channel takes; the gate says it. */
  outputs = 1;
  #stage: Stage;
  #holders: Record<Name, Holder>;
  #lease: { holder: Name; token: number; ends: number } | undefined;
  #ended = false;

  /** @param host who speaks for a name */
  constructor(stage: Stage, host: (name: Name) => Host) {
    this.#stage = stage;
    const holder = (name: Name): Holder => ({ host: host(name), state: BEGUN.holders[name] });
    this.#holders = { A: holder("A"), B: holder("B") };
  }

  /** Takes a token of the lock service, once nobody's lease runs any more, and drives. */
  async take(name: Name): Promise<void> {
    this.#put(name, { doing: "waits", token: null });
    if (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) {
      this.#stage.tell(`${name} waits for the lock service: the lease of ${this.#lease.holder} has not run out.`);
      while (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) await this.#stage.sleep(50);
      // The board was thrown away meanwhile, or its gate is gone: then there is nothing to take.
      if (this.#ended || this.#holders[name].state.doing !== "waits") return;
    }
    const token = this.#stage.state().next;
    this.#lease = { holder: name, token, ends: 0 };
    this.#stage.set({ next: token + 1 });
    this.#put(name, { doing: "waits", token });
    await this.#drive(name);
  }

  /** Stops a holder at the worst instant: it has looked at its lease and sealed its next command, and has not sent it. */
  async freeze(name: Name): Promise<void> {
    const holder = this.#holders[name];
    await holder.busy;
    clearTimeout(holder.loop);
    const { token } = holder.state;
    if (token === null || this.#ended) return;
    holder.host.freeze();
    this.#put(name, { doing: "frozen", token });
    const late = holder.host.ask(this.#command(token, this.#lease?.ends ?? now()), LONG);
    holder.busy = late
      .then((outcome) => this.#outcome(name, outcome, true))
      .finally(() => (holder.busy = undefined));
    this.#stage.tell(`${name} is frozen, with its next command sealed and not sent. Nobody renews its lease now.`);
  }

  async wake(name: Name): Promise<void> {
    const holder = this.#holders[name];
    const { busy } = holder;
    holder.host.wake();
    await busy;
  }

  async release(name: Name): Promise<void> {
    const holder = this.#holders[name];
    await holder.busy;
    clearTimeout(holder.loop);
    const { token } = holder.state;
    if (token === null || this.#ended) return;
    const outcome = await holder.host.ask({ kind: "release", channel: CHANNEL, epoch: this.#epoch, token }, PATIENCE);
    if (this.#ended) return;
    if (this.#lease?.holder === name) this.#lease = undefined;
    this.#put(name, { doing: "idle", token: null });
    if (outcome.kind === "done") this.#stage.fence(outcome.fence);
    this.#stage.tell(
      outcome.kind === "done" ? `${name} has closed, and given token ${token} back.` : `${name} wanted to close: ${said(outcome)}.`,
    );
  }

  /** There is no gate any more: what they held is over. */
  over(): void {
    for (const name of ["A", "B"] as const) {
      const { loop, state } = this.#holders[name];
      clearTimeout(loop);
      // Who waits for its first token stops waiting.
      this.#put(name, { ...state, doing: state.token === null ? "idle" : "over" });
    }
    this.#lease = undefined;
  }

  /** From now on they do and say nothing. */
  end(): void {
    this.#ended = true;
    for (const { loop } of Object.values(this.#holders)) clearTimeout(loop);
  }

  /** Renews the lease, drives as long as it lasts, and comes again. */
  #drive(name: Name): Promise<void> {
    const holder = this.#holders[name];
    const drive = async () => {
      const { token } = holder.state;
      const lease = this.#lease;
      if (token === null || lease?.holder !== name || lease.token !== token) return this.#put(name, { doing: "over", token });
      lease.ends = now() + TTL;
      this.#outcome(name, await holder.host.ask(this.#command(token, lease.ends), PATIENCE));
    };
    return (holder.busy = drive().finally(() => (holder.busy = undefined)));
  }

  #command(token: number, deadline_us: number) {
    const values = Array<number>(this.outputs).fill(1);
    return { kind: "drive" as const, channel: CHANNEL, epoch: this.#epoch, token, values, deadline_us, window_us: TTL };
  }

  get #epoch() {
    return this.#stage.state().fence?.epoch ?? 0;
  }

  #outcome(name: Name, outcome: Outcome, late = false): void {
    if (this.#ended) return;
    const holder = this.#holders[name];
    const { doing, token } = holder.state;
    // It was under way when the gate was lost.
    if (doing === "over") return;
    const mine = this.#lease?.holder === name && this.#lease.token === token;
    switch (outcome.kind) {
      case "done":
        this.#stage.fence(outcome.fence);
        if (late && !(mine && this.#lease && now() < this.#lease.ends)) {
          this.#put(name, { doing: "over", token });
          return this.#stage.tell(`${name} woke, and its lease had run out.`);
        }
        this.#put(name, { doing: "drives", token });
        // One that was not heard for a while goes on, and says nothing of it.
        if (doing === "waits" || doing === "frozen") {
          this.#stage.tell(`${name} holds token ${token}, and output 0 is driven.`, "good");
        }
        break;
      case "refused": {
        if (outcome.by) this.#stage.fence(outcome.by);
        this.#put(name, { doing: outcome.reason === "stale" ? "fenced" : "over", token });
        if (mine) this.#lease = undefined;
        const why = outcome.reason === "stale" && outcome.by ? `stale, ${token} < ${outcome.by.token}` : outcome.reason;
        const words = `${name}’s ${late ? "late " : ""}command bounced: ${why}.`;
        return this.#stage.tell(words, outcome.reason === "stale" ? "good" : "bad");
      }
      default:
        // It cannot know whether the gate did what it was asked; it renews its lease and asks again.
        this.#put(name, { doing: "unheard", token });
    }
    holder.loop = setTimeout(() => void this.#drive(name).catch(() => undefined), RENEW);
  }

  #put(name: Name, state: HolderState): void {
    if (this.#ended) return;
    this.#holders[name].state = state;
    this.#stage.set({ holders: { ...this.#stage.state().holders, [name]: state } });
  }
}
