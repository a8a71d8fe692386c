/**
 * Identifies the current boot of the machine. When a process is killed, its commits are still in the kernel. When a
 * machine loses power, commits that were not forced to the disk may be lost: about the last half minute. So after
 * another boot an embedded store counts as another incarnation, and the journal replays what it lacks
 * (docs/failure-model.md invariant 33, row F5).
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

/** Linux: random(4), a UUID made at boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * 32 hexadecimal digits. On a system without a boot id each call returns another value, which is safe but causes more
 * work.
 */
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
