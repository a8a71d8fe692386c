/** Funds changed by an operator: top-ups and adjustments, and the ledger that lists them together with the charges. */
import type { Store } from "../../store/contract.ts";
import { accountId } from "../../store/names.ts";
import { formatUsd, NANO_USD_MAX, parseUsd } from "../../values/money.ts";
import { COMMAND } from "../../values/program/program.ts";
import { type MovementAnswer, MovementShape } from "../answers/answers.ts";
import { LedgerPage, linePage, newestLines, RequestLinesShape } from "../answers/ledger.ts";
import { showLedgerLine } from "../answers/present.ts";
import { readInstant, readLimit } from "../input/parameters.ts";
import { accountNamed, nameOfAccount } from "../named-accounts.ts";
import { AdminRefusal, accountClosed, malformed, noSuchAccount } from "../refusal.ts";
import { AccountPath, closed, Instant, Name, pageSize, type Static, Type, Usd, wholeNumber } from "../vocabulary.ts";
import { type ConsoleAnswer, type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";
import { linesOfRequest, PrintedRequestId, RequestQuery } from "./parts/request-lines.ts";

/** Maximum number of ledger lines per page. */
export const LEDGER_PAGE_MAX = 1_000;

const PaymentId = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
  description: "your id for this payment: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
  "x-remedy": "Send the payment's own id; the same id never counts twice.",
  examples: ["pay_1"],
});

const Note = Type.String({
  pattern: "^[^\\p{Cc}\\p{Cs}]{1,256}$",
  description: "1 to 256 characters without control characters",
  "x-remedy": "Give the reason of the adjustment in a few words; it is kept in the ledger.",
  examples: ["refund of invoice 7"],
});

export const LedgerQuery = Type.Object(
  {
    after: Type.Optional(wholeNumber(15, "the number of a ledger line, 0 for the beginning; oldest first")),
    order: Type.Optional(
      Type.Unsafe<"oldest" | "newest">({
        type: "string",
        enum: ["oldest", "newest"],
        description: "`oldest` or `newest`: which lines come first; default: oldest",
        "x-remedy": "Ask for order=newest or order=oldest.",
      }),
    ),
    before: Type.Optional(wholeNumber(15, "with order=newest, the number of a ledger line: the ones below it")),
    since: Type.Optional(Instant),
    limit: Type.Optional(pageSize(LEDGER_PAGE_MAX)),
  },
  closed,
);

const RequestPath = Type.Object({ name: Name, id: PrintedRequestId }, closed);

const NewTopup = Type.Object({ usd: Usd, id: PaymentId }, closed);

const NewAdjustment = Type.Object({ usd: Usd, id: PaymentId, note: Note }, closed);

const SAME_ID_AGAIN = "Repeat the request with the same id: the same id never counts twice.";

interface Movement {
  readonly id: string;
  /** Nano-dollars; never 0, negative only in adjustments. */
  readonly amount: bigint;
  readonly kind: "topup" | "adjust";
  readonly note: string;
}

export function fundsRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  return [
    route({
      method: "POST",
      path: "/accounts/:name/topups",
      id: "topUp",
      summary: "Add funds to an account",
      description: "Idempotent by the payment's id.",
      answers: { 201: MovementShape, 200: MovementShape },
      refusals: {
        404: "`unknown_account`.",
        409: "`id_used`: with another amount. `out_of_range`: the balance cannot take it. `account_closed`: funds can only be taken from it.",
      },
      params: AccountPath,
      body: NewTopup,
      write: {
        what: "topup",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ usd: body.usd, id: body.id }),
        whenUnknown: SAME_ID_AGAIN,
      },
      async handle({ params, body }) {
        return credit(parts, params.name, { id: body.id, amount: readTopup(body.usd), kind: "topup", note: "" });
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/adjustments",
      id: "adjust",
      summary: "Add to or subtract from a balance",
      description: "Idempotent by the adjustment's id.",
      answers: { 201: MovementShape, 200: MovementShape },
      refusals: {
        404: "`unknown_account`.",
        409: "`id_used`: with another amount. `out_of_range`: the balance cannot take it. `account_closed`: funds can only be taken from it.",
      },
      params: AccountPath,
      body: NewAdjustment,
      write: {
        what: "account.adjust",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ usd: body.usd, id: body.id, note: body.note }),
        whenUnknown: SAME_ID_AGAIN,
      },
      async handle({ params, body }) {
        const amount = readAdjustment(body.usd);
        return credit(parts, params.name, { id: body.id, amount, kind: "adjust", note: body.note });
      },
    }),
    route({
      method: "GET",
      path: "/accounts/:name/ledger",
      id: "showLedger",
      summary: "Show an account's ledger, oldest line first, or newest first with `order=newest`",
      description:
        "`next` is the `after` of the next page; with `order=newest`, its `before`. `since` leaves out older lines. `since` and " +
        "`before` are only for `order=newest`, `after` only for `order=oldest`.",
      answers: { 200: LedgerPage },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      query: LedgerQuery,
      handle: async ({ params, query }) => ({ status: 200, body: await linesOf(parts.store, params.name, query) }),
    }),
    requestRoute(parts),
  ];
}

/** The ledger lines of one request. */
function requestRoute(parts: ConsoleParts): ConsoleRoute {
  return route({
    method: "GET",
    path: "/accounts/:name/requests/:id",
    id: "showRequest",
    summary: "Show the ledger lines of a request, by its id",
    description:
      "Searches from the instant at which the id was issued. A search ends after about a second with empty `items`; continue with `next`.",
    answers: { 200: RequestLinesShape },
    refusals: { 404: "`unknown_account`, `unknown_request`." },
    params: RequestPath,
    query: RequestQuery,
    async handle({ params: { name, id }, query: { after } }) {
      const { tag } = await nameOfAccount(parts.store, name);
      const { lines = [], next } = await linesOfRequest(parts, tag, id, after);
      return {
        status: 200,
        body: { account_id: accountId(tag), request: id, items: lines.map(showLedgerLine), next },
      };
    },
  });
}

async function linesOf(store: Store, name: string, query: Static<typeof LedgerQuery>) {
  const limit = readLimit(query.limit, LEDGER_PAGE_MAX);
  assertOneOrder(query);
  if (query.order !== "newest") {
    const { tag } = await nameOfAccount(store, name);
    const page = await linePage(store, tag, { after: Number(query.after ?? "0"), limit }, showLedgerLine);
    return { account_id: accountId(tag), ...page };
  }
  const sinceMs = query.since === undefined ? 0 : readInstant("since", query.since);
  const { tag, lines } = await accountNamed(store, name);
  const before = Math.min(lines + 1, Number(query.before ?? lines + 1));
  return { account_id: accountId(tag), ...(await newestLines(store, tag, { before, limit, sinceMs }, showLedgerLine)) };
}

/** @throws AdminRefusal 400 for parameters of the other order */
function assertOneOrder({ order, after, before, since }: Static<typeof LedgerQuery>): void {
  const isNewest = order === "newest";
  const [name] =
    Object.entries(isNewest ? { after } : { before, since }).find(([, typed]) => typed !== undefined) ?? [];
  if (name === undefined) return;
  const other = isNewest ? "oldest" : "newest";
  throw malformed(name, "left out with this order", `It is for order=${other}.`);
}

/** The amount of a top-up: above 0, at most NANO_USD_MAX (docs/failure-model.md row 38). @throws AdminRefusal 400 */
function readTopup(text: string): bigint {
  const amount = parseUsd(text);
  if (amount !== undefined && amount > 0n) return amount;
  const rule = `an amount above 0 and at most ${formatUsd(NANO_USD_MAX)}: digits, and up to nine decimals after a point`;
  throw malformed(
    "usd",
    rule,
    'Write it like "10.00", without sign, spaces or exponent; to subtract, use an adjustment.',
  );
}

/** The amount of an adjustment: positive or negative, but not 0. @throws AdminRefusal 400 */
function readAdjustment(text: string): bigint {
  const amount = parseUsd(text, { signed: true });
  if (amount !== undefined && amount !== 0n) return amount;
  const rule = `an amount other than 0, at most ${formatUsd(NANO_USD_MAX)} in either direction: digits, and up to nine decimals after a point`;
  throw malformed("usd", rule, 'Write it like "-1.50" or "1.50", without spaces or exponent.');
}

async function credit(parts: ConsoleParts, name: string, movement: Movement): Promise<ConsoleAnswer<MovementAnswer>> {
  const account = await accountNamed(parts.store, name);
  const answer = await parts.store.credit(account.tag, movement);
  switch (answer.outcome) {
    case "credited":
    case "duplicate": {
      const repeated = answer.outcome === "duplicate";
      const usd = formatUsd(movement.amount);
      const body = { account: name, id: movement.id, usd, balance_usd: formatUsd(answer.balance), repeated };
      return { status: repeated ? 200 : 201, body, repeated };
    }
    case "mismatch":
      throw new AdminRefusal(
        409,
        "id_used",
        `The id \`${movement.id}\` was used on this account with another amount; nothing was changed.`,
        `Send the right amount, or another id; to look it up: ${COMMAND} ledger show --account ${name}`,
      );
    case "refused":
      throw new AdminRefusal(
        409,
        "out_of_range",
        `The balance minus the holds of running requests would be below 0.00 or above ${formatUsd(NANO_USD_MAX)}; nothing was changed.`,
        `Send an amount that available_usd covers; to check: ${COMMAND} account show ${name}`,
      );
    case "closed":
      throw accountClosed(name);
    case "unknown_account":
      throw noSuchAccount(name);
  }
}
