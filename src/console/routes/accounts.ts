/** Accounts: create, list, show, set plan, rename, label, suspend, resume, close. */

import { type Account, type AccountChange, type AccountName, LABELS_MAX, type Page } from "../../store/records.ts";
import { tagOfId } from "../../values/key.ts";
import { COMMAND } from "../../values/program/program.ts";
import { AccountPage, AccountShape, AccountWithCards } from "../answers/answers.ts";
import { showAccountBudgets } from "../answers/limits.ts";
import { showAccount, showCards } from "../answers/present.ts";
import { readLimit } from "../input/parameters.ts";
import { accountNamed, createOrFind } from "../named-accounts.ts";
import { AdminRefusal, accountClosed, noSuchAccount } from "../refusal.ts";
import { assertConfigured } from "../suggest.ts";
import { AccountPath, Configured, Cursor, closed, Name, pageSize, type Static, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** Maximum number of accounts per page: the store's own limit. */
const ACCOUNTS_PAGE_MAX = 200;

const LabelName = "^[A-Za-z0-9_.-]{1,64}$";

const LABEL_NAME = "1 to 64 characters of A-Z a-z 0-9 . _ -";

const LabelValue = Type.String({
  // No control or format characters and none that break a line, except the joiner of emoji; no space at either end.
  pattern: "^[^\\s\\p{C}](?:(?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,126}[^\\s\\p{C}])?$",
  description: "a label's value of 1 to 128 printable characters, without a space at either end",
  "x-remedy": "Send a short text, or null to remove the label.",
  examples: ["red"],
});

/** Labels to set or, with null, to remove; other labels stay. */
const NewLabels = Type.Object(
  {
    labels: Type.Unsafe<Readonly<Record<string, string | null>>>({
      type: "object",
      propertyNames: {
        pattern: LabelName,
        description: `an object whose members have names of ${LABEL_NAME}`,
        "x-remedy": "Choose names such as team or customer.number.",
      },
      additionalProperties: Type.Union([LabelValue, Type.Null()], {
        description: "a text of 1 to 128 printable characters without a space at either end, or null",
        "x-remedy": "Send a short text, or null to remove the label.",
      }),
      minProperties: 1,
      maxProperties: 2 * LABELS_MAX,
      description: `1 to ${2 * LABELS_MAX} labels by name; null removes one`,
      "x-remedy": 'Send them as {"labels": {"team": "red"}}.',
      examples: [{ team: "red" }],
    }),
  },
  closed,
);

const NewName = Type.Object({ name: Name }, closed);

export const AccountsQuery = Type.Object(
  {
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "part of the name or of a label's value, in any case, 1 to 64 characters; or the id of an account or of one of its keys",
        "x-remedy": "Leave it out to list all accounts.",
        examples: ["ali"],
      }),
    ),
    label: Type.Optional(
      Type.String({
        maxLength: 256,
        pattern: `${LabelName.slice(0, -1)}(?:=.*)?$`,
        description: `a label as name=value, or its name alone for any value; a name has ${LABEL_NAME}`,
        "x-remedy": "Write it like team=red.",
        examples: ["team=red"],
      }),
    ),
    status: Type.Optional(
      Type.Unsafe<Account["status"]>({
        type: "string",
        enum: ["normal", "suspended", "closed"],
        description: "`normal`, `suspended` or `closed`",
        "x-remedy": "Leave it out for accounts of any status.",
      }),
    ),
    cursor: Type.Optional(Cursor),
    limit: Type.Optional(pageSize(ACCOUNTS_PAGE_MAX)),
  },
  closed,
);

const NewAccount = Type.Object({ name: Name, plan: Type.Optional(Configured) }, closed);

const NewPlan = Type.Object({ plan: Configured }, closed);

/** A search ends after this time with the accounts found so far. */
const ANSWER_MS = 1_000;

const SAFE_TO_REPEAT = "Repeat the request: if it was already done, it changes nothing.";

export function accountRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store } = parts;
  return [
    route({
      method: "POST",
      path: "/accounts",
      id: "createAccount",
      summary: "Create an account",
      description: "Idempotent by the account's name.",
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
        // A request without a plan accepts any plan, so an account whose plan has changed since is no conflict.
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
        "`search` finds accounts whose name or label value contains it, in any case, or whose id or key id equals it; " +
        "`label` and `status` narrow the result. Such a search ends after about a second with what it has found, which may be nothing; continue with `next`.",
      answers: { 200: AccountPage },
      query: AccountsQuery,
      async handle({ query }) {
        const { cursor, search, label, status } = query;
        const limit = readLimit(query.limit, ACCOUNTS_PAGE_MAX);
        const isSearch = search !== undefined || label !== undefined || status !== undefined;
        const page = await (isSearch ? accountsFound(parts, query, limit) : store.listAccounts(cursor, limit));
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
      summary: "Change an account's base plan, effective from the next request",
      answers: { 200: AccountShape },
      refusals: { 404: "`unknown_account`.", 409: "`account_closed`." },
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
        if (before.status === "closed") throw accountClosed(params.name);
        const after = await store.setPlan(before.tag, body.plan);
        if (after === undefined) throw noSuchAccount(params.name);
        return { status: 200, body: showAccount(after), repeated: before.plan === body.plan };
      },
    }),
    renameRoute(parts),
    ...changeRoutes(parts),
    closeRoute(parts),
  ];
}

/** Gives an account another name. */
function renameRoute({ store }: ConsoleParts): ConsoleRoute {
  return route({
    method: "PUT",
    path: "/accounts/:name/name",
    id: "renameAccount",
    summary: "Rename an account; the old name becomes free",
    description:
      "Its id, keys, funds and ledger stay the same. A repeat under the old name gets 404, because no account has that name " +
      "now; a repeat under the new name changes nothing.",
    answers: { 200: AccountShape },
    refusals: {
      404: "`unknown_account`.",
      409: "`account_exists`: another account has the name. `renamed_meanwhile`: another request gave it a different name. `account_closed`.",
    },
    params: AccountPath,
    body: NewName,
    write: {
      what: "account.rename",
      target: ({ params: { name } }) => name,
      facts: ({ body }) => ({ name: body.name }),
      whenUnknown: `Repeat the request, unless the account already has the new name; to check: ${COMMAND} account list`,
    },
    async handle({ params: { name }, body }) {
      const before = await accountNamed(store, name);
      const after = await store.renameAccount(before.tag, body.name);
      if (after === undefined) throw noSuchAccount(name);
      if (after === "taken") throw nameTaken(body.name);
      if (after.status === "closed") throw accountClosed(after.name);
      if (after.name !== body.name) throw renamedMeanwhile(name, after.name);
      return { status: 200, body: showAccount(after), repeated: before.name === body.name };
    },
  });
}

/** Closes an account. */
function closeRoute({ store }: ConsoleParts): ConsoleRoute {
  return route({
    method: "POST",
    path: "/accounts/:name/close",
    id: "closeAccount",
    summary: "Close an account permanently; its keys are revoked from the next request",
    description:
      "Running requests are charged as usual. Balance, ledger and lists stay readable. Funds can only be taken out, by an adjustment. " +
      "Its name stays taken.",
    answers: { 200: AccountShape },
    refusals: { 404: "`unknown_account`." },
    params: AccountPath,
    write: {
      what: "account.close",
      target: ({ params: { name } }) => name,
      whenUnknown: "Repeat the request: it finishes an interrupted close, and changes nothing on a closed account.",
    },
    async handle({ params: { name } }) {
      const before = await accountNamed(store, name);
      const account = await store.closeAccount(before.tag);
      if (account === undefined) throw noSuchAccount(name);
      return { status: 200, body: showAccount(account), repeated: before.status === "closed" };
    },
  });
}

/** Changes of an account that is not closed. */
function changeRoutes({ store }: ConsoleParts): readonly ConsoleRoute[] {
  const answers = { 200: AccountShape };
  const params = AccountPath;
  const change = async (name: string, wanted: AccountChange) => {
    const before = await accountNamed(store, name);
    const account = await store.changeAccount(before.tag, wanted);
    if (account === undefined) throw noSuchAccount(name);
    if (account === "too_many") throw tooManyLabels(name);
    if (account.status === "closed") throw accountClosed(name);
    return { status: 200, body: showAccount(account) } as const;
  };
  return [
    route({
      method: "PUT",
      path: "/accounts/:name/labels",
      id: "labelAccount",
      summary: "Set labels of an account, or remove them with null; other labels stay",
      description: `At most ${LABELS_MAX} labels. They are only for lists and searches.`,
      answers,
      refusals: { 404: "`unknown_account`.", 409: "`too_many_labels`. `account_closed`." },
      params,
      body: NewLabels,
      write: {
        what: "account.label",
        target: ({ params: { name } }) => name,
        // Labels are the operator's own data, and the log has other readers too.
        facts: ({ body }) => ({ labels: String(Object.keys(body.labels).length) }),
        whenUnknown: "Repeat the request: setting the same labels again changes nothing.",
      },
      handle: ({ params: { name }, body }) =>
        change(name, {
          labels: Object.fromEntries(Object.entries(body.labels).map(([label, value]) => [label, value ?? ""])),
        }),
    }),
    route({
      method: "POST",
      path: "/accounts/:name/suspend",
      id: "suspendAccount",
      summary: "Suspend an account with all its keys, from the next request until it is resumed",
      answers,
      refusals: { 404: "`unknown_account`.", 409: "`account_closed`." },
      params,
      write: {
        what: "account.suspend",
        target: ({ params: { name } }) => name,
        whenUnknown: "Repeat the request: suspending a suspended account changes nothing.",
      },
      handle: ({ params: { name } }) => change(name, { status: "suspended" }),
    }),
    route({
      method: "POST",
      path: "/accounts/:name/resume",
      id: "resumeAccount",
      summary: "Resume a suspended account, effective from the next request",
      description: "Keys that were suspended individually stay suspended.",
      answers,
      refusals: { 404: "`unknown_account`.", 409: "`account_closed`." },
      params,
      write: {
        what: "account.resume",
        target: ({ params: { name } }) => name,
        whenUnknown: "Repeat the request: resuming an account that is not suspended changes nothing.",
      },
      handle: ({ params: { name } }) => change(name, { status: "normal" }),
    }),
  ];
}

/** Accounts that are checked at a time. */
const SEARCH_STEP = 200;

type Searched = Static<typeof AccountsQuery>;

async function accountsFound({ store, clock }: ConsoleParts, asked: Searched, limit: number): Promise<Page<Account>> {
  const { search, ...others } = asked;
  const tag = search === undefined ? undefined : tagOfId(search);
  const named = tag && (await store.getAccount(tag));
  if (named) return { items: fits(named, others) ? [named] : [], next: undefined };
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const items: Account[] = [];
  let { cursor } = asked;
  do {
    const page: Page<AccountName> = await store.listAccountNames(cursor, SEARCH_STEP);
    const read = await Promise.all(
      page.items.map(async (one) => ({ ...one, account: await store.getAccount(one.tag) })),
    );
    for (const { name, account } of read) {
      if (account === undefined || !fits(account, asked)) continue;
      items.push(account);
      if (items.length >= limit) return { items, next: name };
    }
    cursor = page.next;
  } while (cursor !== undefined && clock.monotonicMs() < endMs);
  return { items, next: cursor };
}

function fits({ name, labels, status }: Account, asked: Searched): boolean {
  const part = asked.search?.toLowerCase() ?? "";
  const texts = [name, ...Object.values(labels)].map((text) => text.toLowerCase());
  const [, label, value] = /^([^=]+)(?:=(.*))?$/s.exec(asked.label ?? "") ?? [];
  const isLabelled =
    label === undefined || (Object.hasOwn(labels, label) && labels[label] === (value ?? labels[label]));
  return isLabelled && status === (asked.status ?? status) && texts.some((text) => text.includes(part));
}

function tooManyLabels(name: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "too_many_labels",
    `The account \`${name}\` would have more than ${LABELS_MAX} labels; nothing was changed.`,
    `Remove some first: ${COMMAND} account label ${name} NAME=`,
  );
}

function nameTaken(name: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "account_exists",
    `Another account is named \`${name}\`; nothing was changed.`,
    `Choose another name, or rename that one first: ${COMMAND} account rename ${name} NAME`,
  );
}

function renamedMeanwhile(name: string, other: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "renamed_meanwhile",
    `Another request has renamed the account \`${name}\` to \`${other}\`.`,
    `If that is not the right name, rename it: ${COMMAND} account rename ${other} NAME`,
  );
}

function otherPlan(account: Account): AdminRefusal {
  return new AdminRefusal(
    409,
    "account_exists",
    `An account named \`${account.name}\` exists with the plan \`${account.plan}\`.`,
    `Leave it as it is, or change its plan: ${COMMAND} account set-plan ${account.name} PLAN`,
  );
}
