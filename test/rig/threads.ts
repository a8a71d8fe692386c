/** The threads of another process, by the names that Linux shows. */
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

function threadNames(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim();
    } catch {
      return []; // It has ended since the folder was read.
    }
  });
}

/** Whether a thread of this name is seen before the promise is settled; resolves as soon as it is. */
export async function hasThread(pid: number, name: string, end: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  void end.then(over, over);
  while (!isOver) {
    if (threadNames(pid).includes(name)) return true;
    await setImmediate();
  }
  return false;
}
