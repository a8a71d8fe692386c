/** `GET /admin/v1/ledger/verification`: accounts whose figures are compared with their ledger lines, a page at a time. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../store/contract.ts";
import { type AccountAudit, auditAccount } from "../store/ledger-audit.ts";
import type { Account } from "../store/records.ts";
import { formatUsd } from "../values/money.ts";
import { accountNamed, readLimit } from "./accounts.ts";
import { VerificationPage } from "./answers.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./route.ts";
import { LEDGER_PAGE_MAX, VERIFY_PAGE_MAX, VerifyQuery } from "./schema.ts";

/** Once an answer has read so many lines it ends, and the next page goes on. */
const LINES_PER_ANSWER = 50_000;

export function ledgerRoutes({ store }: ConsoleParts): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/ledger/verification",
      id: "verifyLedger",
      summary: "Compare accounts with their ledger lines",
      answers: { 200: VerificationPage },
      refusals: { 404: "`unknown_account`." },
      query: VerifyQuery,
      async handle({ query }) {
        if (query.account !== undefined) {
          const audit = await audited(store, await accountNamed(store, query.account), true);
          return { status: 200, body: pageOf(audit ? [audit] : [], undefined) };
        }
        return { status: 200, body: await verifyPage(store, query.cursor, readLimit(query.limit, VERIFY_PAGE_MAX)) };
      },
    }),
  ];
}

async function verifyPage(store: Store, cursor: string | undefined, limit: number): Promise<object> {
  const audits: AccountAudit[] = [];
  let next = cursor;
  let lines = 0;
  do {
    // One account at a time, so that the page can end anywhere.
    const page = await store.listAccounts(next, 1);
    for (const account of page.items) {
      const audit = await audited(store, account, false);
      if (audit) audits.push(audit);
      lines += audit?.lines ?? 0;
    }
    next = page.next;
  } while (next !== undefined && audits.length < limit && lines < LINES_PER_ANSWER);
  return pageOf(audits, next);
}

/** Other requests are served between reads. */
function audited(store: Store, { tag }: Account, holds: boolean): Promise<AccountAudit | undefined> {
  return auditAccount(store, tag, { pause: () => setImmediate(), pageLines: LEDGER_PAGE_MAX, holds });
}

function pageOf(audits: readonly AccountAudit[], next: string | undefined): object {
  return { items: audits.map(showAudit), next: next ?? null };
}

function showAudit({ account, lines, sums, totals, outcome, findings, findingCount }: AccountAudit): object {
  return {
    account: account.name,
    id: account.id,
    outcome,
    lines,
    balance_usd: formatUsd(account.balance),
    lines_usd: formatUsd(sums.balance),
    held_usd: formatUsd(account.held),
    totals_usd: Object.fromEntries([...totals].map(([name, amount]) => [name, formatUsd(amount)])),
    findings: findings.map(({ line, what }) => ({ line: line ?? null, what })),
    finding_count: findingCount,
  };
}
