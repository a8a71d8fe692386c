/**
 * Watches the cost of an open-ended stream while it runs (ARCHITECTURE.md promise 1). Near the edge of its hold, it
 * asks the store to raise the hold by another step, while the stream continues. If the hold cannot grow any more, the
 * stream ends at the edge.
 *
 * The cost is the estimate for the bill of a cut stream: the upstream's count if there is one, else what was shown. If
 * the model is known to hide its thinking, it includes what may have been written in the silent time. If the last count
 * exceeds this, the rest is settled like every charge above its hold: from free funds first, then absorbed.
 */
import type { Growth } from "../admit/terms.ts";
import type { ExtendAnswer } from "../store/extension.ts";
import type { NanoUsd } from "../values/money.ts";
import type { Clock } from "../values/time.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { SeenCounts } from "./silence.ts";

/** The store is asked when less than this part of a step is left of the hold: a fifth, so at 80 % of the first hold. */
const EDGE_PER_STEP = 5n;
/** If the store gave no answer, it is asked again after this time, while the hold lasts. */
const RETRY_MS = 1_000;

/** Result of asking: a whole step, the rest of the funds, no increase, a hold that no longer exists, no answer. */
export type ExtensionOutcome = "extended" | "part" | "refused" | "gone" | "unavailable";

/** Whether the stream may go on, must wait for the store, or ends here. */
type FlowVerdict = "go" | "wait" | "stop";

/** The bill of the stream. */
interface GrowingBill {
  /** Asks the store for a hold of this much; rejects if it gives no answer. */
  extend(target: NanoUsd): Promise<ExtendAnswer>;
  /** What the stream would be billed if it were cut with these counts. */
  costOf(counts: SeenCounts): { readonly usage: Usage; readonly cost: NanoUsd };
  /** Called with the outcome of each answer, and the hold from now on. */
  extended(outcome: ExtensionOutcome, hold: NanoUsd): void;
}

interface HoldExtensionParts {
  readonly growth: Growth;
  /** The hold at admission. */
  readonly hold: NanoUsd;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly bill: GrowingBill;
}

export class HoldExtension {
  readonly #parts: HoldExtensionParts;
  /** The store is asked when less than this is left. */
  readonly #edge: bigint;
  readonly #step: bigint;
  readonly #most: NanoUsd;
  #hold: NanoUsd;
  /** Output tokens per choice that the last granted step covers. */
  #outputTokens: number;
  #asking = false;
  /** True once the hold cannot grow any more. */
  #exhausted = false;
  #askAgainAtMs = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => {};

  constructor(parts: HoldExtensionParts) {
    const { growth, hold } = parts;
    this.#parts = parts;
    this.#step = growth.holdFor(growth.stepTokens) - growth.holdFor(0);
    this.#edge = this.#step / EDGE_PER_STEP;
    this.#most = growth.holdFor(growth.outputTokensMax);
    this.#hold = hold;
    this.#outputTokens = growth.stepTokens;
  }

  /** @param wake called after an answer, because `look` may now return another verdict. */
  onAnswer(wake: () => void): void {
    this.#wake = wake;
  }

  /** The usage that is sent to the client if the stream is ended here. */
  usageOf(counts: SeenCounts): Usage {
    return this.#parts.bill.costOf(counts).usage;
  }

  /** Checks what has been produced, and asks the store if needed. */
  look(counts: SeenCounts): FlowVerdict {
    // A hold for all that the model can produce is never exceeded, even if an estimate says more.
    if (this.#hold >= this.#most || counts.final) return "go";
    const { cost } = this.#parts.bill.costOf(counts);
    const rest = this.#hold - cost;
    if (rest < this.#edge && this.#mayAsk()) this.#ask(cost);
    if (rest > 0n) return "go";
    return this.#asking ? "wait" : "stop";
  }

  #mayAsk(): boolean {
    return !this.#asking && !this.#exhausted && this.#parts.clock.monotonicMs() >= this.#askAgainAtMs;
  }

  #ask(cost: NanoUsd): void {
    const { growth, bill } = this.#parts;
    const outputTokens = this.#nextTokens(cost);
    const target = growth.holdFor(outputTokens);
    this.#asking = true;
    bill.extend(target).then(
      (answer) => this.#answered(this.#take(answer, target, outputTokens)),
      () => {
        this.#askAgainAtMs = this.#parts.clock.monotonicMs() + RETRY_MS;
        this.#answered("unavailable");
      },
    );
  }

  /** One more step, or as many as needed to leave enough of the hold again. */
  #nextTokens(cost: NanoUsd): number {
    const { stepTokens, outputTokensMax, holdFor } = this.#parts.growth;
    const missing = cost + this.#edge - holdFor(this.#outputTokens + stepTokens);
    const more = missing > 0n ? Number((missing + this.#step - 1n) / this.#step) : 0;
    return Math.min(this.#outputTokens + (1 + more) * stepTokens, outputTokensMax);
  }

  #take(answer: ExtendAnswer, target: NanoUsd, outputTokens: number): ExtensionOutcome {
    if (answer.outcome === "gone") {
      this.#exhausted = true;
      return "gone";
    }
    const before = this.#hold;
    // A store that lost its last second may hold less than it said before: its current answer counts.
    this.#hold = answer.hold;
    this.#outputTokens = outputTokens;
    if (answer.hold >= target) return "extended";
    this.#exhausted = true;
    return this.#hold > before ? "part" : "refused";
  }

  #answered(outcome: ExtensionOutcome): void {
    this.#asking = false;
    this.#parts.bill.extended(outcome, this.#hold);
    this.#wake();
  }
}
