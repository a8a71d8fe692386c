/**
 * Budgets that are used up: a request that one has refused says so, and the store tells of each once in its span. What a crash
 * takes in between, the next refusal says again.
 */
import type { AdmitRefused } from "../store/admission.ts";
import type { Store } from "../store/contract.ts";
import { accountId } from "../store/names.ts";
import type { Log } from "../telemetry/log.ts";
import { createRecent } from "../values/collections/recent.ts";
import type { AccountTag } from "../values/key.ts";
import type { Clock } from "../values/time.ts";

/** Budgets that are known to be told of; of others the store is asked again. */
const TOLD_MAX = 10_000;
/** After so long it is asked again: it may have lost what was told, and no journal gives that back. */
const TOLD_MS = 600_000;

interface BudgetTellerParts {
  readonly store: Pick<Store, "addNotice">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Makes what is to be called for each refusal; no request waits for it. */
export function budgetTeller({
  store,
  clock,
  log,
}: BudgetTellerParts): (tag: AccountTag, refused: AdmitRefused) => void {
  const told = createRecent<true>({ max: TOLD_MAX, ttlMs: TOLD_MS, clock });
  return (tag, { cause, span, budget, keyId = "", resetsAtMs }) => {
    if (span === undefined || budget === undefined) return;
    const scope = cause === "key_budget" ? keyId : accountId(tag);
    // A budget without an end that is raised is another one; one that is lowered was reached before.
    const latest = resetsAtMs ?? Number(budget);
    const ref = `${scope}:${span}:${latest}`;
    if (told.has(ref)) return;
    told.set(ref, true);
    const data: Record<string, string> = { scope, period: span, limit: `${budget}` };
    if (resetsAtMs !== undefined) data.resets_at = `${resetsAtMs}`;
    store
      .addNotice(tag, { kind: "budget_reached", ref, data }, { name: `${scope}:${span}`, latest })
      .catch((error: unknown) => {
        told.delete(ref);
        log.warn({ reason: String(error) }, "a budget that is used up is told of with its next refusal");
      });
  };
}
