/** The ledger of the owner's account in the console: newest line first, and the line of one request. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import type { LedgerLine } from "../../store/records.ts";
import { startOfDay } from "../../store/sums/day-sums.ts";
import { issuedAtMs, type RequestId, readRequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import { type OwnLinesAnswer, OwnLinesPage, type OwnRequestAnswer, OwnRequestShape } from "../answers/own-usage.ts";
import { readLimit } from "../input/parameters.ts";
import { AdminRefusal, malformed } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { closed, Day, KeyId, type Static, Type, wholeNumber } from "../vocabulary.ts";
import { isOwn, showOwnLine, triesOf } from "./own-line.ts";
import type { OwnScope } from "./own-store.ts";

/** Ledger lines that one page of the console has at most. */
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
        "x-remedy": "Name the model as a line does.",
      }),
    ),
    before: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${OWN_LINES_MAX}`)),
  },
  closed,
);

const RequestPath = Type.Object(
  {
    id: Type.String({
      pattern: "^req_[0-9A-Za-z]{24}$",
      description: "the id of a request: req_ and 24 letters or digits",
      "x-remedy": "Copy it whole from the answer's x-request-id header, or from the message of an error.",
    }),
  },
  closed,
);

const RequestQuery = Type.Object({ after: Type.Optional(wholeNumber(15, "the `next` of an earlier answer")) }, closed);

/** After so long an answer ends, with what it has. */
const ANSWER_MS = 1_000;
/** Lines that are read at a time: a few milliseconds of the process. */
const STEP_LINES = 100;
const DAY_MS = 86_400_000;
/** How long after its request a line may be written: what an orphaned one waits for, and clocks that differ. */
const SETTLES_WITHIN_MS = 3 * DAY_MS;
const CLOCKS_DIFFER_MS = 10 * 60_000;

interface LineParts {
  readonly store: Pick<Store, "readLedger" | "getAccount">;
  readonly clock: Clock;
}

export function ownLineRoutes(parts: LineParts, scope: OwnScope): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/lines",
      id: "listOwnLines",
      summary: "The ledger lines of the account, newest first",
      description: "An answer ends after about a second; `next` is the `before` of the next one.",
      answers: { 200: OwnLinesPage },
      query: OwnLinesQuery,
      handle: async ({ query }) => ({ status: 200, body: await linesPage(parts, scope, query) }),
    }),
    route({
      method: "GET",
      path: "/requests/:id",
      id: "showOwnRequest",
      summary: "What became of a request, by its id",
      answers: { 200: OwnRequestShape },
      refusals: { 404: "`unknown_request`." },
      params: RequestPath,
      query: RequestQuery,
      async handle({ params, query }) {
        const id = readRequestId(params.id);
        if (id === undefined) throw noSuchRequest(params.id);
        return { status: 200, body: await requestOf(parts, scope, params.id, id, query.after) };
      },
    }),
  ];
}

async function linesPage(
  { store, clock }: LineParts,
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
    // The opening line stands for all below it: its number may be far above the one that was asked for.
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

/** Instants between which lines are wanted. @throws AdminRefusal 400 */
function instantsOf({ since, until }: Static<typeof OwnLinesQuery>): {
  readonly sinceMs: number;
  readonly endMs: number | undefined;
} {
  for (const [member, day] of Object.entries({ since, until })) {
    if (day !== undefined && startOfDay(day) === undefined)
      throw malformed(member, "a day, YYYY-MM-DD", "Days are UTC.");
  }
  const sinceMs = since === undefined ? 0 : (startOfDay(since) as number);
  const endMs = until === undefined ? undefined : (startOfDay(until) as number) + DAY_MS;
  if (endMs !== undefined && sinceMs >= endMs) throw malformed("since", "no later than `until`", "Days are UTC.");
  return { sinceMs, endMs };
}

async function requestOf(
  { store, clock }: LineParts,
  scope: OwnScope,
  printed: string,
  id: RequestId,
  after: string | undefined,
): Promise<OwnRequestAnswer> {
  const issuedMs = issuedAtMs(id);
  const endMs = clock.monotonicMs() + ANSWER_MS;
  const first = async () =>
    (await seqFrom(store, scope, await lineCount(store, scope), issuedMs - CLOCKS_DIFFER_MS)) - 1;
  let last = after === undefined ? await first() : Number(after);
  for (;;) {
    const lines = await store.readLedger(scope.tag, last, STEP_LINES);
    const found = lines.find(({ reference }) => reference === id);
    // All lines of a request are written in one step.
    if (found) return answerOf(printed, await store.readLedger(scope.tag, found.seq - 1, STEP_LINES), id, scope);
    const newest = lines.at(-1);
    if (newest === undefined || lines.length < STEP_LINES || newest.atMs > issuedMs + SETTLES_WITHIN_MS) {
      throw noSuchRequest(printed);
    }
    last = newest.seq;
    if (clock.monotonicMs() >= endMs) {
      return { request: printed, outcome: "searching", cause: null, line: null, tries: [], next: last };
    }
    await setImmediate();
  }
}

function answerOf(request: string, lines: readonly LedgerLine[], id: RequestId, scope: OwnScope): OwnRequestAnswer {
  const own = lines.filter(({ reference }) => reference === id);
  const charge = own.find(isOwn);
  const cause = own.find((line) => !isOwn(line))?.debit.replace(/^absorbed:/, "") ?? null;
  const tries = own.map(({ memo }) => triesOf(memo)).find((some) => some.length > 0) ?? [];
  const line = charge ? showOwnLine(charge, scope.tag) : null;
  return { request, outcome: line ? "charged" : "not_charged", cause: line ? null : cause, line, tries, next: null };
}

/** One above the newest line that is older than an instant. */
async function endOf(store: LineParts["store"], scope: OwnScope, endMs: number | undefined): Promise<number> {
  const lines = await lineCount(store, scope);
  return endMs === undefined ? lines + 1 : seqFrom(store, scope, lines, endMs);
}

/** Number of the newest line. */
async function lineCount(store: LineParts["store"], { tag }: OwnScope): Promise<number> {
  return (await store.getAccount(tag))?.lines ?? 0;
}

/** Number of the first line that is not older than an instant; one above the last where all are. By halving. */
async function seqFrom(store: LineParts["store"], { tag }: OwnScope, lines: number, atMs: number): Promise<number> {
  let [low, high] = [1, lines + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [line] = await store.readLedger(tag, middle - 1, 1);
    if (line === undefined || line.atMs >= atMs) high = middle;
    else low = Math.max(middle, line.seq) + 1;
  }
  return low;
}

function noSuchRequest(id: string): AdminRefusal {
  return new AdminRefusal(
    404,
    "unknown_request",
    `No ledger line of this account is about the request \`${id}\`.`,
    "Copy the id whole. A request that is still running, that was refused or that cost nothing has no line; old lines may be archived.",
  );
}
