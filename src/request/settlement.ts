/** The bill of a request: while it streams, and at its end. */

import type { Permit } from "../admit/permit.ts";
import type { Answered } from "../dispatch/ask.ts";
import { costSoFar, settlementOf } from "../settle/charge.ts";
import { CheckpointPace } from "../settle/journal.ts";
import { BRAKE, type Ending } from "../settle/meter.ts";
import type { Pace } from "../settle/observed.ts";
import type { ExtendAnswer } from "../store/extension.ts";
import { inTime } from "../store/middleware/breakers.ts";
import { type NanoUsd, nanoUsd } from "../values/money.ts";
import type { Usage } from "../values/tokens/usage.ts";
import { attemptFactsOf, type DisconnectPlan, disconnectPlanOf, learn, paceOf } from "./disconnect.ts";
import { type ExtensionOutcome, HoldExtension } from "./hold-extension.ts";
import type { StreamEnd } from "./relay.ts";
import type { PipelineParts, Run } from "./run.ts";
import type { SeenCounts } from "./silence.ts";

/** How long the end of an answer waits for the store to free the request's idempotency key. */
const KEY_FREE_MS_MAX = 400;

type AnsweredBy = Pick<Answered<unknown>, "route" | "attempts">;

/** The tier that was requested from the upstream that answered. */
export function tierSent({ attempts }: Pick<AnsweredBy, "attempts">): string | undefined {
  return attempts.at(-1)?.tier;
}

/** The bill of a running stream, at the prices and the pace that were known when it began. */
export class StreamBill {
  readonly #run: Run;
  readonly #admitted: Permit;
  readonly #answered: AnsweredBy;
  readonly #parts: PipelineParts;
  readonly #tier: string | undefined;
  readonly #pace: Pace;
  readonly #due = new CheckpointPace();
  /** Watches the cost of a stream without an output limit; undefined if the hold covers the maximum. */
  readonly holdExtension: HoldExtension | undefined;

  constructor(run: Run, admitted: Permit, answered: AnsweredBy, parts: PipelineParts) {
    const { growth, hold } = admitted;
    this.#run = run;
    this.#admitted = admitted;
    this.#answered = answered;
    this.#parts = parts;
    this.#tier = tierSent(answered);
    this.#pace = paceOf(run, answered.route, parts);
    this.holdExtension = growth && new HoldExtension({ growth, hold, clock: parts.clock, bill: this });
  }

  /** Whether the model may think unseen, so that a silent stream costs more and more. */
  get thinks(): boolean {
    return this.#pace.thinks === "yes";
  }

  /** What the stream would be billed if it were cut with these counts. */
  costOf(counts: SeenCounts): { readonly usage: Usage; readonly cost: NanoUsd } {
    return costSoFar(this.#admitted, counts, { cause: BRAKE, pace: this.#pace, tier: this.#tier });
  }

  /** Asks the store for a hold of this much; rejects if it gives no answer. */
  extend(target: NanoUsd): Promise<ExtendAnswer> {
    const { requestId, tag } = this.#admitted;
    return this.#parts.store.extend({ requestId, tag, target });
  }

  /** The store has answered. What it adds to the hold belongs to the permit from then on. */
  extended(outcome: ExtensionOutcome, hold: NanoUsd): void {
    const { record, settled } = this.#run;
    record.extended(outcome);
    // An answer after the end comes too late: the charge is already made.
    if (settled) return;
    this.#run.permit = { ...this.#admitted, hold };
    record.held(hold);
  }

  /** Writes a checkpoint now and then: the amount that is charged if this process dies. */
  checkpoint(measured: SeenCounts): void {
    const { journal, clock } = this.#parts;
    if (!this.#due.isDue(clock.monotonicMs(), measured.produced.bytes)) return;
    const { route, attempts } = this.#answered;
    const cut = { delivered: true, complete: false, cause: "orphaned" };
    const ending: Ending = { ...cut, route, tier: this.#tier, measured, attempts, pace: this.#pace };
    journal.checkpoint(settlementOf(this.#run.permit ?? this.#admitted, ending).ask);
  }

  /** The client disconnects. @returns how the upstream is read from then on; undefined: it is stopped. */
  disconnectPlan(counts: SeenCounts, delivered: boolean): DisconnectPlan | undefined {
    const { route } = this.#answered;
    const stream = { route, tier: this.#tier, counts, delivered };
    return disconnectPlanOf(this.#run, this.#admitted, stream, this.#parts);
  }

  /** Makes the charge durable and sends it to the store. If nothing is charged, the idempotency key is free then. */
  settle({ reason, counts, ...end }: StreamEnd): Promise<unknown> {
    const { route } = this.#answered;
    const ending: Ending = { ...end, route, tier: this.#tier, cause: reason, measured: counts };
    const settled = settleRequest(this.#run, ending, this.#parts);
    if (!this.#admitted.idempotency) return settled;
    return settled.then((voided) => (voided ? keyFreed(this.#run, this.#parts) : undefined));
  }
}

/**
 * Resolves when the store has taken the request's settlement, and so has freed its idempotency key: with the end of its
 * answer the client may repeat the request at another process, which would find the key taken. A store that does not
 * answer delays that end for a short time only, and a client that disconnects ends the wait.
 */
export async function keyFreed({ permit, reply }: Run, { settler, clock }: PipelineParts): Promise<void> {
  const settled = permit && settler.unsettled(permit.tag);
  if (!settled || reply.gone) return;
  const gone = new Promise<void>((resolve) => reply.onGone(resolve));
  await inTime(clock, KEY_FREE_MS_MAX, Promise.race([settled, gone])).catch(() => {});
}

/**
 * Posts or voids the hold, once; resolves when the charge is durable and on its way to the store.
 * @returns whether this has voided the hold.
 */
export async function settleRequest(run: Run, ending: Ending, parts: PipelineParts): Promise<boolean> {
  if (!run.permit || run.settled) return false;
  run.settled = true;
  const { route } = ending;
  const pace = route && paceOf(run, route, parts);
  // The allowance is for what was not delivered. A drain that cuts running streams closes connections too, and
  // the client did not cause that.
  const mayBeLeft = !ending.delivered && !parts.cut.aborted;
  const leftAllowance = mayBeLeft ? nanoUsd(BigInt(parts.settings().leftAllowanceNano)) : undefined;
  const attempts = attemptFactsOf(run, run.permit, parts);
  const charge = settlementOf(run.permit, { ...ending, pace, attempts, leftAllowance });
  // The money first: a defect in reporting the charge must not block it.
  const settled = parts.settler.settle(charge.ask);
  if (route) run.record.answeredBy(ending.measured.answeredBy, route);
  run.record.charged(charge);
  if (route && run.endpoint.pathSuffix === undefined) learn(route, ending.measured, parts);
  await settled;
  run.record.settled();
  return charge.ask.voided;
}
