// The story by itself: token, freeze, successor, late command, and for an emulated board a power cut.

import { Closed, type Stage } from "./stage";
import type { Name } from "./state";

/** Who acts in it: the session. */
export interface Cast {
  take(name: Name): Promise<void>;
  freeze(name: Name): Promise<void>;
  wake(name: Name): Promise<void>;
  release(name: Name): Promise<void>;
  boot(): Promise<void>;
  cut(): void;
}

export class Story {
  #cast: Cast;
  #stage: Stage;
  /** Which time it is played; whoever finds another number here has been stopped. */
  #play = 0;

  constructor(cast: Cast, stage: Stage) {
    this.#cast = cast;
    this.#stage = stage;
  }

  /** Plays all of it. */
  async play(): Promise<void> {
    const [cast, stage, play] = [this.#cast, this.#stage, ++this.#play];
    const going = () => {
      if (play !== this.#play) throw new Closed();
    };
    const pause = async (ms: number) => (await stage.sleep(ms), going());
    stage.set({ playing: true });
    try {
      for (const name of ["A", "B"] as const) {
        if (stage.state().holders[name].doing === "frozen") await cast.wake(name);
        if (["drives", "unheard"].includes(stage.state().holders[name].doing)) await cast.release(name);
        going();
      }
      await cast.take("A");
      await pause(2_500);
      await cast.freeze("A");
      await pause(1_000);
      await cast.take("B");
      await pause(1_500);
      await cast.wake("A");
      await pause(2_500);
      if (stage.state().source === "emulator") {
        cast.cut();
        await pause(2_000);
        await cast.boot();
      }
    } catch (error) {
      if (!(error instanceof Closed)) throw error;
    } finally {
      if (play === this.#play) stage.set({ playing: false });
    }
  }

  stop(): void {
    this.#play += 1;
    this.#stage.set({ playing: false });
  }
}
