/** The ledger of the owner's account in the console: lines, newest first, and the line of one request. */
import { setImmediate } from "node:timers/promises";
import type { LedgerLine } from "../../store/records.ts";
import { startOfDay } from "../../store/sums/day-sums.ts";
import { type OwnLinesAnswer, OwnLinesPage, type OwnRequestAnswer, OwnRequestShape } from "../answers/own-usage.ts";
import { readLimit } from "../input/parameters.ts";
import { malformed } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import {
  ANSWER_MS,
  type LedgerParts,
  lineCount,
  linesOfRequest,
  PrintedRequestId,
  RequestQuery,
  STEP_LINES,
  seqFrom,
} from "../routes/parts/request-lines.ts";
import { closed, Day, KeyId, pageSize, type Static, Type, wholeNumber } from "../vocabulary.ts";
import { isOwn, showOwnLine, triesOf } from "./own-line.ts";
import type { OwnScope } from "./own-store.ts";

/** Maximum number of ledger lines per page of the console. */
const OWN_LINES_MAX = 200;

const OwnLinesQuery = Type.Object(
  {
    since: Type.Optional(Day),
    until: Type.Optional(Day),
    key: Type.Optional(KeyId),
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: "the name of a model, as a client sends it",
        "x-remedy": "Use the model name as a ledger line shows it.",
      }),
    ),
    before: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    limit: Type.Optional(pageSize(OWN_LINES_MAX)),
  },
  closed,
);

const RequestPath = Type.Object({ id: PrintedRequestId }, closed);

const DAY_MS = 86_400_000;

export function ownLineRoutes(parts: LedgerParts, scope: OwnScope): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/lines",
      id: "listOwnLines",
      summary: "List the ledger lines of the account, newest first",
      description: "An answer ends after about a second; continue with its `next` as `before`.",
      answers: { 200: OwnLinesPage },
      query: OwnLinesQuery,
      handle: async ({ query }) => ({ status: 200, body: await linesPage(parts, scope, query) }),
    }),
    route({
      method: "GET",
      path: "/requests/:id",
      id: "showOwnRequest",
      summary: "Show what happened to a request, by its id",
      answers: { 200: OwnRequestShape },
      refusals: { 404: "`unknown_request`." },
      params: RequestPath,
      query: RequestQuery,
      handle: async ({ params, query }) => ({
        status: 200,
        body: await requestOf(parts, scope, params.id, query.after),
      }),
    }),
  ];
}

async function linesPage(
  { store, clock }: LedgerParts,
  scope: OwnScope,
  query: Static<typeof OwnLinesQuery>,
): Promise<OwnLinesAnswer> {
  const limit = readLimit(query.limit, OWN_LINES_MAX);
  const { sinceMs, endMs } = instantsOf(query);
  const answerEndMs = clock.monotonicMs() + ANSWER_MS;
  const items: OwnLinesAnswer["items"][number][] = [];
  let top = query.before === undefined ? await endOf(store, scope, endMs) : Number(query.before);
  while (top > 1) {
    const count = Math.min(STEP_LINES, top - 1);
    // The opening line replaces all archived lines before it, so its number may be far above the requested one.
    const read = (await store.readLedger(scope.tag, top - 1 - count, count)).filter(({ seq }) => seq < top).reverse();
    for (const line of read) {
      if (line.atMs < sinceMs) return { items, next: null, searched_to: null };
      if (fits(line, query)) items.push(showOwnLine(line, scope.tag));
      if (items.length >= limit) return { items, next: line.seq > 1 ? line.seq : null, searched_to: iso(line) };
    }
    const oldest = read.at(-1);
    if (oldest === undefined || oldest.seq === 1 || oldest.kind === "opening") break;
    top = oldest.seq;
    if (clock.monotonicMs() >= answerEndMs) return { items, next: top, searched_to: iso(oldest) };
    await setImmediate();
  }
  return { items, next: null, searched_to: null };
}

const iso = ({ atMs }: LedgerLine): string => new Date(atMs).toISOString();

function fits(line: LedgerLine, { key, model }: Static<typeof OwnLinesQuery>): boolean {
  return isOwn(line) && (key === undefined || line.key === key) && (model === undefined || line.model === model);
}

/** The range of instants to search. @throws AdminRefusal 400 */
function instantsOf({ since, until }: Static<typeof OwnLinesQuery>): {
  readonly sinceMs: number;
  readonly endMs: number | undefined;
} {
  for (const [member, day] of Object.entries({ since, until })) {
    if (day !== undefined && startOfDay(day) === undefined)
      throw malformed(member, "a day of the calendar, YYYY-MM-DD", "Days are UTC.");
  }
  const sinceMs = since === undefined ? 0 : (startOfDay(since) as number);
  const endMs = until === undefined ? undefined : (startOfDay(until) as number) + DAY_MS;
  if (endMs !== undefined && sinceMs >= endMs) throw malformed("since", "no later than `until`", "Days are UTC.");
  return { sinceMs, endMs };
}

async function requestOf(
  parts: LedgerParts,
  scope: OwnScope,
  request: string,
  after: string | undefined,
): Promise<OwnRequestAnswer> {
  const { lines, next } = await linesOfRequest(parts, scope.tag, request, after);
  if (lines === undefined) return { request, outcome: "searching", cause: null, line: null, tries: [], next };
  const charge = lines.find(isOwn);
  const cause = lines.find((line) => !isOwn(line))?.debit.replace(/^absorbed:/, "") ?? null;
  const tries = lines.map(({ memo }) => triesOf(memo)).find((some) => some.length > 0) ?? [];
  const line = charge ? showOwnLine(charge, scope.tag) : null;
  return { request, outcome: line ? "charged" : "not_charged", cause: line ? null : cause, line, tries, next: null };
}

/** One above the newest line that is older than the instant. */
async function endOf(store: LedgerParts["store"], { tag }: OwnScope, endMs: number | undefined): Promise<number> {
  const lines = await lineCount(store, tag);
  return endMs === undefined ? lines + 1 : seqFrom(store, tag, lines, endMs);
}
