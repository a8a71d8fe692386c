/**
 * `GET /admin/v1/ledger/marks`: finds settled marks without a line, and accounts that no name leads to. This
 * complements a verification, which starts at accounts and follows their lines to marks: nothing leads to a mark
 * without a line, so all keys of the store are read, in answers of about a second.
 */
import type { Store } from "../../store/contract.ts";
import { auditMarks, type MarkFinding, type MarkProgress, type MarkSteps } from "../../store/ledger/audit.ts";
import type { AccountTag, RandomBytes } from "../../values/key.ts";
import type { Clock } from "../../values/time.ts";
import { type MarkAnswer, MarksPage, type MarksPageAnswer } from "../answers/ledger.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { malformed, noSuchAccount } from "../refusal.ts";
import { closed, Name, Place, type Static, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";
import { ANSWER_MS, auditId, pauseAfter } from "./ledger.ts";
import { KeptAudits } from "./parts/kept-audits.ts";

const MarksQuery = Type.Object({ account: Type.Optional(Name), cursor: Type.Optional(Place) }, closed);

export function markRoutes({ store, clock, random }: ConsoleParts): readonly ConsoleRoute[] {
  const verifier = new MarkVerifier(store, clock, random);
  return [
    route({
      method: "GET",
      path: "/ledger/marks",
      id: "verifyMarks",
      summary: "Compare settled marks with the ledger",
      description:
        "Finds requests that count as settled but have no line, and accounts that are missing in the list of accounts. It reads all keys of the store in bounded steps, " +
        "even for one account, and can run during traffic. An answer ends after about a second; continue with `next` until it is null. " +
        "The gateway forgets a `next` after two minutes; then a part is read again (`restarted`). An " +
        "embedded store has no such marks.",
      answers: { 200: MarksPage },
      refusals: { 404: "`unknown_account`." },
      query: MarksQuery,
      handle: async ({ query }) => ({ status: 200, body: await verifier.answer(query) }),
    }),
  ];
}

interface KeptMarks {
  readonly id: string;
  readonly tag: AccountTag | undefined;
  /** Where the current part started. */
  readonly place: string | undefined;
  readonly steps: MarkSteps;
  progress: MarkProgress;
}

class MarkVerifier {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  readonly #kept: KeptAudits<KeptMarks>;

  constructor(store: Store, clock: Clock, random: RandomBytes) {
    this.#store = store;
    this.#clock = clock;
    this.#random = random;
    this.#kept = new KeptAudits(clock);
  }

  async answer({ account, cursor }: Static<typeof MarksQuery>): Promise<MarksPageAnswer> {
    const [place, id] = readPlace(cursor);
    const tag = account === undefined ? undefined : (await this.#store.findAccountName(account))?.tag;
    if (account !== undefined && tag === undefined) throw noSuchAccount(account);
    const kept = id === "" ? undefined : this.#kept.take(id);
    const isKept = kept !== undefined && kept.tag === tag && kept.place === place;
    const audit = isKept ? kept : this.#begin(tag, place);
    const { found, next, steps } = await this.#drive(audit);
    const goesOn = found === undefined ? writeCursor([place ?? "", audit.id]) : next && writeCursor([next, ""]);
    return { items: (found ?? []).map(showFinding), next: goesOn ?? null, steps, restarted: id !== "" && !isKept };
  }

  #begin(tag: AccountTag | undefined, place: string | undefined): KeptMarks {
    const steps = auditMarks(this.#store, tag, place);
    return { id: auditId(this.#random), tag, place, steps, progress: { steps: 0 } };
  }

  /** Continues until the end of a part or of the answer; other requests are served between the steps. */
  async #drive(audit: KeptMarks): Promise<MarkProgress> {
    const endMs = this.#clock.monotonicMs() + ANSWER_MS;
    for (;;) {
      const startedMs = this.#clock.monotonicMs();
      const step = await audit.steps.next();
      if (step.done) return { ...audit.progress, found: [], next: undefined };
      audit.progress = step.value;
      const { error, found } = step.value;
      if (found) return step.value;
      const nowMs = this.#clock.monotonicMs();
      if (error || nowMs >= endMs) {
        this.#kept.keep(audit);
        if (error) throw error;
        return step.value;
      }
      await pauseAfter(nowMs - startedMs);
    }
  }
}

/** @throws AdminRefusal 400 */
function readPlace(cursor: string | undefined): readonly [place: string | undefined, id: string] {
  if (cursor === undefined) return [undefined, ""];
  const [place = "?", id = ""] = readCursor(cursor, 2) ?? [];
  if (!/^(?:\d{1,5}:\d{1,20}(?::.{0,300})?)?$/.test(place)) {
    throw malformed("cursor", "the `next` of an earlier page", "Leave it out to start again.");
  }
  return [place === "" ? undefined : place, id];
}

const showFinding = ({ account, check, about, what }: MarkFinding): MarkAnswer => ({
  account,
  check,
  line: null,
  about: about ?? null,
  what,
});
