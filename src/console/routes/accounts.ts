/**
 * Accounts: create, list, show, and the plan that they are on.
 */

import type { Store } from "../../store/contract.ts";
import type { Account, AccountName, Page } from "../../store/records.ts";
import { newAccountTag } from "../../values/key.ts";
import { AccountPage, AccountShape, AccountWithCards } from "../answers/answers.ts";
import { showAccountBudgets } from "../answers/limits.ts";
import { showAccount, showCards } from "../answers/present.ts";
import { AdminRefusal, malformed, noSuchAccount } from "../refusal.ts";
import { ACCOUNTS_PAGE_MAX, AccountPath, AccountsQuery, NewAccount, NewPlan, PAGE_DEFAULT } from "../schema.ts";
import { assertConfigured } from "../suggest.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** After so long a search ends, with what it has. */
const ANSWER_MS = 1_000;
/** Tags drawn for one new account at most; a second draw is needed once in 10^17 accounts. */
const TAG_DRAWS_MAX = 3;

const SAFE_TO_REPEAT = "Repeat the request: it changes nothing when it was already made.";

/** The account of that name. @throws AdminRefusal 404 */
export async function accountNamed(store: Store, name: string): Promise<Account> {
  const account = await store.findAccount(name);
  if (account === undefined) throw noSuchAccount(name);
  return account;
}

/** The same for callers that read only its ledger: the account's own contents are not read. @throws AdminRefusal 404 */
export async function nameOfAccount(store: Store, name: string): Promise<AccountName> {
  const account = await store.findAccountName(name);
  if (account === undefined) throw noSuchAccount(name);
  return account;
}

/** The account that comes after this one, or the first; undefined after the last. */
export async function nextAccountName(store: Store, after: string): Promise<AccountName | undefined> {
  let cursor: string | undefined = after;
  do {
    const page: Page<AccountName> = await store.listAccountNames(cursor === "" ? undefined : cursor, 1);
    if (page.items[0]) return page.items[0];
    cursor = page.next;
  } while (cursor !== undefined);
  return undefined;
}

/**
 * Reads a page size.
 * @throws AdminRefusal 400 outside [1, max]
 */
export function readLimit(text: string | undefined, max: number): number {
  const limit = text === undefined ? PAGE_DEFAULT : Number(text);
  if (limit < 1 || limit > max) {
    throw malformed("limit", `a whole number from 1 to ${max}`, `Ask for at most ${max} and follow \`next\`.`);
  }
  return limit;
}

/**
 * Reads an instant of the form that the schemas ask for.
 * @returns milliseconds since the epoch
 * @throws AdminRefusal 400 for one that no calendar has
 */
export function readInstant(where: string, typed: string): number {
  const ms = Date.parse(typed);
  // Date.parse takes the 30th of February for the 2nd of March.
  const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(typed.slice(0, 19));
  if (!isReal) throw malformed(where, "an instant of the calendar", "Check the date.");
  return ms;
}

export function accountRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store } = parts;
  return [
    route({
      method: "POST",
      path: "/accounts",
      id: "createAccount",
      summary: "Create an account",
      description: "Counts once by the account's name.",
      answers: { 201: AccountShape, 200: AccountShape },
      refusals: { 409: "`account_exists`: with another plan." },
      body: NewAccount,
      write: {
        what: "account.create",
        target: ({ body }) => body.name,
        facts: ({ body }) => ({ plan: body.plan ?? parts.catalog().defaultPlan }),
        whenUnknown: SAFE_TO_REPEAT,
      },
      async handle({ body }) {
        if (body.plan !== undefined) assertConfigured("plan", body.plan, parts.catalog().plans);
        const { account, created } = await createOrFind(parts, body.name, body.plan ?? parts.catalog().defaultPlan);
        // Without a plan in the request the caller has no opinion, so an account that has since moved is no conflict.
        if (!created && body.plan !== undefined && account.plan !== body.plan) throw otherPlan(account);
        return { status: created ? 201 : 200, body: showAccount(account), repeated: !created };
      },
    }),
    route({
      method: "GET",
      path: "/accounts",
      id: "listAccounts",
      summary: "List accounts by name",
      description:
        "With `search` those whose name has it somewhere, in any case. Such an answer ends after about a second with what it " +
        "has found, maybe with nothing, and `next` goes on.",
      answers: { 200: AccountPage },
      query: AccountsQuery,
      async handle({ query }) {
        const { cursor, search } = query;
        const limit = readLimit(query.limit, ACCOUNTS_PAGE_MAX);
        const page = await (search === undefined
          ? store.listAccounts(cursor, limit)
          : accountsFound(parts, { search, cursor, limit }));
        return { status: 200, body: { items: page.items.map(showAccount), next: page.next ?? null } };
      },
    }),
    route({
      method: "GET",
      path: "/accounts/:name",
      id: "showAccount",
      summary: "Show an account and its time cards",
      answers: { 200: AccountWithCards },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      async handle({ params }) {
        const account = await accountNamed(store, params.name);
        const { cards, storeTimeMs } = (await store.listCards(account.tag)) ?? { cards: [], storeTimeMs: 0 };
        const entitlements = showCards(cards, storeTimeMs);
        const used = (await store.readAccountBudgets(account.tag)) ?? new Map();
        const budgets = showAccountBudgets(account.limits, used, storeTimeMs);
        return { status: 200, body: { ...showAccount(account), budgets, entitlements } };
      },
    }),
    route({
      method: "PUT",
      path: "/accounts/:name/plan",
      id: "setPlan",
      summary: "Change an account's base plan, from the next request on",
      answers: { 200: AccountShape },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      body: NewPlan,
      write: {
        what: "account.set_plan",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ plan: body.plan }),
        whenUnknown: SAFE_TO_REPEAT,
      },
      async handle({ params, body }) {
        assertConfigured("plan", body.plan, parts.catalog().plans);
        const before = await accountNamed(store, params.name);
        const after = await store.setPlan(before.tag, body.plan);
        if (after === undefined) throw noSuchAccount(params.name);
        return { status: 200, body: showAccount(after), repeated: before.plan === body.plan };
      },
    }),
  ];
}

/** Names that are looked through at a time. */
const SEARCH_STEP = 200;

interface Searched {
  readonly search: string;
  readonly cursor: string | undefined;
  readonly limit: number;
}

async function accountsFound({ store, clock }: ConsoleParts, asked: Searched): Promise<Page<Account>> {
  const part = asked.search.toLowerCase();
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const items: Account[] = [];
  let { cursor } = asked;
  do {
    const names: Page<AccountName> = await store.listAccountNames(cursor, SEARCH_STEP);
    for (const { name, tag } of names.items.filter((one) => one.name.toLowerCase().includes(part))) {
      const account = await store.getAccount(tag);
      if (account !== undefined) items.push(account);
      if (items.length >= asked.limit) return { items, next: name };
    }
    cursor = names.next;
  } while (cursor !== undefined && clock.monotonicMs() < endMs);
  return { items, next: cursor };
}

async function createOrFind(
  parts: ConsoleParts,
  name: string,
  plan: string,
): Promise<{ account: Account; created: boolean }> {
  for (let draw = 0; draw < TAG_DRAWS_MAX; draw++) {
    const created = await parts.store.createAccount({ tag: newAccountTag(parts.random), name, plan });
    if (created !== "exists") return { account: created, created: true };
    const account = await parts.store.findAccount(name);
    if (account !== undefined) return { account, created: false };
    // The name is free, so the tag was taken: draw another.
  }
  throw new Error("no free account tag was drawn; the random source repeats itself");
}

function otherPlan(account: Account): AdminRefusal {
  return new AdminRefusal(
    409,
    "account_exists",
    `An account named \`${account.name}\` exists with the plan \`${account.plan}\`.`,
    `Leave it as it is, or change its plan: tollgate account set-plan ${account.name} PLAN.`,
  );
}
