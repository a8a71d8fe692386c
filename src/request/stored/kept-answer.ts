/**
 * Asks an upstream about an answer that it keeps, after its stream fell silent or ended without a count. Whoever has the
 * id of the answer can retrieve it, so what its server has counted is charged
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import type { AttemptCounts, UpstreamFault } from "../../convert/exchange.ts";
import { countOutput } from "../../convert/responses/produced.ts";
import { readUsage } from "../../convert/responses/usage.ts";
import type { AttemptRecord } from "../../dispatch/ask.ts";
import type { Route } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { PipelineParts } from "../run.ts";
import type { SeenCounts } from "../silence.ts";
import { isBeingWritten, requestForStored, storedInspector } from "./found-reply.ts";

/** What the upstream says about the answer. */
export type KeptState =
  /** It still writes, or may. */
  | { readonly state: "running" }
  /** It has ended, and this is all of it. */
  | { readonly state: "ended"; readonly counts: AttemptCounts }
  /** It has no such answer, or the answer failed. */
  | { readonly state: "none" }
  /** It gave no usable answer. */
  | { readonly state: "unknown" };

/** Asks the upstream that keeps an answer. Never rejects. @param id the upstream's own. */
export type AskKept = (id: string) => Promise<KeptState>;

/** The end of a stream waits for this. */
const ANSWER_MS_MAX = 5_000;

const RUNNING: KeptState = { state: "running" };
const NONE: KeptState = { state: "none" };
const UNKNOWN: KeptState = { state: "unknown" };
const FOUND = 200;
const NOT_FOUND = 404;
const TOO_MANY_REQUESTS = 429;

type AskParts = Pick<PipelineParts, "dispatcher" | "clock" | "cut">;

/** @param route of the upstream that has begun the answer. @param onAnswer called with what the upstream says. */
export function askKeptAt(route: Route, parts: AskParts, onAnswer: (state: KeptState["state"]) => void): AskKept {
  return async (id) => {
    const answer = await asked(id, route, parts).catch(() => UNKNOWN);
    onAnswer(answer.state);
    return answer;
  };
}

async function asked(id: string, route: Route, { dispatcher, clock, cut }: AskParts): Promise<KeptState> {
  const result = await dispatcher.run({
    protocol: "responses",
    routes: [route],
    stream: false,
    needsNoSlot: true,
    readsInTurn: "by_gateway",
    method: "GET",
    pathSuffix: `/${encodeURIComponent(id)}`,
    headers: [],
    deadlineMs: clock.monotonicMs() + ANSWER_MS_MAX,
    // The client may disconnect meanwhile: its bill depends on the answer all the more. A drain does not wait for it.
    signal: cut,
    encodeFor: requestForStored,
    inspector: storedInspector,
  });
  if (!result.answered) return stateOfFailure(result.attempts.at(-1));
  return result.token.reply ? stateOf(result.token.reply.json) : UNKNOWN;
}

/**
 * A client could bring about a rate limit by asking for its answers too often, and an answer that is too large or too
 * slow to read by what it asks for. Such a server is alive, and may still write.
 */
function stateOfFailure(last: AttemptRecord | undefined): KeptState {
  if (last?.status === NOT_FOUND) return NONE;
  if (last?.status === TOO_MANY_REQUESTS) return RUNNING;
  const isUnread = last?.status === FOUND && (last.askedFor === true || last.outcome === "upstream_timeout");
  return isUnread ? RUNNING : UNKNOWN;
}

/** https://platform.openai.com/docs/api-reference/responses/object: the member `status`. */
function stateOf(response: JsonObject): KeptState {
  if (isBeingWritten(response)) return RUNNING;
  switch (response.status) {
    case "completed":
    case "incomplete":
    case "cancelled": {
      const usage = readUsage(response);
      const produced = countOutput(response.output);
      // Its client may have cancelled it, and can retrieve what was written by then.
      if (response.status === "cancelled" && usage === undefined && produced.bytes === 0) return NONE;
      return { state: "ended", counts: { usage, final: usage !== undefined, produced } };
    }
    case "failed":
      return NONE;
    default:
      return UNKNOWN;
  }
}

/** The answer of a running stream, at the upstream that keeps it. */
export class KeptAnswer {
  readonly #ask: AskKept;
  readonly #id: () => string | undefined;
  /** What the silent upstream has answered, if that ends the stream. */
  #last: KeptState | undefined;
  /** Whether the upstream still wrote when it was last asked. */
  #wasRunning = false;
  /** Whether the stream has continued since the upstream was asked. */
  #hasGoneOn = false;

  /** @param id the upstream's own; undefined while the client cannot have it. */
  constructor(ask: AskKept, id: () => string | undefined) {
    this.#ask = ask;
    this.#id = id;
  }

  /** Whether a silent upstream is to be waited for. */
  async isStillWritten(): Promise<boolean> {
    this.#hasGoneOn = false;
    const answer = await this.#asked();
    const isRunning = answer.state === "running";
    this.#wasRunning = isRunning;
    this.#last = isRunning || this.#hasGoneOn ? undefined : answer;
    return isRunning;
  }

  /** The upstream has sent something, so an earlier state does not apply any more. */
  heard(): void {
    this.#hasGoneOn = true;
    this.#last = undefined;
  }

  /**
   * The state when the stream has ended. It is not asked for again if silence has ended the stream. If the upstream gives
   * no usable answer now, its last one still applies.
   */
  async state(): Promise<KeptState> {
    if (this.#last) return this.#last;
    const answer = await this.#asked();
    return answer.state === "unknown" && this.#wasRunning ? RUNNING : answer;
  }

  async #asked(): Promise<KeptState> {
    const id = this.#id();
    return id === undefined ? UNKNOWN : await this.#ask(id);
  }
}

/**
 * What a client owes for a kept answer whose stream ended without a count.
 * @param cause why the stream ended; @param seen the counts at that time.
 * @returns undefined if it owes nothing more than for any other stream that broke off.
 */
export function owedForKept(kept: KeptState, cause: UpstreamFault["cause"], seen: SeenCounts): SeenCounts | undefined {
  if (kept.state === "ended") return countsOfKept(kept.counts, seen);
  // A client can ask for an answer that takes longer than its request may. What such a model has thought is owed, too.
  const isTooSlow = kept.state === "running" && cause === "upstream_timeout";
  return isTooSlow ? seen : undefined;
}

/** Some servers leave the usage, or output that the stream has shown, out of an answer that they keep. */
function countsOfKept({ usage, final, produced }: AttemptCounts, seen: SeenCounts): SeenCounts {
  const most = produced.bytes < seen.produced.bytes ? seen.produced : produced;
  return { ...seen, usage: usage ?? seen.usage, final, produced: most, countedLater: true };
}
