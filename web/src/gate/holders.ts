// The two holders of the story, and the lock service that this page plays for them: its tokens, and one lease at a time.

import { now, type Host, type Outcome } from "./holder";
import { CHANNEL, PATIENCE, RENEW, type Stage } from "./stage";
import { BEGUN, type HolderState, type Name, type Stamp } from "./state";
import { below, said } from "./words";

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
  #lease: { holder: Name; stamp: Stamp; ends: number } | undefined;
  #ended = false;

  /** @param host who speaks for a name */
  constructor(stage: Stage, host: (name: Name) => Host) {
    this.#stage = stage;
    const holder = (name: Name): Holder => ({ host: host(name), state: BEGUN.holders[name] });
    this.#holders = { A: holder("A"), B: holder("B") };
  }

  /** Takes a token of the lock service, once nobody's lease runs any more, and drives. */
  async take(name: Name): Promise<void> {
    this.#put(name, { doing: "waits", stamp: null });
    if (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) {
      this.#stage.tell(`${name} waits for the lock service: the lease of ${this.#lease.holder} has not run out.`);
      while (this.#lease && this.#lease.holder !== name && now() < this.#lease.ends) await this.#stage.sleep(50);
      // The board was thrown away meanwhile, or its gate is gone: then there is nothing to take.
      if (this.#ended || this.#holders[name].state.doing !== "waits") return;
    }
    const { next, fence } = this.#stage.state();
    const stamp = { epoch: fence?.epoch ?? 0, token: next };
    this.#lease = { holder: name, stamp, ends: 0 };
    this.#stage.set({ next: next + 1n });
    this.#put(name, { doing: "waits", stamp });
    await this.#drive(name);
  }

  /** Stops a holder at the worst instant: it has looked at its lease and sealed its next command, and has not sent it. */
  async freeze(name: Name): Promise<void> {
    const holder = this.#holders[name];
    while (this.#driving(holder) && holder.busy) await holder.busy;
    // Looked at after the wait, and in one piece with what follows: another may have waited for the same.
    const stamp = this.#driving(holder);
    if (!stamp) return;
    clearTimeout(holder.loop);
    holder.host.freeze();
    this.#put(name, { doing: "frozen", stamp });
    const late = holder.host.ask(this.#command(stamp, this.#lease?.ends ?? now()), LONG);
    void this.#busy(holder, late.then((outcome) => this.#outcome(name, stamp, outcome, true)));
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
    while (this.#driving(holder) && holder.busy) await holder.busy;
    const stamp = this.#driving(holder);
    if (!stamp) return;
    clearTimeout(holder.loop);
    const release = holder.host.ask({ kind: "release", channel: CHANNEL, ...stamp }, PATIENCE);
    await this.#busy(holder, release.then((outcome) => this.#released(name, stamp, outcome)));
  }

  /** There is no gate any more: what they held is over, and what they were about to say is not said. */
  over(): void {
    for (const name of ["A", "B"] as const) {
      const { host, loop, state } = this.#holders[name];
      clearTimeout(loop);
      // Who waits for its first token stops waiting.
      this.#put(name, { ...state, doing: state.stamp ? "over" : "idle" });
      host.drop();
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
      const { stamp } = holder.state;
      if (!stamp || this.#lease?.stamp !== stamp) return this.#put(name, { doing: "over", stamp });
      this.#lease.ends = now() + TTL;
      this.#outcome(name, stamp, await holder.host.ask(this.#command(stamp, this.#lease.ends), PATIENCE));
    };
    clearTimeout(holder.loop);
    return this.#busy(holder, drive());
  }

  #busy(holder: Holder, what: Promise<void>): Promise<void> {
    const busy = what.finally(() => {
      if (holder.busy === busy) holder.busy = undefined;
    });
    return (holder.busy = busy);
  }

  /** The stamp of a holder that drives, as far as it knows. */
  #driving({ state: { doing, stamp } }: Holder): Stamp | null {
    return !this.#ended && (doing === "drives" || doing === "unheard") ? stamp : null;
  }

  #command(stamp: Stamp, deadline_us: number) {
    const values = Array<number>(this.outputs).fill(1);
    return { kind: "drive" as const, channel: CHANNEL, ...stamp, values, deadline_us, window_us: TTL };
  }

  /** Whether what was asked with a stamp is still that holder's business: its gate may be gone, or it has another by now. */
  #stands(name: Name, stamp: Stamp): boolean {
    const { state } = this.#holders[name];
    return !this.#ended && state.stamp === stamp && state.doing !== "over";
  }

  #outcome(name: Name, stamp: Stamp, outcome: Outcome, late = false): void {
    if (!this.#stands(name, stamp)) return;
    const holder = this.#holders[name];
    const { doing } = holder.state;
    const mine = this.#lease?.stamp === stamp;
    switch (outcome.kind) {
      case "done":
        this.#stage.fence(outcome.fence);
        if (late && !(mine && this.#lease && now() < this.#lease.ends)) {
          this.#put(name, { doing: "over", stamp });
          return this.#stage.tell(`${name} woke, and its lease had run out.`);
        }
        this.#put(name, { doing: "drives", stamp });
        // One that was not heard for a while goes on, and says nothing of it.
        if (doing === "waits" || doing === "frozen") {
          this.#stage.tell(`${name} holds token ${stamp.token}, and output 0 is driven.`, "good");
        }
        break;
      case "refused": {
        if (outcome.by) this.#stage.fence(outcome.by);
        this.#put(name, { doing: outcome.reason === "stale" ? "fenced" : "over", stamp });
        if (mine) this.#lease = undefined;
        const why = outcome.reason === "stale" && outcome.by ? `stale, ${below(stamp, outcome.by)}` : outcome.reason;
        const words = `${name}’s ${late ? "late " : ""}command bounced: ${why}.`;
        return this.#stage.tell(words, outcome.reason === "stale" ? "good" : "bad");
      }
      default:
        // It cannot know whether the gate did what it was asked; it renews its lease and asks again.
        this.#put(name, { doing: "unheard", stamp });
    }
    holder.loop = setTimeout(() => void this.#drive(name).catch(() => undefined), RENEW);
  }

  #released(name: Name, stamp: Stamp, outcome: Outcome): void {
    if (!this.#stands(name, stamp)) return;
    if (this.#lease?.stamp === stamp) this.#lease = undefined;
    this.#put(name, { doing: "idle", stamp: null });
    if (outcome.kind === "done") this.#stage.fence(outcome.fence);
    this.#stage.tell(
      outcome.kind === "done"
        ? `${name} has closed, and given token ${stamp.token} back.`
        : `${name} wanted to close: ${said(outcome)}.`,
    );
  }

  #put(name: Name, state: HolderState): void {
    if (this.#ended) return;
    this.#holders[name].state = state;
    this.#stage.set({ holders: { ...this.#stage.state().holders, [name]: state } });
  }
}
