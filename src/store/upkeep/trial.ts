/** Checks a store once, as a start would, for an operator who wants to know before a start. */
import type { StoreSettings } from "../../values/settings.ts";
import { StoreError } from "../contract.ts";
import { openStore } from "../open.ts";

/** Longer than a gateway has for it, because no request waits. */
const PATIENCE_MS = 2_000;

interface Trial {
  /** Why it cannot be used; undefined: it can. */
  readonly problem: string | undefined;
  /** Warnings about a store that can be used. */
  readonly warnings: readonly string[];
}

/**
 * Connects, asks whether the store is fit for use, and disconnects; nothing is written. @param settings of a store on
 * Redis.
 */
export async function tryStore(settings: Exclude<StoreSettings, { kind: "embedded" }>): Promise<Trial> {
  const warnings: string[] = [];
  let failure: string | undefined;
  const store = await openStore(settings, {
    commandTimeoutMs: PATIENCE_MS,
    stepTimeoutMs: PATIENCE_MS,
    warn: (message) => warnings.push(message),
    onConnectionFailed: (reason) => {
      failure = reason;
    },
  });
  try {
    await store.check();
    return { problem: undefined, warnings };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    // A server that has answered explains the fault itself. If none has answered, the connection's error says more.
    return { problem: error.outcome === "refused" ? error.message : (failure ?? error.message), warnings };
  } finally {
    await store.close();
  }
}
