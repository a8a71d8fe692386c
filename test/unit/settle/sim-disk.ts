/**
 * A disk in memory whose every call can fail, and which knows what would survive: everything written survives the death of a
 * process, but only what was synced survives a loss of power. Unsynced writes may then be kept, lost or torn.
 */
import type { Disk, DiskFile } from "../../../src/settle/journal/disk.ts";

/** A failure to inject. */
export interface Fault {
  /** The number of the first call that fails, from 1. */
  readonly at: number;
  /** How many calls fail from that one on. */
  readonly times: number;
  readonly code: "EIO" | "ENOSPC";
}

interface Stored {
  /** The content as the process sees it. */
  seen: Buffer;
  /** The content after a loss of power; undefined while not even the name would exist. */
  durable: Buffer | undefined;
  unsynced: { position: number; bytes: Buffer }[];
}

export class SimDisk implements Disk {
  readonly files = new Map<string, Stored>();
  fault: Fault | undefined;
  /** The number of calls so far; their names are for messages. */
  calls = 0;
  lastCall = "";
  /** The bytes that all files may have together. */
  room = Number.POSITIVE_INFINITY;
  /** While set, syncs of segments wait for it. */
  gate: Promise<void> | undefined;
  syncs = 0;
  /** The number of successful writes. */
  writes = 0;

  async list(): Promise<readonly string[]> {
    this.#call("list");
    return [...this.files.keys()];
  }

  async create(name: string, bytes: number): Promise<DiskFile> {
    this.#call(`open ${name}`);
    if (this.files.has(name)) throw failure("EEXIST", name);
    const stored: Stored = { seen: Buffer.alloc(0), durable: undefined, unsynced: [] };
    this.files.set(name, stored);
    try {
      stored.seen = Buffer.alloc(bytes);
      if (this.#used() > this.room) throw failure("ENOSPC", name);
      this.#call(`fill ${name}`);
      this.#call(`sync ${name}`);
      this.#call(`sync the folder of ${name}`);
      stored.durable = Buffer.from(stored.seen);
    } catch (error) {
      // A dead process removes nothing any more.
      if (this.fault?.times !== Number.POSITIVE_INFINITY) this.files.delete(name);
      throw error;
    }
    return this.#file(name, stored);
  }

  #file(name: string, stored: Stored): DiskFile {
    let open = true;
    return {
      write: (position, bytes) => {
        if (!open) throw failure("EBADF", name);
        const copy = Buffer.from(bytes);
        try {
          this.#call(`write ${name}`);
        } catch (error) {
          this.#put(stored, position, copy.subarray(0, copy.length >> 1));
          throw error;
        }
        this.#put(stored, position, copy);
        this.writes++;
      },
      sync: async () => {
        if (!open) throw failure("EBADF", name);
        const covered = [...stored.unsynced];
        await this.gate;
        stored.unsynced = stored.unsynced.filter((write) => !covered.includes(write));
        try {
          this.#call(`sync ${name}`);
        } catch (error) {
          // As on Linux: pages whose write-back has failed count as clean, and are lost when memory is short.
          stored.seen = Buffer.from(stored.durable as Buffer);
          for (const { position, bytes } of stored.unsynced) bytes.copy(stored.seen, position);
          throw error;
        }
        this.syncs++;
        for (const { position, bytes } of covered) bytes.copy(stored.durable as Buffer, position);
      },
      close: () => {
        open = false;
      },
    };
  }

  #put(stored: Stored, position: number, bytes: Buffer): void {
    if (position + bytes.length > stored.seen.length) throw new Error("a write beyond the preallocated space");
    bytes.copy(stored.seen, position);
    stored.unsynced.push({ position, bytes });
  }

  async read(name: string, position: number, length: number): Promise<Buffer> {
    this.#call(`read ${name}`);
    const stored = this.files.get(name);
    if (!stored) throw failure("ENOENT", name);
    return Buffer.from(stored.seen.subarray(position, position + length));
  }

  async append(name: string, bytes: Uint8Array): Promise<void> {
    this.#call(`append ${name}`);
    const before = this.files.get(name)?.seen ?? Buffer.alloc(0);
    const seen = Buffer.concat([before, bytes]);
    this.files.set(name, { seen, durable: Buffer.from(seen), unsynced: [] });
  }

  async remove(name: string): Promise<void> {
    this.#call(`remove ${name}`);
    this.files.delete(name);
  }

  /** Names of segments, oldest first. */
  segments(): string[] {
    return [...this.files.keys()].filter((name) => name.endsWith(".seg")).sort();
  }

  bytesOf(name: string): Buffer {
    return (this.files.get(name) as Stored).seen;
  }

  /** What the next process finds after `kill -9`. */
  afterKill(): SimDisk {
    const next = new SimDisk();
    for (const [name, { seen }] of this.files) next.put(name, Buffer.from(seen));
    return next;
  }

  /** What the next process finds after a loss of power. @param random in [0, 1): decides for each unsynced write. */
  afterPowerLoss(random: () => number): SimDisk {
    const next = new SimDisk();
    for (const [name, { durable, unsynced }] of this.files) {
      if (!durable) continue;
      const bytes = Buffer.from(durable);
      for (const write of unsynced) {
        const kept = Math.floor(random() * 3) / 2;
        write.bytes.copy(bytes, write.position, 0, Math.floor(write.bytes.length * kept));
      }
      next.put(name, bytes);
    }
    return next;
  }

  put(name: string, bytes: Buffer): void {
    this.files.set(name, { seen: bytes, durable: Buffer.from(bytes), unsynced: [] });
  }

  #used(): number {
    let used = 0;
    for (const { seen } of this.files.values()) used += seen.length;
    return used;
  }

  #call(what: string): void {
    this.calls++;
    this.lastCall = what;
    const { fault } = this;
    if (!fault || this.calls < fault.at || this.calls >= fault.at + fault.times) return;
    throw failure(fault.code, what);
  }
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code, errno: -1 });
}
