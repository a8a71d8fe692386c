/**
 * The store calls of verification: looks up charges, resends those that the store does not prove to have, replays
 * writes.
 */
import { type Store, StoreError } from "../../store/contract.ts";
import { SETTLED_IDS_MAX, type SettleAnswer, type SettleAsk } from "../../store/settlement.ts";
import type { AdminRecord } from "../journal.ts";
import { type Absences, DoubtfulError } from "../recovery/absences.ts";
import { type Answer, type DeadLetter, type DeadLetters, isNothing, letterFor } from "./dead-letters.ts";
import { SENT_AT_ONCE, type Verified } from "./give-back.ts";
import { type ChargePayload, decodeCharge } from "./payload.ts";
import type { PlacedCharge, RetrySteps } from "./set-aside.ts";

/** Lookups that run at the same time. */
const LOOKS_AT_ONCE = 16;

export interface ResendParts {
  readonly store: Pick<Store, "settle" | "settledAmounts">;
  readonly deadLetters: Pick<DeadLetters, "add">;
  /** Delays the verdict that an account is missing or stays broken. Without it the store's first answer counts. */
  readonly absences?: Absences;
  /** Replays an acknowledged administrative write, which changes nothing if the store still has it. */
  readonly applyAdmin?: (record: AdminRecord) => Promise<void>;
  /** Whether the server that answers now is the one that answered last. */
  readonly isFollowed: () => Promise<boolean>;
  /** Called when the store had lost this charge and has taken it again. */
  readonly onRestored: (ask: SettleAsk, answer: SettleAnswer) => void;
  /** Called when a charge or a write must wait for something that its account lacks; others continue. */
  readonly onAside?: (reason: StoreError) => void;
}

/** All reject with StoreError while the store is unavailable. */
interface Resend extends RetrySteps {
  /** Resends a charge without looking it up first. */
  readonly charge: (placed: PlacedCharge) => Promise<Verified>;
}

export function createResend(parts: ResendParts): Resend {
  const { store, deadLetters } = parts;

  async function charges(placed: readonly PlacedCharge[]): Promise<readonly PlacedCharge[]> {
    const { proven, unproven } = await look(store, placed);
    for (const { charge } of proven) parts.absences?.taken(charge);
    const waiting: PlacedCharge[] = [];
    await inParts(unproven, SENT_AT_ONCE, async (one) => {
      if ((await charge(one)) === "aside") waiting.push(one);
    });
    return waiting;
  }

  async function write(record: AdminRecord): Promise<boolean> {
    try {
      await parts.applyAdmin?.(record);
      return true;
    } catch (error) {
      setAside(error);
      return false;
    }
  }

  async function charge({ charge: { record } }: PlacedCharge): Promise<Verified> {
    const payload = decodeCharge(record);
    if (!payload) return "nothing";
    return settleAgain(payload).catch((error: unknown) => {
      setAside(error);
      return "aside";
    });
  }

  /** @throws the error again if it concerns other accounts too. */
  function setAside(error: unknown): void {
    if (!(error instanceof DoubtfulError)) throw error;
    parts.onAside?.(error);
  }

  /** Rejects with DoubtfulError while the reason why the store does not take the charge may be temporary. */
  async function settleAgain({ ask, orphan }: ChargePayload): Promise<Verified> {
    if (isNothing(ask)) return "nothing";
    const answer = await answerTo(ask);
    const letter = letterFor(ask, orphan, answer);
    if (letter?.reason === "unknown_account" && !(await parts.isFollowed())) {
      throw new StoreError("unavailable", "another server answers for the store");
    }
    parts.absences?.judge(ask, answer, letter);
    if (letter) await bury(letter);
    if (!("outcome" in answer) || answer.outcome === "unknown_account" || answer.outcome === "stale") return "nothing";
    if (answer.outcome !== "settled") return "present";
    parts.onRestored(ask, answer);
    return "restored";
  }

  /** Writes the letter. If the disk fails, only this charge waits. */
  async function bury(letter: DeadLetter): Promise<void> {
    await deadLetters.add(letter).catch((error: unknown) => {
      throw new DoubtfulError(`a dead letter cannot be written: ${String(error)}`);
    });
  }

  async function answerTo(ask: SettleAsk): Promise<Answer> {
    try {
      return await store.settle(ask);
    } catch (error) {
      if (!(error instanceof StoreError)) return { defect: String(error) };
      if (error.outcome !== "refused") throw error;
      return { refusal: error.message };
    }
  }

  return { charges, write, charge };
}

interface FoundCharges {
  readonly proven: readonly PlacedCharge[];
  readonly unproven: readonly PlacedCharge[];
}

/**
 * Finds out which charges the store proves to have with the same amount. Most are there, and looking up many at once
 * takes a tenth of the time of as many settlements. If the lookup is refused because an account is broken, nothing is
 * proven.
 */
async function look(store: Pick<Store, "settledAmounts">, placed: readonly PlacedCharge[]): Promise<FoundCharges> {
  const proven: PlacedCharge[] = [];
  const unproven: PlacedCharge[] = [];
  const looks = [...Map.groupBy(placed, ({ charge }) => charge.tag)].flatMap(([tag, all]) =>
    Array.from({ length: Math.ceil(all.length / SETTLED_IDS_MAX) }, (_, part) => ({
      tag,
      some: all.slice(part * SETTLED_IDS_MAX, (part + 1) * SETTLED_IDS_MAX),
    })),
  );
  await inParts(looks, LOOKS_AT_ONCE, async ({ tag, some }) => {
    const ids = some.map(({ charge }) => charge.requestId);
    const amounts = await store.settledAmounts(tag, ids).catch((error: unknown) => {
      if (!(error instanceof StoreError) || error.outcome !== "refused") throw error;
      return [];
    });
    for (const [at, one] of some.entries()) (amounts[at] === one.charge.amount ? proven : unproven).push(one);
  });
  return { proven, unproven };
}

/** Does the work for each, in groups of `size`. If one rejects, this rejects after its whole group has ended. */
async function inParts<T>(all: readonly T[], size: number, work: (one: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += size) {
    const ended = await Promise.allSettled(all.slice(at, at + size).map(work));
    for (const one of ended) if (one.status === "rejected") throw one.reason;
  }
}
