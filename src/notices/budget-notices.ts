/**
 * Notices of used-up budgets. A request that a budget refuses triggers the notice, and the store keeps it to one per
 * budget and span. If a crash loses a notice in between, the next refusal triggers it again.
 */
import type { AdmitRefused } from "../store/admission.ts";
import type { Store } from "../store/contract.ts";
import { accountId } from "../store/names.ts";
import type { Log } from "../telemetry/log.ts";
import { createRecent } from "../values/collections/recent.ts";
import type { AccountTag } from "../values/key.ts";
import type { Clock } from "../values/time.ts";

/** Budgets remembered as notified; for others the store is asked again. */
const NOTIFIED_MAX = 10_000;
/** After this time the store is asked again: it may have lost the notice, and no journal restores it. */
const NOTIFIED_MS = 600_000;

interface BudgetNoticesParts {
  readonly store: Pick<Store, "addNotice">;
  readonly clock: Clock;
  readonly log: Log;
}

/** @returns the function to call for each refusal; no request waits for it. */
export function budgetNotices({
  store,
  clock,
  log,
}: BudgetNoticesParts): (tag: AccountTag, refused: AdmitRefused) => void {
  const notified = createRecent<true>({ max: NOTIFIED_MAX, ttlMs: NOTIFIED_MS, clock });
  return (tag, { cause, span, budget, keyId = "", resetsAtMs }) => {
    if (span === undefined || budget === undefined) return;
    const scope = cause === "key_budget" ? keyId : accountId(tag);
    // A budget whose span does not end counts as a new one when it is raised. When it is lowered, it was reached
    // before.
    const latest = resetsAtMs ?? Number(budget);
    const ref = `${scope}:${span}:${latest}`;
    if (notified.has(ref)) return;
    notified.set(ref, true);
    const data: Record<string, string> = { scope, period: span, limit: `${budget}` };
    if (resetsAtMs !== undefined) data.resets_at = `${resetsAtMs}`;
    store
      .addNotice(tag, { kind: "budget_reached", ref, data }, { name: `${scope}:${span}`, latest })
      .catch((error: unknown) => {
        notified.delete(ref);
        log.warn({ reason: String(error) }, "the notice of a used-up budget is retried with the next refusal");
      });
  };
}
