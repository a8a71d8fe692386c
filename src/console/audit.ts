/**
 * The audit of operators' writes: who did what to whom, when, from where, and how it ended. Every write leaves one line in
 * the log, which is the record that lasts; the newest lines stay in memory for `GET /admin/v1/audit`.
 */
import type { Clock } from "../values/time.ts";
import { type AuditLineAnswer, AuditPage } from "./answers/answers.ts";
import { AdminRefusal } from "./refusal.ts";
import { readLimit } from "./routes/accounts.ts";
import { type ConsoleAnswer, type ConsoleRoute, type RouteInput, route } from "./routes/contract.ts";
import { AUDIT_PAGE_MAX, AuditQuery } from "./schema.ts";

/** Lines that are remembered; older ones are in the log only. */
const AUDIT_LINES_MAX = 1_000;

/** Who asks, as far as it is known. */
interface Asker {
  /** `token:` and the beginning of the token's digest, or `local`. */
  readonly who: string;
  /** The peer's address, or `unix`. */
  readonly from: string;
  readonly requestId: string;
}

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
  readonly #lines: AuditLineAnswer[] = [];
  #seq = 0;

  constructor(clock: Clock, log: (line: object) => void, linesMax = AUDIT_LINES_MAX) {
    this.#clock = clock;
    this.#log = log;
    this.#linesMax = linesMax;
  }

  /** Runs a write and logs one line, also when the write failed. */
  async run(
    { write }: ConsoleRoute,
    input: RouteInput<unknown, unknown, unknown>,
    asker: Asker,
    work: () => Promise<ConsoleAnswer>,
  ): Promise<ConsoleAnswer> {
    const asked = { what: write?.what ?? "", target: write?.target(input) ?? "", ...asker };
    const known = write?.facts?.(input) ?? {};
    try {
      const answer = await work();
      const outcome = answer.repeated ? "repeated" : "done";
      this.#note(asked, { outcome, facts: { ...known, ...answer.audit } });
      return answer;
    } catch (error) {
      const refused = error instanceof AdminRefusal && error.status < 500;
      const cause = error instanceof AdminRefusal ? error.code : "internal";
      this.#note(asked, { outcome: refused ? "refused" : "unknown", cause, facts: known });
      throw error;
    }
  }

  /** Lines below `before`, newest first. */
  page(before: number, limit: number): { readonly items: readonly AuditLineAnswer[]; readonly next: number | null } {
    const older = this.#lines.filter(({ seq }) => seq < before);
    const items = older.slice(-limit).reverse();
    const last = items.at(-1)?.seq;
    return { items, next: items.length < older.length && last !== undefined ? last : null };
  }

  #note({ who, from, what, target, requestId }: Asked, { outcome, cause, facts }: Ended): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    const seq = ++this.#seq;
    const noted = { who, from, what, target, outcome, cause: cause ?? null, facts };
    this.#lines.push({ seq, at, request_id: requestId, ...noted });
    if (this.#lines.length > this.#linesMax) this.#lines.shift();
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
}

export function auditRoutes(audit: Audit): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/audit",
      id: "listAudit",
      summary: "The newest writes of operators, newest first",
      description: `At most ${AUDIT_LINES_MAX} lines since this process began; the log has them all.`,
      query: AuditQuery,
      answers: { 200: AuditPage },
      async handle({ query }) {
        const limit = readLimit(query.limit, AUDIT_PAGE_MAX);
        const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : Number(query.cursor);
        const { items, next } = audit.page(before, limit);
        const body = { items, next: next === null ? null : String(next) };
        return { status: 200, body };
      },
    }),
  ];
}
