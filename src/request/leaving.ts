/**
 * What is known of a model that writes out of sight, and what becomes of its upstream when the client leaves
 * (docs/decisions/what-leaving-costs.md).
 */
import type { Permit } from "../admit/permit.ts";
import type { StreamConverter } from "../convert/exchange.ts";
import { costSoFar } from "../settle/charge.ts";
import type { AttemptFacts, MeasuredReply } from "../settle/meter.ts";
import { doubtedTokens, type Pace } from "../settle/observed.ts";
import type { Route } from "../values/catalog.ts";
import type { Clock } from "../values/time.ts";
import { unseenCalls } from "../values/tokens/tool-calls.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { HoldExtension } from "./hold-extension.ts";
import type { PipelineParts, Run } from "./run.ts";
import { EXPECTED_MS, type SeenCounts } from "./silence.ts";

const MS_PER_S = 1_000;

/** How the model writes that answers, as far as is known now. */
export function paceOf(run: Run, route: Route, { observed }: Pick<PipelineParts, "observed">): Pace {
  return observed.paceOf(route, run.asksToThink || route.capabilities.thinking !== "none");
}

/** A reply whose output its upstream has counted says how its model writes; half a count says nothing of it. */
export function learn(
  route: Route,
  { usage, final, produced, silentMs }: MeasuredReply,
  { observed }: Pick<PipelineParts, "observed">,
): void {
  if (usage && final && isOutputCounted(usage)) observed.note(route, { usage, produced, silentMs });
}

/** An output of 0 is that of a server that does not count it, or of a reply that says nothing of its model. */
function isOutputCounted({ output, outputUncounted, unsplit }: Usage): boolean {
  return output > 0 && !outputUncounted && !unsplit;
}

/**
 * The tries of a request. A try that its client left, that timed out or that broke off gets an estimate of the tokens
 * written unseen in its time: in a whole reply that can be everything, in a stream only what the model may think before its
 * first visible token. Either may have called the tools of its server by then.
 */
export function triesOf(run: Run, permit: Permit, parts: Pick<PipelineParts, "observed">): readonly AttemptFacts[] {
  return run.attempts.map((attempt) => {
    const { startedAtMs, endedAtMs, upstream, model } = attempt;
    const route = permit.model.routes.find((one) => one.upstream === upstream && one.upstreamModel === model);
    if (!mayHaveWritten(attempt) || !route) return attempt;
    const pace = paceOf(run, route, parts);
    const waitedMs = Math.max(0, endedAtMs - startedAtMs - EXPECTED_MS);
    const { terms, model: asked } = permit;
    // A stream whose protocol shows calls would have begun before the first of them.
    const shown = run.streamed ? route.protocol : undefined;
    const calls = waitedMs > 0 ? unseenCalls(terms.tools, asked.toolCalls.held, shown) : undefined;
    if (run.streamed && pace.thinks === "no") return { ...attempt, unseenCalls: calls };
    return { ...attempt, unseenCalls: calls, hiddenTokens: (waitedMs / MS_PER_S) * pace.hiddenPerS };
  });
}

/** Whether its upstream was at work when a try was given up, and has not said how much it did. */
function mayHaveWritten({ outcome, sentToUpstream, refusedByUpstream, usage }: AttemptFacts): boolean {
  return outcome !== "ok" && sentToUpstream && !refusedByUpstream && usage === undefined;
}

/**
 * Whether the upstream keeps the answer: a server may write it to its end for nobody, and who has its id can read it then,
 * for nothing (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
export function isKept({ readsAgain }: Pick<Run, "readsAgain">, { stateful }: Route): boolean {
  return readsAgain && stateful === true;
}

/** A stream that its client leaves. */
interface LeftStream {
  readonly route: Route;
  /** The tier that it was asked for. */
  readonly tier: string | undefined;
  /** What is known of it now. */
  readonly counts: SeenCounts;
  readonly delivered: boolean;
  /** Undefined where the hold covers the most. */
  readonly holdExtension: Pick<HoldExtension, "look"> | undefined;
}

/** Held input above the likely one for which a count is worth waiting for. */
const INPUT_DOUBT_TOKENS = 10_000;
/** Bytes that an upstream may spend on a token that nobody reads: a frame of its own, with probabilities. */
const BYTES_PER_TOKEN = 4_096;

/**
 * A client that leaves does not save what it has caused (ARCHITECTURE.md promise 3): where its model may have thought
 * out of sight, the upstream is read on for its count. A stream of which the client got nothing costs it nothing and is
 * stopped at once.
 * @returns undefined where the upstream is to be stopped.
 */
export function leavingOf(
  run: Run,
  admitted: Permit,
  { route, tier, counts, delivered, holdExtension }: LeftStream,
  parts: PipelineParts,
): Leaving | undefined {
  const upstream = parts.settings().upstreams.get(route.upstream);
  const drains = upstream?.onClientGone === "drain";
  const graceMs = upstream?.clientGoneGraceMs ?? 0;
  const pace = paceOf(run, route, parts);
  // A server's own tools are billed by the call, and what they find as input, which is seldom shown: the count tells.
  const hidesTools = admitted.terms.tools.length > 0;
  // Nor is it of an input that may be much longer than it looks, until the upstream has counted it.
  const { inputTokens, inputEstimate, hasFiles } = admitted.terms;
  const isCounted = (counts.usage?.input ?? 0) > 0;
  // Where nobody is charged there is nothing to learn from it.
  const hidesFile = hasFiles && !isCounted && !admitted.unmetered;
  const hidesInput = hidesFile || (inputTokens - inputEstimate > INPUT_DOUBT_TOKENS && !isCounted);
  const isReadLater = isKept(run, route) && !admitted.unmetered;
  const drawCheck = () => !admitted.unmetered && parts.observed.drawCheck(counts);
  const hides = pace.thinks !== "no" || hidesTools || hidesInput || isReadLater || drawCheck();
  if (!drains && (!delivered || graceMs === 0 || !hides)) return undefined;
  return {
    // A file can be made to look small, and what is kept can be read later: who leaves these is charged by the count, however
    // long the answer is.
    forMs: drains || hidesFile || isReadLater ? Number.POSITIVE_INFINITY : graceMs,
    // Nor however large: pictures and what tools have found are no tokens of its limit.
    bytesMax: isReadLater ? Number.POSITIVE_INFINITY : BYTES_PER_TOKEN * admitted.outputMost * admitted.terms.choices,
    doubt:
      drains || hidesTools || hidesInput || isReadLater
        ? undefined
        : { tokens: doubtedTokens(counts, pace), perS: pace.hiddenPerS },
    covers(seen) {
      const permit = run.permit ?? admitted;
      if (permit.unmetered) return true;
      // Its client gets all of it, so its hold grows as that of a stream whose client stays.
      if (isReadLater && holdExtension) return holdExtension.look(seen) !== "stop";
      // Calls that were seen, and what they found, are owed whether it is read on or not.
      const { served: _, ...produced } = seen.produced;
      return costSoFar(permit, { ...seen, produced }, { cause: "client_gone", pace, tier }).cost < permit.hold;
    },
    // Nothing is free once one that can be read later has ended: it costs what is set aside, however little of it was seen.
    begun: (end) => (isReadLater ? () => {} : parts.left.add(admitted.tag, end)),
  };
}

/** What becomes of the upstream when the client leaves. */
export interface Leaving {
  /** How long it is read on at most; Infinity: until it ends. */
  readonly forMs: number;
  /** How much it may say meanwhile. */
  readonly bytesMax: number;
  /** What reading on may cost: so many tokens, and how many of them a second of silence may hide. */
  readonly doubt: { readonly tokens: number; readonly perS: number } | undefined;
  /** Whether what has been set aside still covers the reply. */
  covers(counts: SeenCounts): boolean;
  /** Called when the stream is read on, with a function that ends that. @returns to be called when it has ended. */
  begun(end: () => void): () => void;
}

/** How often a silent upstream is looked at. */
const LOOK_MS = 250;

/**
 * A stream whose client has left, read on for its upstream's count: as long as that costs less than what is in doubt, and
 * never beyond what was set aside.
 */
export class ReadOn {
  readonly #leaving: Leaving;
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #end: () => void;
  readonly #done: () => void;
  /** What was known when the client left. */
  readonly #left: SeenCounts;
  readonly #leftAtMs: number;
  #tokens: number;
  #shownAtMs: number;
  #bytes = 0;
  #cancelLook = () => {};

  /** @param end called when it has gone on for long enough. */
  constructor(leaving: Leaving, left: SeenCounts, clock: Pick<Clock, "after" | "monotonicMs">, end: () => void) {
    this.#leaving = leaving;
    this.#left = left;
    this.#clock = clock;
    this.#end = end;
    this.#tokens = left.produced.tokens;
    this.#leftAtMs = clock.monotonicMs();
    this.#shownAtMs = this.#leftAtMs;
    this.#done = leaving.begun(end);
    this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook = this.#clock.after(LOOK_MS, () => {
      if (this.#isEnough(this.#tokens)) this.#end();
      else this.#lookLater();
    });
  }

  /** Whether reading on may end, after so many more bytes and in the stream's present state. */
  isOver(bytes: number, { ended, fault }: Pick<StreamConverter, "ended" | "fault">, counts: SeenCounts): boolean {
    this.#bytes += bytes;
    if (counts.produced.tokens > this.#tokens) this.#shownAtMs = this.#clock.monotonicMs();
    this.#tokens = counts.produced.tokens;
    if (counts.final || ended || fault !== undefined) return true;
    return this.#bytes > this.#leaving.bytesMax || !this.#leaving.covers(counts) || this.#isEnough(this.#tokens);
  }

  /** Whether it costs as much by now as it could save. */
  #isEnough(tokens: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { doubt, forMs } = this.#leaving;
    if (nowMs - this.#leftAtMs >= forMs) return true;
    if (!doubt) return false;
    const hidden = ((nowMs - this.#shownAtMs) / MS_PER_S) * doubt.perS;
    return tokens - this.#left.produced.tokens + hidden >= doubt.tokens;
  }

  stop(): void {
    this.#cancelLook();
    this.#done();
  }
}
