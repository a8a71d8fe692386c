/**
 * The archive's side of the admin API: lines in the form of the archive, and the step that replaces lines by one
 * opening line. The caller proves with a digest that it has the lines; without the proof they stay.
 */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import { chained, newChain } from "../../store/ledger/line-chain.ts";
import { ARCHIVE_AGE_MS, ARCHIVE_LINES_MAX, openingLine } from "../../store/ledger/opening.ts";
import { digestOf, toPlain } from "../../store/ledger/plain-line.ts";
import { LedgerWalk } from "../../store/ledger/walk.ts";
import { accountId } from "../../store/names.ts";
import type { LedgerLine } from "../../store/records.ts";
import { startOfDay } from "../../store/sums/day-sums.ts";
import type { AccountTag } from "../../values/key.ts";
import { COMMAND } from "../../values/program/program.ts";
import { type ArchivedAnswer, ArchivedShape, linePage, PlainLines } from "../answers/ledger.ts";
import { readLimit } from "../input/parameters.ts";
import { nameOfAccount } from "../named-accounts.ts";
import { AdminRefusal, malformed, noSuchAccount } from "../refusal.ts";
import { AccountPath, closed, Day, type Static, Type } from "../vocabulary.ts";
import { type ConsoleAnswer, type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";
import { LEDGER_PAGE_MAX, LedgerQuery } from "./funds.ts";

const LineNumber = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "the number of a ledger line, as a whole number",
  "x-remedy": "Take it from the lines, as tollgate ledger archive does.",
});

const NewArchive = Type.Object(
  {
    before: Day,
    after: LineNumber,
    through: LineNumber,
    sha256: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "the SHA-256 of the lines in hex",
      "x-remedy": "Send the digest of the lines that you have kept, as tollgate ledger archive does.",
    }),
  },
  closed,
);

/** Lines that are read or checked at a time: a few milliseconds of the process. */
const STEP_LINES = 100;
const HOURS = ARCHIVE_AGE_MS / 3_600_000;
const VERIFY_FIRST = `Archive again when the account has been verified: ${COMMAND} ledger verify`;

type ArchiveAsk = Static<typeof NewArchive>;

export function archiveRoutes({ store, clock }: ConsoleParts): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/accounts/:name/ledger/lines",
      id: "showPlainLines",
      summary: "List ledger lines in the form of the archive",
      answers: { 200: PlainLines },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      query: LedgerQuery,
      async handle({ params, query }) {
        const { tag } = await nameOfAccount(store, params.name);
        const limit = readLimit(query.limit, LEDGER_PAGE_MAX);
        const page = await linePage(store, tag, { after: Number(query.after ?? "0"), limit }, toPlain);
        const stay = clock.wallMs() - ARCHIVE_AGE_MS;
        return { status: 200, body: { id: accountId(tag), tag, ...page, stay_from_ms: stay } };
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/ledger/archive",
      id: "archiveLedger",
      summary: "Replace archived lines by an opening line",
      description: "Idempotent by the lines.",
      answers: { 201: ArchivedShape, 200: ArchivedShape },
      refusals: {
        404: "`unknown_account`.",
        409: "`too_young`, `moved`, `not_before`, `not_the_same_lines`, `splits_a_request`, `unbalanced`.",
      },
      params: AccountPath,
      body: NewArchive,
      write: {
        what: "ledger.archive",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ before: body.before, through: String(body.through) }),
        whenUnknown: "Repeat the request: if it was already done, it changes nothing.",
      },
      async handle({ params, body }) {
        const beforeMs = readBefore(body.before, clock.wallMs());
        const { tag } = await nameOfAccount(store, params.name);
        return archive(store, tag, params.name, body, beforeMs);
      },
    }),
  ];
}

/** Midnight at the beginning of the day, if it is old enough. @throws AdminRefusal */
function readBefore(day: string, nowMs: number): number {
  const beforeMs = startOfDay(day);
  if (beforeMs === undefined)
    throw malformed("before", "a day of the calendar, YYYY-MM-DD", "Write a day like 2026-08-31, in UTC.");
  if (beforeMs > nowMs - ARCHIVE_AGE_MS) throw tooYoung();
  return beforeMs;
}

function tooYoung(): AdminRefusal {
  return new AdminRefusal(
    409,
    "too_young",
    `Lines younger than ${HOURS} hours are never archived: a charge may still be settled or replayed.`,
    `Use a day that began at least ${HOURS} hours ago, in UTC.`,
  );
}

async function archive(
  store: Store,
  tag: AccountTag,
  name: string,
  ask: ArchiveAsk,
  beforeMs: number,
): Promise<ConsoleAnswer<ArchivedAnswer>> {
  const body = { account: name, after: ask.after, through: ask.through };
  const [first] = await store.readLedger(tag, 0, 1);
  const opening = first?.kind === "opening" ? first : undefined;
  if (opening && opening.seq >= ask.through) return { status: 200, body: { ...body, repeated: true }, repeated: true };
  if ((opening?.seq ?? 0) !== ask.after) throw moved(name);
  const lines = await provenLines(store, tag, name, ask);
  if (lines.some(({ atMs }) => atMs >= beforeMs)) throw notBefore(ask.before);
  const outcome = await store.archiveLedger(tag, { after: ask.after, opening: await openingOf(tag, opening, lines) });
  if (outcome === "too_young") throw tooYoung();
  if (outcome === "moved") throw moved(name);
  if (outcome === "unknown_account") throw noSuchAccount(name);
  const repeated = outcome === "duplicate";
  return { status: repeated ? 200 : 201, body: { ...body, repeated }, repeated };
}

/** Verifies the lines and creates their opening line; other requests are served in between. @throws AdminRefusal 409 */
async function openingOf(
  tag: AccountTag,
  before: LedgerLine | undefined,
  lines: readonly LedgerLine[],
): Promise<LedgerLine> {
  const walk = new LedgerWalk(tag);
  if (before) walk.add(before);
  let chain = walk.tally.opening?.chain ?? newChain(accountId(tag), (before?.seq ?? 0) + 1);
  for (let at = 0; at < lines.length; at += STEP_LINES) {
    const step = lines.slice(at, at + STEP_LINES);
    for (const line of step) walk.add(line);
    chain = chained(chain, step);
    await setImmediate();
  }
  walk.end();
  const [finding] = walk.findings;
  if (finding) throw new AdminRefusal(409, "unbalanced", `${finding.what} Nothing was archived.`, VERIFY_FIRST);
  return openingLine(tag, lines.at(-1) as LedgerLine, { ...walk.tally.facts, chain });
}

/** The lines, if the digest matches them. @throws AdminRefusal 400, 409 */
async function provenLines(store: Store, tag: AccountTag, name: string, ask: ArchiveAsk): Promise<LedgerLine[]> {
  const count = ask.through - ask.after;
  if (count < 1 || count > ARCHIVE_LINES_MAX) {
    const rule = `1 to ${ARCHIVE_LINES_MAX} lines after \`after\``;
    throw malformed(
      "through",
      rule,
      `Archive the ledger step by step, as this command does: ${COMMAND} ledger archive --before DAY --to FOLDER`,
    );
  }
  const lines: LedgerLine[] = [];
  while (lines.length < count) {
    const step = await store.readLedger(
      tag,
      lines.at(-1)?.seq ?? ask.after,
      Math.min(STEP_LINES, count - lines.length),
    );
    if (step.length === 0) break;
    lines.push(...step);
    await setImmediate();
  }
  if (lines.at(-1)?.seq !== ask.through || digestOf(lines) !== ask.sha256) {
    throw new AdminRefusal(
      409,
      "not_the_same_lines",
      "The digest does not match these lines in the ledger; nothing was archived.",
      "The archive file is damaged or belongs to another ledger. Move it away, and the lines are written again.",
    );
  }
  // A charge and the amount absorbed above its hold are verified together.
  const [next] = await store.readLedger(tag, ask.through, 1);
  if (next && next.reference !== "" && next.reference === lines.at(-1)?.reference) {
    throw new AdminRefusal(
      409,
      "splits_a_request",
      `Line ${ask.through} and the one after it belong to the same request.`,
      `Archive account ${name} up to a line where a request ends.`,
    );
  }
  return lines;
}

function notBefore(day: string): AdminRefusal {
  const remedy = "Archive up to the last line before that day.";
  return new AdminRefusal(
    409,
    "not_before",
    `One of the lines is not from before ${day}; nothing was archived.`,
    remedy,
  );
}

function moved(name: string): AdminRefusal {
  return new AdminRefusal(
    409,
    "moved",
    "The ledger does not begin at the line in the request; nothing was archived.",
    `It is being archived elsewhere, or was. To see where it begins: ${COMMAND} ledger show --account ${name} --limit 1`,
  );
}
