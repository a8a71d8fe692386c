/**
 * Batches of codes: list, show, void the unredeemed codes, and report the states of all. A batch has at most CODES_MAX
 * codes and is processed page by page.
 */
import type { Store } from "../../store/contract.ts";
import type { Code, CodeBatch, Page } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";
import { formatUsd } from "../../values/money.ts";
import { COMMAND } from "../../values/program/program.ts";
import { BatchPage, BatchReportShape, BatchShape, BatchVoidShape } from "../answers/answers.ts";
import { hasExpired, showBatch } from "../answers/present.ts";
import { readLimit } from "../input/parameters.ts";
import { AdminRefusal } from "../refusal.ts";
import { BatchId, CODES_PAGE_MAX, Cursor, closed, pageSize, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

const BatchPath = Type.Object({ id: BatchId }, closed);

const BatchesQuery = Type.Object(
  {
    cursor: Type.Optional(Cursor),
    limit: Type.Optional(pageSize(CODES_PAGE_MAX)),
  },
  closed,
);

/** Accounts whose cards are read at the same time. */
const ACCOUNTS_AT_ONCE = 50;

export function batchRoutes({ store, clock }: ConsoleParts): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/code-batches",
      id: "listCodeBatches",
      summary: "List batches of codes by id",
      answers: { 200: BatchPage },
      query: BatchesQuery,
      async handle({ query }) {
        const page = await store.listBatches(query.cursor, readLimit(query.limit, CODES_PAGE_MAX));
        return { status: 200, body: { items: page.items.map(showBatch), next: page.next ?? null } };
      },
    }),
    route({
      method: "GET",
      path: "/code-batches/:id",
      id: "showCodeBatch",
      summary: "Show a batch of codes",
      answers: { 200: BatchShape },
      refusals: { 404: "`unknown_batch`." },
      params: BatchPath,
      handle: async ({ params }) => ({ status: 200, body: showBatch(await batchOf(store, params.id)) }),
    }),
    route({
      method: "GET",
      path: "/code-batches/:id/report",
      id: "reportCodeBatch",
      summary: "Report the states of a batch's codes, and the spending of their cards",
      answers: { 200: BatchReportShape },
      refusals: { 404: "`unknown_batch`." },
      params: BatchPath,
      handle: async ({ params }) => {
        const batch = await batchOf(store, params.id);
        return { status: 200, body: await reportOn(store, batch, clock.wallMs()) };
      },
    }),
    route({
      method: "POST",
      path: "/code-batches/:id/void",
      id: "voidCodeBatch",
      summary: "Permanently void all codes of a batch that have not been redeemed",
      answers: { 200: BatchVoidShape },
      refusals: { 404: "`unknown_batch`." },
      params: BatchPath,
      write: {
        what: "code_batch.void",
        target: ({ params }) => params.id,
        whenUnknown: "Repeat the request: it voids the rest of the batch.",
      },
      async handle({ params }) {
        const { id, label } = await batchOf(store, params.id);
        const fates = await voidAll(store, id);
        const repeated = fates.voided_now === 0;
        const audit = { voided: String(fates.voided_now), redeemed: String(fates.redeemed) };
        return { status: 200, body: { id, label, ...fates, repeated }, repeated, audit };
      },
    }),
  ];
}

async function batchOf(store: Store, id: string): Promise<CodeBatch> {
  const batch = await store.getBatch(id);
  if (batch !== undefined) return batch;
  throw new AdminRefusal(
    404,
    "unknown_batch",
    `There is no batch with the id \`${id}\`.`,
    `List the batches: ${COMMAND} code batch list`,
  );
}

/** The codes of a batch, a page at a time. */
async function* codesOf(store: Store, id: string): AsyncGenerator<readonly Code[], void> {
  let cursor: string | undefined;
  do {
    const page: Page<Code> = await store.listBatchCodes(id, cursor, CODES_PAGE_MAX);
    yield page.items;
    cursor = page.next;
  } while (cursor !== undefined);
}

async function voidAll(store: Store, id: string) {
  const fates = { made: 0, redeemed: 0, void: 0, voided_now: 0 };
  for await (const codes of codesOf(store, id)) {
    // Including void codes: an earlier attempt may have voided them and failed before the batch recorded it.
    const unclaimed = codes.filter(({ state }) => state === "unused" || state === "void");
    const after = await store.voidCodes(unclaimed.map((code) => code.id));
    const voided = after.filter(({ state }) => state === "void").length;
    fates.made += codes.length;
    fates.void += voided;
    fates.voided_now += voided - codes.filter(({ state }) => state === "void").length;
    fates.redeemed += codes.length - unclaimed.length + after.length - voided;
  }
  return fates;
}

async function reportOn(store: Store, batch: CodeBatch, nowMs: number) {
  const fates = { made: 0, redeemed: 0, void: 0, expired: 0, unused: 0 };
  let spent = 0n;
  for await (const codes of codesOf(store, batch.id)) {
    fates.made += codes.length;
    for (const code of codes) fates[fateOf(code, nowMs)] += 1;
    spent += await spentOn(store, codes);
  }
  const quota = batch.quota === undefined ? null : formatUsd(batch.quota * BigInt(fates.redeemed));
  return { ...showBatch(batch), ...fates, spent_usd: formatUsd(spent), redeemed_quota_usd: quota };
}

function fateOf(code: Code, nowMs: number): "redeemed" | "void" | "expired" | "unused" {
  if (hasExpired(code, nowMs)) return "expired";
  // A claimed code: its card is being given to the account.
  return code.state === "claimed" ? "redeemed" : code.state;
}

/**
 * What was charged to the cards of a page of codes; a card's id is its code's. A page has at most as many codes as the
 * figures of one account can be read for.
 */
async function spentOn(store: Store, codes: readonly Code[]): Promise<bigint> {
  const byAccount = new Map<AccountTag, string[]>();
  for (const { tag, id } of codes) if (tag !== undefined) byAccount.set(tag, [...(byAccount.get(tag) ?? []), id]);
  const asks = [...byAccount];
  let spent = 0n;
  for (let from = 0; from < asks.length; from += ACCOUNTS_AT_ONCE) {
    const figures = await Promise.all(
      asks.slice(from, from + ACCOUNTS_AT_ONCE).map(([tag, cards]) => store.readFigures(tag, { cards })),
    );
    for (const one of figures) for (const card of one?.cards.values() ?? []) spent += card?.spent ?? 0n;
  }
  return spent;
}
