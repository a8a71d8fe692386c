/**
 * Codes of time cards: issue (the only time that a code's text is shown), list, void, and redeem for an account.
 */

import { type Store, StoreError } from "../store/contract.ts";
import type { Account, RedeemAnswer } from "../store/records.ts";
import { type CodeHash, newCode, readCode } from "../values/code.ts";
import { accountNamed, readLimit } from "./accounts.ts";
import { GuessBudget } from "./guess-budget.ts";
import { showCode, showEntitlement } from "./present.ts";
import { malformed, noSuchAccount, Refusal } from "./refusal.ts";
import { type Answer, type ConsoleParts, type ConsoleRoute, route } from "./route.ts";
import { AccountPath, CODES_PAGE_MAX, CodePath, CodesQuery, NewCodes, NewRedemption } from "./schema.ts";
import { assertConfigured } from "./suggest.ts";

export function codeRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store } = parts;
  const redemption = new Redemption(parts);
  return [
    route({
      method: "POST",
      path: "/codes",
      body: NewCodes,
      write: {
        what: "code.create",
        target: ({ body }) => body.card,
        facts: ({ body }) => ({ count: String(body.count) }),
        whenUnknown: "Codes may exist that nobody has seen: list the codes, void the newest, create others.",
      },
      async handle({ body }) {
        return issue(parts, body.card, body.count);
      },
    }),
    route({
      method: "GET",
      path: "/codes",
      query: CodesQuery,
      async handle({ query }) {
        const page = await store.listCodes(query.cursor, readLimit(query.limit, CODES_PAGE_MAX));
        return { status: 200, body: { items: page.items.map(showCode), next: page.next ?? null } };
      },
    }),
    route({
      method: "GET",
      path: "/codes/:id",
      params: CodePath,
      async handle({ params }) {
        const code = await store.getCode(params.id);
        if (code === undefined) throw noSuchCode(params.id);
        return { status: 200, body: showCode(code) };
      },
    }),
    route({
      method: "POST",
      path: "/codes/:id/void",
      params: CodePath,
      write: {
        what: "code.void",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: voiding a void code changes nothing.",
      },
      async handle({ params }) {
        const code = await store.voidCode(params.id);
        if (code === undefined) throw noSuchCode(params.id);
        if (code.state !== "void") throw inUse(params.id);
        return { status: 200, body: showCode(code) };
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/redemptions",
      params: AccountPath,
      body: NewRedemption,
      write: {
        what: "code.redeem",
        target: ({ params }) => params.name,
        whenUnknown: "Repeat the request: a code counts once, and the same account gets the same answer.",
      },
      async handle({ params, body }) {
        const account = await accountNamed(store, params.name);
        return redemption.redeem(account, body.code);
      },
    }),
  ];
}

/** Makes codes that are worth what the card kind says now, and goes on being worth that. */
async function issue(parts: ConsoleParts, card: string, count: number): Promise<Answer> {
  const { cards } = parts.catalog();
  assertConfigured("card", card, cards.keys());
  const kind = cards.get(card);
  if (kind === undefined) throw new Error(`a configured card is gone: ${card}`);
  const { plan, group, lastsMs, starts, quotaSpend } = kind;
  const facts = {
    card,
    plan,
    group,
    lastsMs,
    starts,
    quota: quotaSpend as Parameters<Store["createCodes"]>[0]["quota"],
  };
  const fresh = Array.from({ length: count }, () => newCode(parts.clock.wallMs(), parts.random));
  const made = fresh.map(({ id, hash }) => ({ id, hash }));
  await twice(() => parts.store.createCodes(facts, made));
  const items = fresh.map(({ id, text }) => ({ id, code: text }));
  const [first, last] = [fresh[0]?.id ?? "", fresh.at(-1)?.id ?? ""];
  return { status: 201, body: { card, items }, audit: { first_code_id: first, last_code_id: last } };
}

/** Once more when the outcome is unknown: the store takes the same codes twice without harm. */
async function twice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== "unavailable") throw error;
    return work();
  }
}

/** Redemptions of all accounts: those of one account one after another, so that its failures are counted in time. */
class Redemption {
  readonly #parts: ConsoleParts;
  readonly #budget: GuessBudget;
  /** The last redemption of each account that has one under way; bounded by the connections of the listener. */
  readonly #turns = new Map<string, Promise<Answer>>();

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    this.#budget = new GuessBudget(parts.clock);
  }

  /** @throws Refusal that says no more of an unknown code than of another's. */
  async redeem(account: Account, typed: string): Promise<Answer> {
    const hash = readTyped(typed);
    const before = this.#turns.get(account.id);
    const turn = (before ?? Promise.resolve()).then(
      () => this.#redeem(account, hash),
      () => this.#redeem(account, hash),
    );
    this.#turns.set(account.id, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(account.id) === turn) this.#turns.delete(account.id);
    }
  }

  async #redeem(account: Account, hash: CodeHash): Promise<Answer> {
    const waitMs = this.#budget.waitMs(account.id);
    if (waitMs > 0) {
      this.#parts.onCodeFailure?.({ account: account.id, outcome: "blocked", blocksNow: false });
      throw tooManyGuesses(waitMs);
    }
    const answer = await this.#parts.store.redeem({ hash, tag: account.tag });
    if (answer.outcome === "unknown_account") throw noSuchAccount(account.name);
    if (answer.outcome === "redeemed" || answer.outcome === "again") return redeemed(account, answer);
    const blocksNow = this.#budget.failed(account.id);
    this.#parts.onCodeFailure?.({ account: account.id, outcome: "failed", blocksNow });
    throw notRedeemable();
  }
}

function redeemed(
  account: Account,
  { outcome, code, entitlement }: Extract<RedeemAnswer, { outcome: "redeemed" | "again" }>,
): Answer {
  const repeated = outcome === "again";
  const body = {
    account: account.name,
    code_id: code.id,
    card: code.card,
    entitlement: showEntitlement(entitlement),
    repeated,
  };
  return { status: repeated ? 200 : 201, body, repeated, audit: { code_id: code.id, card: code.card } };
}

/** @throws Refusal 400 for what cannot be a code; nothing is looked up for it, so it is no guess. */
function readTyped(typed: string): CodeHash {
  const hash = readCode(typed);
  if (hash === undefined) {
    throw malformed(
      "code",
      "a code: 17 letters and digits in groups, XXXX-XXXX-XXXX-XXXX-X",
      "Send the code as it was sold.",
    );
  }
  if (hash !== "typo") return hash;
  throw new Refusal(
    400,
    "code_mistyped",
    "The code was mistyped: its last symbol does not fit the others.",
    "Compare it with what was sold, symbol by symbol.",
  );
}

/** One answer for codes that do not exist, that are void and that others have: a guess learns nothing. */
function notRedeemable(): Refusal {
  return new Refusal(
    404,
    "code_not_redeemable",
    "This account cannot redeem this code: there is none like it, it is void, or another account has it.",
    "Compare it with what was sold; tollgate code list shows the state of every code by its id.",
  );
}

function tooManyGuesses(waitMs: number): Refusal {
  const seconds = Math.ceil(waitMs / 1_000);
  return new Refusal(
    429,
    "too_many_wrong_codes",
    "This account has tried too many codes that it cannot redeem; no code is looked up for it for now.",
    `Wait ${seconds} s, then send the right code.`,
    { "retry-after": String(seconds) },
  );
}

function noSuchCode(id: string): Refusal {
  return new Refusal(
    404,
    "unknown_code",
    `There is no code with the id \`${id}\`.`,
    "List the codes: tollgate code list.",
  );
}

function inUse(id: string): Refusal {
  return new Refusal(
    409,
    "code_used",
    `The code \`${id}\` has been redeemed and cannot be voided; nothing was changed.`,
    "What the account has of it stays until it ends.",
  );
}
