/**
 * The audit of writes by operators and owners: who did what to whom, when, from where, and how it ended. Every write
 * leaves one line in the log, which is the permanent record; the newest lines stay in memory for `GET /admin/v1/audit`.
 */
import { randomBytes } from "node:crypto";
import { withoutKey } from "../../values/key-search.ts";
import type { Clock } from "../../values/time.ts";
import type { AuditLineAnswer } from "../answers/answers.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ConsoleAnswer, ConsoleRoute, RouteInput } from "../routes/contract.ts";

/** Lines in memory; older ones are only in the log. */
export const AUDIT_LINES_MAX = 1_000;

/** Who makes a request, as far as it is known. */
export interface Asker {
  /**
   * `token:` and the beginning of the token's digest, or `local`; in the owners' console `owner:NAME:WAY`, `oidc` or
   * `nobody`.
   */
  readonly who: string;
  /**
   * The client's address: as it connects, or as a trusted front forwards it; `unix` or, for owners, `unknown` if it has
   * none.
   */
  readonly from: string;
  readonly requestId: string;
}

/** A line without a number: the process that serves the audit assigns it. */
export type AuditEntry = Omit<AuditLineAnswer, "seq">;

/** What was requested, and how it ended. */
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
  /** Identifies this process. */
  readonly runId = randomBytes(6).toString("hex");
  #seq = 0;
  /** Number of lines in memory by owners and by people who were refused. */
  #outsiders = 0;

  /**
   * @param log receives every line that is noted here
   * @param options.linesMax lines that are kept in memory
   * @param options.passOn receives each line instead of this audit's memory, to hand it to the process that serves the
   *   audit (`take`)
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

  /** Lines after `after`, oldest first. */
  behind(after: number, limit: number): readonly AuditLineAnswer[] {
    return this.#lines.filter(({ seq }) => seq > after).slice(0, limit);
  }

  /** Lines before `before`, newest first, none older than `sinceMs`. */
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

  /**
   * Drops the oldest line. If lines by owners and refused people make up more than half, it drops the oldest of these,
   * so that a flood of them does not evict the operators' lines.
   */
  #forgetOne(): void {
    const isFlood = this.#outsiders > this.#linesMax / 2;
    const at = isFlood ? this.#lines.findIndex((line) => isOutsider(line.who)) : 0;
    const [gone] = this.#lines.splice(at, 1);
    if (gone && isOutsider(gone.who)) this.#outsiders--;
  }

  /** Notes and logs one line. Called directly for sign-ins, which are not routes. */
  note({ who, from, what, target: typed, requestId }: Asked, { outcome, cause, facts: known }: Ended): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    // People sometimes type a key where a name, an id or a note is expected; readers of the audit must not see it.
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

  /** Adds a line that another process of the gateway has noted and logged. */
  take(entry: AuditEntry): void {
    this.#lines.push({ seq: ++this.#seq, ...entry });
    if (isOutsider(entry.who)) this.#outsiders++;
    if (this.#lines.length > this.#linesMax) this.#forgetOne();
  }
}

const isOutsider = (who: string): boolean => /^(?:owner:|oidc$|nobody$)/.test(who);
