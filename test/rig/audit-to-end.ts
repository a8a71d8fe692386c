import type { AccountAudit, AuditSteps } from "../../src/store/ledger/audit.ts";

/**
 * Runs an audit to its end.
 * @throws StoreError if the store does not answer.
 */
export async function auditToEnd(steps: AuditSteps): Promise<AccountAudit> {
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value;
    if (step.value.error) throw step.value.error;
  }
}
