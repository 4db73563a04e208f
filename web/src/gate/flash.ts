// What outlasts the view: the emulated board's flash and its keys, in this browser's own storage (IndexedDB).
//
// 32 sectors of 4 KiB and one set of keys, never more. Two boards that share one flash would each undo what the other has
// stored; so whoever runs it, or forgets it, holds a lock, and a second tab gets a board that is not kept.

/** The gate's identity and keys, as `new Keys` takes them, and whether the board has become that gate. */
export interface Secrets {
  gate: Uint8Array;
  id: number;
  instance: bigint;
  root: Uint8Array;
  operator: Uint8Array;
  provisioned: boolean;
}

export const SECTOR = 4_096;

const NAME = "fencegate-gate";
const STORE = "board";
const KEYS = "keys";
/** How long a view that was closed just now may hold the lock, in ms. */
const LEAVING = 1_000;

function asked<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error ?? new Error("refused"));
  });
}

async function database(): Promise<IDBDatabase> {
  if (!globalThis.indexedDB) throw new Error("it has no storage for pages");
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
  return asked(request);
}

/** Takes the lock, and keeps it until what `use` returns is over; whether nobody else had it. */
function locked(use: () => Promise<unknown>): Promise<boolean> {
  return new Promise((done, failed) => {
    if (!navigator.locks) throw new Error("it cannot keep two tabs apart");
    navigator.locks
      .request(NAME, { signal: AbortSignal.timeout(LEAVING) }, () => (done(true), use()))
      .catch((error: unknown) => (error instanceof DOMException && error.name === "TimeoutError" ? done(false) : failed(error)));
  });
}

const ANOTHER = "another tab of this browser runs it";

/** What this browser keeps of a board. It is the worker's, and no one else's for as long as that lives. */
export class Flash {
  #database: IDBDatabase;

  private constructor(opened: IDBDatabase) {
    this.#database = opened;
  }

  /** @throws where this browser keeps nothing, with a reason in words */
  static async open(): Promise<Flash> {
    if (!(await locked(() => new Promise(() => undefined)))) throw new Error(ANOTHER);
    return new Flash(await database());
  }

  /** Fills `memory` with what was kept; the keys that belong to it. */
  async read(memory: Uint8Array): Promise<Secrets | undefined> {
    const store = this.#database.transaction(STORE).objectStore(STORE);
    const [keys, values] = await Promise.all([asked(store.getAllKeys()), asked(store.getAll() as IDBRequest<unknown[]>)]);
    let secrets: Secrets | undefined;
    keys.forEach((key, n) => {
      if (key === KEYS) secrets = values[n] as Secrets;
      else if (typeof key === "number") memory.set(values[n] as Uint8Array, key * SECTOR);
    });
    return secrets;
  }

  /** Keeps some sectors; they outlast the browser when this is over. */
  write(sectors: Iterable<number>, memory: Uint8Array): Promise<void> {
    return this.#put((store) => {
      for (const n of sectors) store.put(memory.slice(n * SECTOR, (n + 1) * SECTOR), n);
    });
  }

  keep(secrets: Secrets): Promise<void> {
    return this.#put((store) => void store.put(secrets, KEYS));
  }

  #put(put: (store: IDBObjectStore) => void): Promise<void> {
    return new Promise((done, failed) => {
      const change = this.#database.transaction(STORE, "readwrite", { durability: "strict" });
      change.oncomplete = () => done();
      change.onabort = () => failed(change.error ?? new Error("refused"));
      put(change.objectStore(STORE));
    });
  }
}

/** Whether a board is kept here. Where nothing can be kept, none is. */
export async function isKept(): Promise<boolean> {
  try {
    const opened = await database();
    const count = await asked(opened.transaction(STORE).objectStore(STORE).count(KEYS));
    opened.close();
    return count > 0;
  } catch {
    return false;
  }
}

/** Forgets the board. @throws where another tab runs it, or the browser refuses */
export async function forget(): Promise<void> {
  const clear = async () => {
    const opened = await database();
    try {
      await asked(opened.transaction(STORE, "readwrite").objectStore(STORE).clear());
    } finally {
      opened.close();
    }
  };
  let cleared: Promise<void> = Promise.resolve();
  if (!(await locked(() => (cleared = clear()).catch(() => undefined)))) throw new Error(ANOTHER);
  await cleared;
}
