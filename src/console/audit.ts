/**
 * The audit of operators' writes: who did what to whom, when, from where, and how it ended. Every write leaves one line in
 * the log, which is the record that lasts; the newest lines stay in memory for `GET /admin/v1/audit`.
 */
import { randomBytes } from "node:crypto";
import { withoutKey } from "../values/key-search.ts";
import type { Clock } from "../values/time.ts";
import { type AuditLineAnswer, AuditPage } from "./answers/answers.ts";
import { readInstant, readLimit } from "./parameters.ts";
import { AdminRefusal, malformed } from "./refusal.ts";
import { type ConsoleAnswer, type ConsoleRoute, type RouteInput, route } from "./routes/contract.ts";
import { closed, Instant, type Static, Type, wholeNumber } from "./vocabulary.ts";

/** Audit lines on one page at most. */
const AUDIT_PAGE_MAX = 200;

const AuditQuery = Type.Object(
  {
    cursor: Type.Optional(wholeNumber(15, "the `next` of an earlier page")),
    since: Type.Optional(Instant),
    after: Type.Optional(wholeNumber(15, "the number of a line: those that came behind it, oldest first")),
    run: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{12}$",
        description: "with after, the `run` of the answer that the number is from",
        "x-remedy": "Leave it out, or take it from an earlier answer.",
      }),
    ),
    limit: Type.Optional(wholeNumber(3, `a whole number from 1 to ${AUDIT_PAGE_MAX}`)),
  },
  closed,
);

/** Lines that are remembered; older ones are in the log only. */
const AUDIT_LINES_MAX = 1_000;

/** Who asks, as far as it is known. */
export interface Asker {
  /** `token:` and the beginning of the token's digest, `local`, or in the console of owners `owner:NAME:WAY`, `oidc` or `nobody`. */
  readonly who: string;
  /** The peer's address, or `unix`. */
  readonly from: string;
  readonly requestId: string;
}

/** A line that has no number yet: the process that answers for the audit gives it one. */
export type AuditEntry = Omit<AuditLineAnswer, "seq">;

/** What is done, and how it ended. */
type Asked = Asker & Pick<AuditLineAnswer, "what" | "target">;
interface Ended extends Pick<AuditLineAnswer, "outcome" | "facts"> {
  /** The code of the refusal. */
  readonly cause?: string;
}

export class Audit {
  readonly #clock: Clock;
  readonly #log: (line: object) => void;
  readonly #linesMax: number;
  readonly #passOn: ((entry: AuditEntry) => void) | undefined;
  readonly #lines: AuditLineAnswer[] = [];
  /** Of this process. */
  readonly runId = randomBytes(6).toString("hex");
  #seq = 0;
  /** Lines of owners, and of who was not let in. */
  #outsiders = 0;

  /**
   * @param log takes every line that is noted here.
   * @param options.linesMax lines that are remembered.
   * @param options.passOn takes each line to the process whose audit operators ask (`take`); then none is remembered here.
   */
  constructor(
    clock: Clock,
    log: (line: object) => void,
    { linesMax = AUDIT_LINES_MAX, passOn }: { linesMax?: number; passOn?: (entry: AuditEntry) => void } = {},
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#linesMax = linesMax;
    this.#passOn = passOn;
  }

  /** Runs a write and logs one line, also when the write failed. */
  async run(
    { write }: Pick<ConsoleRoute, "write">,
    input: RouteInput<unknown, unknown, unknown>,
    asker: Asker,
    work: () => Promise<ConsoleAnswer>,
  ): Promise<ConsoleAnswer> {
    const asked = { what: write?.what ?? "", target: write?.target(input) ?? "", ...asker };
    const known = write?.facts?.(input) ?? {};
    try {
      const answer = await work();
      const outcome = answer.repeated ? "repeated" : "done";
      this.note(asked, { outcome, facts: { ...known, ...answer.audit } });
      return answer;
    } catch (error) {
      const refused = error instanceof AdminRefusal && error.status < 500;
      const cause = error instanceof AdminRefusal ? error.code : "internal";
      this.note(asked, { outcome: refused ? "refused" : "unknown", cause, facts: known });
      throw error;
    }
  }

  get newest(): number {
    return this.#seq;
  }

  /** Lines above `after`, oldest first. */
  behind(after: number, limit: number): readonly AuditLineAnswer[] {
    return this.#lines.filter(({ seq }) => seq > after).slice(0, limit);
  }

  /** Lines below `before`, newest first, none of before `sinceMs`. */
  page(
    before: number,
    limit: number,
    sinceMs = 0,
  ): { readonly items: readonly AuditLineAnswer[]; readonly next: number | null } {
    const older = this.#lines.filter(({ seq, at }) => seq < before && Date.parse(at) >= sinceMs);
    const items = older.slice(-limit).reverse();
    const last = items.at(-1)?.seq;
    return { items, next: items.length < older.length && last !== undefined ? last : null };
  }

  /** The oldest; of owners and of who was not let in where they have more than half, so that no flood of theirs pushes out what operators did. */
  #forgetOne(): void {
    const isFlood = this.#outsiders > this.#linesMax / 2;
    const at = isFlood ? this.#lines.findIndex((line) => isOutsider(line.who)) : 0;
    const [gone] = this.#lines.splice(at, 1);
    if (gone && isOutsider(gone.who)) this.#outsiders--;
  }

  /** Logs one line of what is no route: somebody signs in, or does not. */
  note({ who, from, what, target: typed, requestId }: Asked, { outcome, cause, facts: known }: Ended): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    // Some type a key where a name, an id or a note is asked for, and the reader of the audit must not get it.
    const target = withoutKey(typed);
    const facts = Object.fromEntries(Object.entries(known).map(([name, text]) => [name, withoutKey(text)]));
    const entry = { at, request_id: requestId, who, from, what, target, outcome, cause: cause ?? null, facts };
    if (this.#passOn) this.#passOn(entry);
    else this.take(entry);
    this.#log({
      event: "audit",
      at,
      who,
      from,
      request: requestId,
      what,
      target,
      ...facts,
      outcome,
      ...(cause === undefined ? {} : { cause }),
    });
  }

  /** Remembers a line that another process of the gateway has noted, and logged. */
  take(entry: AuditEntry): void {
    this.#lines.push({ seq: ++this.#seq, ...entry });
    if (isOutsider(entry.who)) this.#outsiders++;
    if (this.#lines.length > this.#linesMax) this.#forgetOne();
  }
}

const isOutsider = (who: string): boolean => /^(?:owner:|oidc$|nobody$)/.test(who);

export function auditRoutes(audit: Audit): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/audit",
      id: "listAudit",
      summary: "The newest writes of operators and owners, newest first",
      description:
        `At most ${AUDIT_LINES_MAX} lines since this process began; the log has them all. \`since\` leaves out what is older. With ` +
        "`after` those that came behind that line, oldest first: with the `run` of the answer that the number is from, another " +
        "process begins with its first line.",
      query: AuditQuery,
      answers: { 200: AuditPage },
      async handle({ query }) {
        const limit = readLimit(query.limit, AUDIT_PAGE_MAX);
        assertOneDirection(query);
        const { runId: run, newest } = audit;
        if (query.after !== undefined) {
          const after = (query.run ?? run) === run ? Number(query.after) : 0;
          return { status: 200, body: { items: audit.behind(after, limit), next: null, run, newest } };
        }
        const sinceMs = query.since === undefined ? 0 : readInstant("since", query.since);
        const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : Number(query.cursor);
        const { items, next } = audit.page(before, limit, sinceMs);
        const body = { items, next: next === null ? null : String(next), run, newest };
        return { status: 200, body };
      },
    }),
  ];
}

/** @throws AdminRefusal 400 for members that the other direction has. */
function assertOneDirection({ after, run, cursor, since }: Static<typeof AuditQuery>): void {
  const others = after === undefined ? { run } : { cursor, since };
  const [name] = Object.entries(others).find(([, typed]) => typed !== undefined) ?? [];
  if (name === undefined) return;
  throw malformed(name, after === undefined ? "left out without after" : "left out with after", "Ask for one of them.");
}
