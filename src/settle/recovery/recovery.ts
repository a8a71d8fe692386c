/**
 * After a crash: an orphan is charged from its last checkpoint, or voided when nothing had been produced, and every
 * charge without an ACK is sent to the store. Runs while the gateway serves; the store's idempotence makes it harmless.
 */
import type { Leftover } from "../journal/startup.ts";
import type { Settler } from "../settler.ts";

/** Settlements that recovery has under way at one time. */
const AT_ONCE = 32;

/** Resolves when the store has answered every one of them, however long that takes. */
export async function recover(leftovers: readonly Leftover[], settler: Pick<Settler, "resume">): Promise<void> {
  const queue = leftovers.values();
  const worker = async (): Promise<void> => {
    for (const leftover of queue) await settler.resume(leftover);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, leftovers.length) }, worker));
}
