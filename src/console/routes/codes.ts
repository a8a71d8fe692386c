/** Codes of time cards: create (the only answer with the text of a code), list, void, and redeem for an account. */

import { StoreError } from "../../store/contract.ts";
import { type CardFacts, CODES_MAX, type Code } from "../../store/records.ts";
import { startOfDay } from "../../store/sums/day-sums.ts";
import { codeIdIn, newBatchId, newCode } from "../../values/code.ts";
import { KeyedQueue } from "../../values/collections/keyed-queue.ts";
import { formatUsd } from "../../values/money.ts";
import { COMMAND } from "../../values/program/program.ts";
import { CodePage, CodeShape, type NewCodesAnswer, NewCodesShape, RedemptionShape } from "../answers/answers.ts";
import { showCode, showLastDay } from "../answers/present.ts";
import { readLimit } from "../input/parameters.ts";
import { accountNamed } from "../named-accounts.ts";
import { AdminRefusal, malformed } from "../refusal.ts";
import { assertConfigured } from "../suggest.ts";
import {
  AccountPath,
  BatchId,
  CODES_PAGE_MAX,
  Configured,
  Cursor,
  closed,
  Day,
  IdempotencyId,
  pageSize,
  type Static,
  Type,
} from "../vocabulary.ts";
import { type ConsoleAnswer, type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";
import { Redeemer } from "./parts/redeemer.ts";

const CodeId = Type.String({
  pattern: "^code_[0-9A-Za-z]{16}$",
  description: "the id of a code: code_ and 16 letters or digits",
  "x-remedy": "Take the id from tollgate code list; never send the code itself.",
  examples: ["code_0NsPaGdz8KfW2q1T"],
});

const Label = Type.String({
  // Like a key's name, but longer.
  pattern: "^(?=.*[\\p{L}\\p{N}\\p{P}\\p{S}])[^\\s\\p{C}](?:[^\\p{C}\\p{Zl}\\p{Zp}]|\\u200d){0,127}$",
  description: "a label of 1 to 128 printable characters that does not begin with a space",
  "x-remedy": "Choose a label such as Spring fair 2027.",
  examples: ["Spring fair 2027"],
});

/** What a person typed. `values/code.ts` validates its form. */
const CodeText = Type.String({
  maxLength: 64,
  description: "a code, as a string such as XXXX-XXXX-XXXX-XXXX-X",
  "x-remedy": "Send the code as it was sold.",
  examples: ["XXXX-XXXX-XXXX-XXXX-X"],
});

const CodePath = Type.Object({ id: CodeId }, closed);

const CodesQuery = Type.Object(
  {
    batch: Type.Optional(BatchId),
    cursor: Type.Optional(Cursor),
    limit: Type.Optional(pageSize(CODES_PAGE_MAX)),
  },
  closed,
);

const NewCodes = Type.Object(
  {
    card: Configured,
    count: Type.Integer({
      minimum: 1,
      maximum: CODES_MAX,
      description: `a whole number from 1 to ${CODES_MAX}`,
      "x-remedy": `Ask for at most ${CODES_MAX} codes at a time.`,
      examples: [10],
    }),
    label: Type.Optional(Label),
    redeem_by: Type.Optional(Day),
    idempotency_id: Type.Optional(IdempotencyId),
  },
  closed,
);

const NewRedemption = Type.Object({ code: CodeText }, closed);

export function codeRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const { store, clock } = parts;
  const redemption = new Redeemer(parts);
  return [
    creation(parts),
    route({
      method: "GET",
      path: "/codes",
      id: "listCodes",
      summary: "List codes by id, without the codes themselves",
      description: "With `batch`, only codes of that batch; none if there is no such batch.",
      answers: { 200: CodePage },
      query: CodesQuery,
      async handle({ query }) {
        const { batch, cursor } = query;
        const limit = readLimit(query.limit, CODES_PAGE_MAX);
        const page = await (batch === undefined
          ? store.listCodes(cursor, limit)
          : store.listBatchCodes(batch, cursor, limit));
        const nowMs = clock.wallMs();
        const items = page.items.map((code) => showCode(code, nowMs));
        return { status: 200, body: { items, next: page.next ?? null } };
      },
    }),
    route({
      method: "GET",
      path: "/codes/:id",
      id: "showCode",
      summary: "Show a code's state",
      answers: { 200: CodeShape },
      refusals: { 404: "`unknown_code`." },
      params: CodePath,
      async handle({ params }) {
        const code = await store.getCode(params.id);
        if (code === undefined) throw noSuchCode(params.id);
        return { status: 200, body: showCode(code, clock.wallMs()) };
      },
    }),
    route({
      method: "POST",
      path: "/codes/:id/void",
      id: "voidCode",
      summary: "Permanently void a code that has not been redeemed",
      answers: { 200: CodeShape },
      refusals: { 404: "`unknown_code`.", 409: "`code_used`." },
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
        return { status: 200, body: showCode(code, clock.wallMs()) };
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/redemptions",
      id: "redeemCode",
      summary: "Redeem a code for an account",
      description: "Idempotent by the code.",
      answers: { 201: RedemptionShape, 200: RedemptionShape },
      refusals: {
        404: "`unknown_account`. `code_not_redeemable`: unknown, void, or another account's.",
        409: "`account_closed`.",
        410: "`expired_code`: its last day is over.",
      },
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

function creation(parts: ConsoleParts): ConsoleRoute {
  const turns = new KeyedQueue<ConsoleAnswer<NewCodesAnswer>>();
  return route({
    method: "POST",
    path: "/codes",
    id: "createCodes",
    summary: "Create codes for a card; they are shown only in this answer",
    description:
      "With an `idempotency_id`, a repeat creates no further codes: it gets 409 with the id of the first code that was " +
      "created. Without one, a repeat creates more codes. With a `label`, the codes are a batch. `redeem_by` is the last " +
      "UTC day on which they can be redeemed.",
    answers: { 201: NewCodesShape },
    refusals: { 409: "`codes_exist`: already created under this `idempotency_id`." },
    body: NewCodes,
    write: {
      what: "code.create",
      target: ({ body }) => body.card,
      facts: ({ body: { count, idempotency_id: once, label, redeem_by: redeemBy } }) => ({
        count: String(count),
        ...(label === undefined ? {} : { label }),
        ...(redeemBy === undefined ? {} : { redeem_by: redeemBy }),
        ...(once === undefined ? {} : { idempotency_id: once }),
      }),
      whenUnknown:
        "Codes that nobody has seen may exist: list the codes, void those of this minute, and create others. With an " +
        "idempotency_id, repeat the request: it creates them only once.",
    },
    async handle({ body }) {
      return turns.of(body.idempotency_id, () => issue(parts, body));
    },
  });
}

/** The present terms of a card kind. @throws AdminRefusal 400 for a kind that is not configured */
export function worthOf(parts: ConsoleParts, card: string): CardFacts {
  const { cards } = parts.catalog();
  assertConfigured("card", card, cards.keys());
  const kind = cards.get(card);
  if (kind === undefined) throw new Error(`a configured card is missing: ${card}`);
  const { plan, group, lastsMs, starts, quotaSpend } = kind;
  return { card, plan, group, lastsMs, starts, quota: quotaSpend as CardFacts["quota"] };
}

/** Creates codes with the present terms of the card kind; later changes of the kind do not affect them. */
async function issue(parts: ConsoleParts, asked: Static<typeof NewCodes>): Promise<ConsoleAnswer<NewCodesAnswer>> {
  const { card, count, label, redeem_by: redeemBy, idempotency_id: once } = asked;
  const worth = worthOf(parts, card);
  const nowMs = parts.clock.wallMs();
  const expiresAtMs = redeemBy === undefined ? undefined : endOfDay(redeemBy, nowMs);
  const before = once === undefined ? undefined : await parts.store.getCode(codeIdIn(once, 0));
  if (before !== undefined) throw codesExist(before);
  const fresh = Array.from({ length: count }, (_, index) => {
    const code = newCode(nowMs, parts.random);
    return once === undefined ? code : { ...code, id: codeIdIn(once, index) };
  });
  const made = fresh.map(({ id, hash }) => ({ id, hash }));
  const batch = label === undefined ? undefined : newBatchId(nowMs, parts.random, once);
  const named = label === undefined ? undefined : { label, count };
  const outcome = await twice(() => parts.store.createCodes({ ...worth, expiresAtMs, batch }, made, named));
  if (outcome === "taken") throw await takenMeanwhile(parts, fresh[0]?.id ?? "");
  const items = fresh.map(({ id, text }) => ({ id, code: text }));
  const [first, last] = [fresh[0]?.id ?? "", fresh.at(-1)?.id ?? ""];
  const body = {
    card,
    batch_id: batch ?? null,
    label: label ?? null,
    redeem_by: showLastDay(expiresAtMs),
    lasts_seconds: worth.lastsMs / 1_000,
    quota_usd: worth.quota === undefined ? null : formatUsd(worth.quota),
    items,
  };
  const ids = { first_code_id: first, last_code_id: last };
  return { status: 201, body, audit: batch === undefined ? ids : { ...ids, batch_id: batch } };
}

/** Another gateway has created codes under the same idempotency_id at the same time. */
async function takenMeanwhile({ store }: ConsoleParts, id: string): Promise<AdminRefusal> {
  const stands = await store.getCode(id);
  if (stands === undefined) throw new Error("the store reports existing codes that cannot be read");
  return codesExist(stands);
}

const DAY_MS = 86_400_000;

/** The first instant after a day. @throws AdminRefusal 400 for a day that does not exist or is over */
function endOfDay(day: string, nowMs: number): number {
  const startMs = startOfDay(day);
  if (startMs === undefined) throw malformed("redeem_by", "a day that exists", "Check the date.");
  const endMs = startMs + DAY_MS;
  if (endMs > nowMs) return endMs;
  throw malformed("redeem_by", "today or a later day", "Leave it out for codes without a last day.");
}

/** Runs the work again if the outcome is unknown: the store accepts the same codes twice without harm. */
async function twice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== "unavailable") throw error;
    return work();
  }
}

function codesExist({ id, card, createdAtMs }: Code): AdminRefusal {
  const made = new Date(createdAtMs).toISOString();
  return new AdminRefusal(
    409,
    "codes_exist",
    `Codes of the card \`${card}\` were created under this idempotency_id at ${made}, starting with \`${id}\`; their text was shown only then.`,
    `If their text was lost, void the codes of that instant (${COMMAND} code void ID), then create others under another id. To find them: ${COMMAND} code list`,
  );
}

function noSuchCode(id: string): AdminRefusal {
  return new AdminRefusal(
    404,
    "unknown_code",
    `There is no code with the id \`${id}\`.`,
    `List the codes: ${COMMAND} code list`,
  );
}

function inUse(id: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "code_used",
    `The code \`${id}\` has been redeemed and cannot be voided; nothing was changed.`,
    "The account keeps its card until the card ends.",
  );
}
