/**
 * A process's view of the simulated disk: calls take time, and never return if the process ends. The disk itself, what
 * a crash or a power loss leaves of it and how its calls fail, is in `test/unit/settle/sim-disk.ts`.
 */
import type { Disk, DiskFile } from "../../../src/settle/journal/disk.ts";
import type { SimDisk } from "../../unit/settle/sim-disk.ts";
import type { Chance } from "./chance.ts";
import { DeadError, never, type Process } from "./process.ts";

/** The file system steps of one `create`. */
const CREATE_STEPS = 4;

/** The duration of a call, milliseconds, like that of an SSD that is sometimes slow. */
function callMs(chance: Chance): number {
  return chance.skewed(0.05, 4);
}

export function diskOf(process: Process, disk: SimDisk, chance: Chance): Disk {
  async function slowly<T>(work: () => Promise<T>): Promise<T> {
    if (!process.touch()) return never();
    await process.sleep(callMs(chance));
    const result = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    if (!process.touch()) return never();
    if ("error" in result) throw result.error;
    return result.value;
  }

  function fileOf(file: DiskFile): DiskFile {
    return {
      write(position, bytes) {
        if (!process.touch()) throw new DeadError("the process is dead");
        file.write(position, bytes);
      },
      async sync() {
        if (!process.touch()) return never();
        // Covers what was written before the call, and only after the call has taken its time.
        disk.gate = process.sleep(callMs(chance));
        const synced = file.sync();
        disk.gate = undefined;
        await synced;
      },
      close() {
        if (process.alive) file.close();
      },
    };
  }

  return {
    list: () => slowly(() => disk.list()),
    read: (name, position, length) => slowly(() => disk.read(name, position, length)),
    append: (name, bytes) => slowly(() => disk.append(name, bytes)),
    remove: (name) => slowly(() => disk.remove(name)),
    async create(name, bytes) {
      const file = await slowly(() => {
        // The process dies during the call, after some of the steps.
        const isLast = !process.touch();
        if (isLast)
          disk.fault = {
            at: disk.calls + 1 + chance.below(CREATE_STEPS),
            times: Number.POSITIVE_INFINITY,
            code: "EIO",
          };
        return disk.create(name, bytes);
      });
      return fileOf(file);
    },
  };
}
