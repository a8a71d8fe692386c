/**
 * Which run of the machine this is. A process that is killed leaves its commits with the kernel; a machine that loses power
 * may lose those that were not forced to the disk, the last half minute or so. So an embedded store of another run is another
 * life of it, and the journal gives back what it lacks (docs/failure-model.md invariant 33, row F5).
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

/** Linux: random(4), a UUID made at boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** 32 hexadecimal digits. Where the system has no such name each call gives another one, which is safe and more work. */
export function bootId(): string {
  return (systemBootId() ?? randomUUID()).replaceAll("-", "");
}

function systemBootId(): string | undefined {
  try {
    const id = readFileSync(BOOT_ID, "utf8").trim();
    return /^[0-9a-f-]{36}$/.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}
