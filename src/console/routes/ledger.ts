/**
 * `GET /admin/v1/ledger/verification`: compares the figures of accounts with their ledger lines. An answer ends after
 * about a second, in the middle of an account if necessary; the next one continues there, so that no ledger is too
 * long.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import { type AccountAudit, auditAccount } from "../../store/ledger/audit.ts";
import { accountId } from "../../store/names.ts";
import type { RandomBytes } from "../../values/key.ts";
import { formatUsd } from "../../values/money.ts";
import type { Clock } from "../../values/time.ts";
import { type VerificationAnswer, VerificationPage, type VerificationPageAnswer } from "../answers/ledger.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { readLimit } from "../input/parameters.ts";
import { nextAccountName } from "../named-accounts.ts";
import { malformed, noSuchAccount } from "../refusal.ts";
import { closed, Name, Place, pageSize, type Static, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";
import { type KeptAudit, KeptAudits } from "./parts/kept-audits.ts";

/** Maximum number of accounts per page of a verification. */
const VERIFY_PAGE_MAX = 200;

const VerifyQuery = Type.Object(
  {
    account: Type.Optional(Name),
    cursor: Type.Optional(Place),
    limit: Type.Optional(pageSize(VERIFY_PAGE_MAX)),
  },
  closed,
);

/** An answer ends after this time with its results so far. */
export const ANSWER_MS = 1_000;
/** The longest pause between two steps. */
const PAUSE_MS_MAX = 10;
/** Bytes of an audit's id, enough that it cannot be guessed. */
const ID_BYTES = 12;

export function ledgerRoutes({ store, clock, random }: ConsoleParts): readonly ConsoleRoute[] {
  const verifier = new LedgerVerifier(store, clock, random);
  return [
    route({
      method: "GET",
      path: "/ledger/verification",
      id: "verifyLedger",
      summary: "Compare accounts with their ledger lines",
      description:
        "An answer ends after about a second; continue with `next`, which may be in the middle of an account: `progress` shows " +
        "how far it is. `next` is null when everything is verified. The gateway remembers the progress for two minutes; " +
        "with an older `next`, or at another gateway, that account starts again (`restarted`).",
      answers: { 200: VerificationPage },
      refusals: { 404: "`unknown_account`." },
      query: VerifyQuery,
      handle: async ({ query }) => ({ status: 200, body: await verifier.answer(query) }),
    }),
  ];
}

/** Where a verification continues: after an account, or within the one after it. */
interface VerificationCursor {
  /** The last account that was verified; empty before the first. */
  readonly after: string;
  /** The id of the unfinished audit; empty without one. */
  readonly id: string;
}

class LedgerVerifier {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  readonly #kept: KeptAudits<KeptAudit>;

  constructor(store: Store, clock: Clock, random: RandomBytes) {
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
    this.#kept = new KeptAudits(clock);
  }

  async answer({ account, cursor, limit }: Static<typeof VerifyQuery>): Promise<VerificationPageAnswer> {
    const [after, id] = readPlace(cursor);
    const most = readLimit(limit, VERIFY_PAGE_MAX);
    const endMs = this.#clock.monotonicMs() + ANSWER_MS;
    const items: VerificationAnswer[] = [];
    let place: VerificationCursor = { after, id };
    let restarted = false;
    for (;;) {
      const audit = await this.#auditAt(place, account);
      if (!audit) return { items, next: null, progress: null, restarted };
      restarted ||= place.id !== "" && place.id !== audit.id;
      const done = await this.#drive(audit, endMs, items.length > 0);
      if (!done) {
        const { lines, linesMax } = audit.progress;
        const progress = { account: audit.account.name, lines, lines_total: linesMax ?? null };
        return { items, next: writeCursor([place.after, audit.id]), progress, restarted };
      }
      items.push(showAudit(done));
      place = { after: audit.account.name, id: "" };
      if (account !== undefined) return { items, next: null, progress: null, restarted };
      if (items.length >= most || this.#clock.monotonicMs() >= endMs) {
        return { items, next: writeCursor([place.after, ""]), progress: null, restarted };
      }
    }
  }

  /** The kept audit, or a new one of the next account; undefined after the last account. */
  async #auditAt({ after, id }: VerificationCursor, name: string | undefined): Promise<KeptAudit | undefined> {
    const kept = id === "" ? undefined : this.#kept.take(id);
    if (kept && (name === undefined || kept.account.name === name)) return kept;
    const account =
      name === undefined ? await nextAccountName(this.#store, after) : await this.#store.findAccountName(name);
    if (!account) {
      if (name !== undefined) throw noSuchAccount(name);
      return undefined;
    }
    const steps = auditAccount(this.#store, account);
    return { id: auditId(this.#random), account, steps, progress: { lines: 0, linesMax: undefined } };
  }

  /**
   * Continues until the end of the audit or of the answer; other requests are served between the steps. If the store
   * does not answer, the audit keeps its position and the next request continues there.
   */
  async #drive(audit: KeptAudit, endMs: number, hasItems: boolean): Promise<AccountAudit | undefined> {
    for (;;) {
      const startedMs = this.#clock.monotonicMs();
      const step = await audit.steps.next();
      if (step.done) return step.value;
      audit.progress = step.value;
      const { error } = step.value;
      if (error || this.#clock.monotonicMs() >= endMs) {
        this.#kept.keep(audit);
        if (error && !hasItems) throw error;
        return undefined;
      }
      await pauseAfter(this.#clock.monotonicMs() - startedMs);
    }
  }
}

/** Pauses for as long as the last step took, to leave the rest of the time for requests. */
export async function pauseAfter(tookMs: number): Promise<void> {
  await (tookMs < 1 ? setImmediate() : setTimeout(Math.min(tookMs, PAUSE_MS_MAX)));
}

/** The id of an audit that may be kept for the next answer. */
export const auditId = (random: RandomBytes): string => Buffer.from(random(ID_BYTES)).toString("hex");

/** @throws AdminRefusal 400 */
function readPlace(cursor: string | undefined): readonly [after: string, id: string] {
  if (cursor === undefined) return ["", ""];
  const [after, id] = readCursor(cursor, 2) ?? [];
  if (after === undefined || id === undefined) {
    throw malformed("cursor", "the `next` of an earlier page", "Leave it out to begin with the first account.");
  }
  return [after, id];
}

function showAudit(audit: AccountAudit): VerificationAnswer {
  const { name, tag, account, lines, balance, totals, outcome, findings, findingCount, skipped } = audit;
  return {
    account: name,
    id: accountId(tag),
    outcome,
    lines,
    balance_usd: account ? formatUsd(account.balance) : null,
    lines_usd: formatUsd(balance),
    held_usd: account ? formatUsd(account.held) : null,
    totals_usd: Object.fromEntries([...totals].map(([kind, amount]) => [kind, formatUsd(amount)])),
    findings: findings.map(({ check, line, about, what }) => ({
      check,
      line: line ?? null,
      about: about ?? null,
      what,
    })),
    finding_count: findingCount,
    skipped,
  };
}
