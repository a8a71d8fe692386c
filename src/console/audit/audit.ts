/**
 * The audit of operators' writes: who did what to whom, when, from where, and how it ended. Every write leaves one line in
 * the log, which is the record that lasts; the newest lines stay in memory for `GET /admin/v1/audit`.
 */
import { randomBytes } from "node:crypto";
import { withoutKey } from "../../values/key-search.ts";
import type { Clock } from "../../values/time.ts";
import type { AuditLineAnswer } from "../answers/answers.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ConsoleAnswer, ConsoleRoute, RouteInput } from "../routes/contract.ts";

/** Lines that are remembered; older ones are in the log only. */
export const AUDIT_LINES_MAX = 1_000;

/** Who asks, as far as it is known. */
export interface Asker {
  /** `token:` and the beginning of the token's digest, `local`, or in the console of owners `owner:NAME:WAY`, `oidc` or `nobody`. */
  readonly who: string;
  /** The address of the one who asks, by a front that is trusted or as it connects; `unix`, or `unknown` of owners, for who has none. */
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
