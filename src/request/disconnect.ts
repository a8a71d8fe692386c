/**
 * Decides what happens to an upstream when its client disconnects, by what is known of a model that thinks unseen
 * (docs/decisions/what-a-disconnect-costs.md).
 */
import type { Permit } from "../admit/permit.ts";
import type { StreamConverter } from "../convert/exchange.ts";
import { costSoFar } from "../settle/charge.ts";
import type { AttemptFacts, MeasuredReply } from "../settle/meter.ts";
import { type Pace, unseenTokens } from "../settle/observed.ts";
import type { Route } from "../values/catalog.ts";
import type { Clock } from "../values/time.ts";
import { unseenCalls } from "../values/tokens/tool-calls.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { PipelineParts, Run } from "./run.ts";
import { EXPECTED_MS, type SeenCounts } from "./silence.ts";

const MS_PER_S = 1_000;

/** How the answering model writes, as far as is known now. */
export function paceOf(run: Run, route: Route, { observed }: Pick<PipelineParts, "observed">): Pace {
  return observed.paceOf(route, run.asksToThink || route.capabilities.thinking !== "none");
}

/** Learns how the model writes from a reply whose output its upstream has counted; a partial count shows nothing. */
export function learn(
  route: Route,
  { usage, final, produced, silentMs, countedLater }: MeasuredReply,
  { observed }: Pick<PipelineParts, "observed">,
): void {
  if (usage && final && !countedLater && isOutputCounted(usage)) observed.note(route, { usage, produced, silentMs });
}

/** An output of 0 comes from a server that does not count it, or from a reply that shows nothing about its model. */
function isOutputCounted({ output, outputUncounted, unsplit }: Usage): boolean {
  return output > 0 && !outputUncounted && !unsplit;
}

/**
 * The attempts of a request. If the client disconnected during an attempt, or if it timed out or broke off, it gets an
 * estimate of the tokens written unseen in its time. In a whole reply that can be everything; in a stream, only what
 * the model may think before its first visible token. Either may also have called tools of the server by then.
 */
export function attemptFactsOf(
  run: Run,
  permit: Permit,
  parts: Pick<PipelineParts, "observed">,
): readonly AttemptFacts[] {
  return run.attempts.map((attempt) => {
    const { startedAtMs, endedAtMs, upstream, model } = attempt;
    const route = permit.model.routes.find((one) => one.upstream === upstream && one.upstreamModel === model);
    if (!mayHaveWritten(attempt) || !route) return attempt;
    const pace = paceOf(run, route, parts);
    const waitedMs = Math.max(0, endedAtMs - startedAtMs - EXPECTED_MS);
    const { terms, model: asked } = permit;
    // If the protocol shows calls, a stream would have begun before the first of them.
    const shown = run.streamed ? route.protocol : undefined;
    const calls = waitedMs > 0 ? unseenCalls(terms.tools, asked.toolCalls.held, shown) : undefined;
    if (run.streamed && pace.thinks === "no") return { ...attempt, unseenCalls: calls };
    return { ...attempt, unseenCalls: calls, hiddenTokens: (waitedMs / MS_PER_S) * pace.hiddenPerS };
  });
}

/** Whether the upstream was working when the attempt was given up, and has not reported how much it did. */
function mayHaveWritten({ outcome, sentToUpstream, refusedByUpstream, usage }: AttemptFacts): boolean {
  return outcome !== "ok" && sentToUpstream && !refusedByUpstream && usage === undefined;
}

/**
 * Whether the upstream keeps the answer. Its server may complete the answer without a reader, and a client that has its
 * id can then read it at no cost (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
export function isKept({ readsAgain }: Pick<Run, "readsAgain">, { stateful }: Route): boolean {
  return readsAgain && stateful === true;
}

/** A stream whose client disconnects. */
interface DisconnectedStream {
  readonly route: Route;
  /** The requested tier. */
  readonly tier: string | undefined;
  /** The counts at this time. */
  readonly counts: SeenCounts;
  readonly delivered: boolean;
}

/** If held input exceeds the likely input by more than this, it is worth waiting for a count. */
const INPUT_DOUBT_TOKENS = 10_000;
/** Bytes that an upstream may use for a token without a reader: a frame of its own, with probabilities. */
const BYTES_PER_TOKEN = 4_096;

/**
 * Disconnecting does not save a client what it has caused (ARCHITECTURE.md promise 3). If its model may have thought
 * unseen, the gateway keeps reading the upstream until its count. A stream of which the client got nothing costs
 * nothing and is stopped at once.
 * @returns undefined if the upstream is to be stopped.
 */
export function disconnectPlanOf(
  run: Run,
  admitted: Permit,
  { route, tier, counts, delivered }: DisconnectedStream,
  parts: PipelineParts,
): DisconnectPlan | undefined {
  const upstream = parts.settings().upstreams.get(route.upstream);
  const drains = upstream?.onClientGone === "drain";
  const graceMs = upstream?.clientGoneGraceMs ?? 0;
  const pace = paceOf(run, route, parts);
  // A server's own tools are billed per call, and their results as input, which is seldom shown: only the count tells.
  const hidesTools = admitted.terms.tools.length > 0;
  // The same applies to an input that may be much longer than it looks, until the upstream has counted it.
  const { inputTokens, inputEstimate, hasFiles } = admitted.terms;
  const isCounted = (counts.usage?.input ?? 0) > 0;
  // If the client is not charged, the count is not needed.
  const hidesFile = hasFiles && !isCounted && !admitted.unmetered;
  const hidesInput = hidesFile || (inputTokens - inputEstimate > INPUT_DOUBT_TOKENS && !isCounted);
  const isReadLater = isKept(run, route) && !admitted.unmetered;
  const drawCheck = () => !admitted.unmetered && parts.observed.drawCheck(counts);
  const hides = pace.thinks !== "no" || hidesTools || hidesInput || isReadLater || drawCheck();
  // What a client can read later is charged even if the operator has disabled reading after a disconnect.
  if (!drains && (!delivered || (graceMs === 0 && !isReadLater) || !hides)) return undefined;
  return {
    // A file can be made to look small, and a kept answer can be read later. So these are charged by the count, however
    // long the answer takes.
    forMs: drains || hidesFile || isReadLater ? Number.POSITIVE_INFINITY : graceMs,
    // And however large it is: images and tool results are not tokens of its limit.
    bytesMax: isReadLater ? Number.POSITIVE_INFINITY : BYTES_PER_TOKEN * admitted.outputMost * admitted.terms.choices,
    doubt:
      drains || hidesTools || hidesInput || isReadLater
        ? undefined
        : { tokens: unseenTokens(counts, pace), perS: pace.hiddenPerS },
    covers(seen) {
      const permit = run.permit ?? admitted;
      if (permit.unmetered) return true;
      // Calls that were seen, and their results, are owed whether the reading continues or not.
      const { served: _, ...produced } = seen.produced;
      return costSoFar(permit, { ...seen, produced }, { cause: "client_gone", pace, tier }).cost < permit.hold;
    },
    // Ending a stream that can be read later would release no funds: it costs the whole hold, however little of it was
    // seen.
    begun: (end) => (isReadLater ? () => {} : parts.disconnected.add(admitted.tag, end)),
  };
}

/** How the upstream is read after the client has disconnected. */
export interface DisconnectPlan {
  /** Longest time for which it is read; Infinity: until it ends. */
  readonly forMs: number;
  /** How many bytes it may send in that time. */
  readonly bytesMax: number;
  /**
   * The tokens in doubt, and how many a second of silence may hide. Reading ends when it has cost as much as is in
   * doubt.
   */
  readonly doubt: { readonly tokens: number; readonly perS: number } | undefined;
  /** Whether the hold still covers the reply. */
  covers(counts: SeenCounts): boolean;
  /** Called when the reading begins, with a function that ends it. @returns a function to call when it has ended. */
  begun(end: () => void): () => void;
}

/** How often a silent upstream is checked. */
const LOOK_MS = 250;

/**
 * Keeps reading a stream after its client has disconnected, to get the upstream's count: as long as this costs less
 * than what is in doubt, and never beyond the hold.
 */
export class ReadAfterDisconnect {
  readonly #plan: DisconnectPlan;
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #end: () => void;
  readonly #done: () => void;
  /** The counts when the client disconnected. */
  readonly #atDisconnect: SeenCounts;
  readonly #disconnectedAtMs: number;
  #tokens: number;
  #shownAtMs: number;
  #bytes = 0;
  #cancelLook = () => {};

  /** @param end called when the reading has lasted long enough. */
  constructor(
    plan: DisconnectPlan,
    atDisconnect: SeenCounts,
    clock: Pick<Clock, "after" | "monotonicMs">,
    end: () => void,
  ) {
    this.#plan = plan;
    this.#atDisconnect = atDisconnect;
    this.#clock = clock;
    this.#end = end;
    this.#tokens = atDisconnect.produced.tokens;
    this.#disconnectedAtMs = clock.monotonicMs();
    this.#shownAtMs = this.#disconnectedAtMs;
    this.#done = plan.begun(end);
    this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook = this.#clock.after(LOOK_MS, () => {
      if (this.#isEnough(this.#tokens)) this.#end();
      else this.#lookLater();
    });
  }

  /** Whether the reading may end, after this many more bytes and in the stream's present state. */
  isOver(bytes: number, { ended, fault }: Pick<StreamConverter, "ended" | "fault">, counts: SeenCounts): boolean {
    this.#bytes += bytes;
    if (counts.produced.tokens > this.#tokens) this.#shownAtMs = this.#clock.monotonicMs();
    this.#tokens = counts.produced.tokens;
    if (counts.final || ended || fault !== undefined) return true;
    return this.#bytes > this.#plan.bytesMax || !this.#plan.covers(counts) || this.#isEnough(this.#tokens);
  }

  /** Whether the reading has cost as much as it could save. */
  #isEnough(tokens: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { doubt, forMs } = this.#plan;
    if (nowMs - this.#disconnectedAtMs >= forMs) return true;
    if (!doubt) return false;
    const hidden = ((nowMs - this.#shownAtMs) / MS_PER_S) * doubt.perS;
    return tokens - this.#atDisconnect.produced.tokens + hidden >= doubt.tokens;
  }

  stop(): void {
    this.#cancelLook();
    this.#done();
  }
}
