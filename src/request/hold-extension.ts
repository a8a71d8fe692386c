/**
 * Watches what an open-ended stream costs while it runs (ARCHITECTURE.md promise 1). Near the edge of its hold the
 * store is asked to raise it by another step, while the stream flows on; where the hold can grow no more, the stream is
 * ended at its edge.
 *
 * What it goes by is the estimate of a cut stream's bill: the upstream's count where there is one, else what was shown and,
 * where the model is known to think out of sight, what may have been hidden in the time that was silent. What the last
 * count says beyond that is settled as every charge above its hold: free funds first, the rest absorbed.
 */
import type { Growth } from "../admit/terms.ts";
import type { ExtendAnswer } from "../store/extension.ts";
import type { NanoUsd } from "../values/money.ts";
import type { Clock } from "../values/time.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { SeenCounts } from "./silence.ts";

/** The store is asked when less than this part of a step is left of the hold: a fifth, so at 80 % of the first. */
const EDGE_PER_STEP = 5n;
/** How long after the store gave no answer it is asked again, while the hold lasts. */
const RETRY_MS = 1_000;

/** What became of an ask: a whole step, what was left of the funds, a hold that is gone, no answer. */
export type ExtensionOutcome = "extended" | "part" | "refused" | "gone" | "unavailable";

/** Whether the stream may go on, must wait for the store, or ends here. */
type FlowVerdict = "go" | "wait" | "stop";

/** What the stream owes, and for whom. */
interface GrowingBill {
  /** Asks the store for a hold of this much; rejects when it gives no answer. */
  extend(target: NanoUsd): Promise<ExtendAnswer>;
  /** What the stream would be billed for if it were cut with these counts. */
  costOf(counts: SeenCounts): { readonly usage: Usage; readonly cost: NanoUsd };
  /** Called with each answer, and what is held from now on. */
  extended(outcome: ExtensionOutcome, hold: NanoUsd): void;
}

interface HoldExtensionParts {
  readonly growth: Growth;
  /** What admission set aside. */
  readonly hold: NanoUsd;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly bill: GrowingBill;
}

export class HoldExtension {
  readonly #parts: HoldExtensionParts;
  /** Less than this left, and the store is asked. */
  readonly #edge: bigint;
  readonly #step: bigint;
  readonly #most: NanoUsd;
  #hold: NanoUsd;
  /** Output tokens of each choice that the last granted step covers. */
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

  /** @param wake called when an answer has come and `look` may say something else. */
  onAnswer(wake: () => void): void {
    this.#wake = wake;
  }

  /** The usage that the client is sent when the stream is ended here. */
  usageOf(counts: SeenCounts): Usage {
    return this.#parts.bill.costOf(counts).usage;
  }

  /** Looks at what has been produced; may ask the store on the way. */
  look(counts: SeenCounts): FlowVerdict {
    // A hold for all that the model can give is never exceeded, even if an estimate says more.
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

  /** One step more, or as many as what has been produced meanwhile takes to be off the edge again. */
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
    // A store that lost its last second may hold less than it said before: what it says now counts.
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
