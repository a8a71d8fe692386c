/**
 * The journals of worker processes (workers/workers.ts). If there are fewer workers than before, the parent locks the
 * journals of the missing ones and settles what they contain.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { FolderTakenError, makeFolder } from "../../store/folder-lock.ts";
import { type Charging, type ChargingParts, openCharging, SETTLE_GRACE_MS } from "./charging.ts";

const FOLDER = /^worker-([1-9][0-9]{0,3})$/;
/** Retry interval if the folder is taken: another gateway that still drains may have it. */
const RETRY_MS = 30_000;

/** The journal folder of a worker, by its number (from 1). */
export function workerJournal(dir: string, worker: number): string {
  return join(dir, `worker-${worker}`);
}

interface OrphanJournals {
  /** Resolves when the folders are free. */
  close(): Promise<void>;
}

/**
 * Takes over the folder of every worker that no longer exists. The folders stay open as long as the process:
 * acknowledged charges in them are verified for a day, as in the process's own journal.
 * @param workers the number of workers; 1: this process serves clients itself, so every worker folder is taken over.
 */
export function takeOverJournals(parts: ChargingParts, workers: number): OrphanJournals {
  const { settings, clock, log } = parts;
  const open: Charging[] = [];
  const cancels = new Set<() => void>();
  const running = new Set<Promise<void>>();
  let closed = false;

  function begin(dir: string): void {
    const taking = take(dir).finally(() => running.delete(taking));
    running.add(taking);
  }

  async function take(dir: string): Promise<void> {
    if (closed) return;
    try {
      open.push(await openCharging({ ...parts, settings: { ...settings, dir } }));
      log.info({ dir }, "took over the journal of a removed worker");
    } catch (error) {
      const locked = error instanceof FolderTakenError;
      if (locked) log.warn({ reason: error.message }, "the journal of a removed worker is locked by another process");
      else log.error({ dir, reason: String(error) }, "the journal of a removed worker cannot be opened");
      const cancel = clock.after(RETRY_MS, () => {
        cancels.delete(cancel);
        begin(dir);
      });
      cancels.add(cancel);
    }
  }

  for (const dir of foldersOf(settings.dir, workers > 1 ? workers : 0)) begin(dir);
  return {
    async close() {
      closed = true;
      for (const cancel of cancels) cancel();
      await Promise.all(running);
      await Promise.all(open.map((charging) => charging.drain(SETTLE_GRACE_MS)));
      await Promise.all(open.map((charging) => charging.close()));
    },
  };
}

function foldersOf(dir: string, workers: number): string[] {
  makeFolder(dir);
  return readdirSync(dir)
    .filter((name) => Number(FOLDER.exec(name)?.[1] ?? 0) > workers)
    .map((name) => join(dir, name));
}
