/** What the admin API shows of the store's history, and how an operator confirms it. */
import type { Charging } from "../settle/recovery/charging.ts";
import { problemOf } from "../store/upkeep/health.ts";
import type { StoreAnswer } from "./answers/answers.ts";

export interface StoreOperations {
  readonly storeStatus?: () => Promise<StoreAnswer>;
  /** Rejects with StoreError if the store does not answer. */
  readonly confirmStore?: (token: string) => Promise<"confirmed" | "changed" | "nothing">;
}

/**
 * @param storeAway what is wrong with a store that does not answer
 * @returns the operations that the store routes call
 */
export function storeOperations(
  charging: Pick<Charging, "store" | "epoch" | "journal" | "isRestoring">,
  storeAway: () => string,
): Required<StoreOperations> {
  const { epoch, journal } = charging;
  const show = (seen: { readonly id: string; readonly count: number } | undefined) =>
    seen ? { id: seen.id, counted_seconds: seen.count } : null;
  const state = (): StoreAnswer["state"] => {
    if (epoch.losses().length > 0) return "stopped";
    if (!epoch.checked) return "unknown";
    return charging.isRestoring() ? "restoring" : "good";
  };
  return {
    async storeStatus() {
      // The earlier verdict says nothing about a store that has become unreachable.
      const problem = await problemOf(charging.store, storeAway);
      return {
        state: state(),
        problem: problem ?? epoch.unreadable() ?? null,
        waiting_charges: journal.health().unsettled,
        differences: epoch.losses().map(({ part, kind, known, found }) => ({
          part,
          finding: kind,
          remembered: show(known),
          found: show(found),
        })),
        confirm: epoch.token() ?? null,
      };
    },
    confirmStore: (token) => epoch.confirm(token),
  };
}
