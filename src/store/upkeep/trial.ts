/** Asks a store once, as a start would, for somebody who wants to know before there is one. */
import type { StoreSettings } from "../../values/settings.ts";
import { StoreError } from "../contract.ts";
import { openStore } from "../open.ts";

/** Longer than a gateway has for it: nobody else waits. */
const PATIENCE_MS = 2_000;

interface Trial {
  /** Why it cannot be used; undefined: it can. */
  readonly problem: string | undefined;
  /** What an operator should know of one that can. */
  readonly warnings: readonly string[];
}

/** Connects, asks whether the store is fit for use, and leaves; nothing is written. @param settings of a store on Redis. */
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
    // A server that has answered says itself what is wrong; of one that has not, the connection knows more.
    return { problem: error.outcome === "refused" ? error.message : (failure ?? error.message), warnings };
  } finally {
    await store.close();
  }
}
