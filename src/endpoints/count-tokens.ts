/**
 * `POST /v1/messages/count_tokens` and `POST /v1/responses/input_tokens`: the upstream's own count if a route speaks
 * the client's protocol, else an estimate. Counts are never charged, need no hold, and do not depend on limits or
 * funds. An upstream that cannot count is not an error, unless it keeps what the body refers to: only that server knows it.
 */
import { type ReadBody, readEnvelopeInTurns } from "../accept/envelope.ts";
import type { AcceptedRequest } from "../accept/listener.ts";
import { withGroup } from "../admit/refused.ts";
import {
  type CountedProtocol,
  countedOf,
  countFault,
  encodeCount,
  estimateInput,
  isCount,
  renderCount,
} from "../convert/count.ts";
import type { ClientRequest } from "../convert/exchange.ts";
import { rewriteBody } from "../convert/rewrite/rewrite.ts";
import type { Answered, AttemptRecord, AttemptRequest, Inspector, Unanswered } from "../dispatch/ask.ts";
import { forwardedHeaders } from "../request/conversion.ts";
import type { RequestRecord } from "../request/record.ts";
import { refusedBesideStored, routesFor, withReferences } from "../request/references.ts";
import type { PipelineParts } from "../request/run.ts";
import type { KeyView } from "../store/records.ts";
import type { Model, Route } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import { actionsFor, headerEdits, type RuleAction, type Ruled } from "../values/rules.ts";
import type { Clock } from "../values/time.ts";
import { modelFor } from "./models.ts";

export interface CountParts extends Pick<PipelineParts, "settings" | "clock" | "dispatcher" | "sealing"> {
  readonly nativeCounts: NativeCounts;
}

export interface Counted {
  readonly origin: "gateway" | "upstream";
  readonly body: Uint8Array;
}

/** How long to wait for an upstream's count; a client that shows a context meter waits for all of its counts. */
const NATIVE_COUNT_MS_MAX = 5_000;
const MS_PER_S = 1_000;

/** What counting appends to the path of the model endpoint, here and at upstreams. */
const PATH_SUFFIXES: Readonly<Record<CountedProtocol, string>> = {
  messages: "/count_tokens",
  responses: "/input_tokens",
};

/**
 * Counts the input of a request whose key is valid.
 * @returns the reply's body; a refusal in the order of the model endpoint, from the body's faults to the group's;
 *   undefined if the client disconnected.
 */
export async function countTokens(
  protocol: CountedProtocol,
  { request, body }: { readonly request: AcceptedRequest; readonly body: Uint8Array },
  view: KeyView,
  record: RequestRecord,
  parts: CountParts,
): Promise<Counted | Refusal | undefined> {
  const readCounted = (_protocol: Protocol, bytes: Uint8Array) =>
    readEnvelopeInTurns(protocol, bytes, { limitOptional: true });
  const shown = await readCounted(protocol, body);
  const read = isRefusal(shown) ? shown : await withReferences(shown, view.key.tag, readCounted, parts);
  if (isRefusal(read)) return withGroup(read, view.key.group);
  record.asked(read.envelope.model);
  const model = modelFor(view, read.envelope.model, parts.settings().catalog);
  if (isRefusal(model)) return model;
  const asked = countedOf(clientRequest(protocol, read));
  const needed = read.stored?.needed;
  const keeping = model.routes.find(({ stateful, upstream }) => stateful && upstream === needed?.upstream);
  const refused = countFault(asked, keeping);
  if (refused) return withGroup(refused, view.key.group);
  const group = parts.settings().catalog.groups.get(view.key.group) ?? { rules: [] };
  const native = await nativeCount(request, asked, { protocol, model, group }, record, parts);
  if (native !== "none") return isRefusal(native) ? named(native, model, view) : native;
  if (needed) {
    const param = asked.json.previous_response_id === undefined ? "input" : "previous_response_id";
    const detail = "It refers to data that its server keeps, and that server cannot count tokens.";
    return named(refusal("unsupported_parameter", { param, detail }), model, view);
  }
  const tokens = estimateInput(protocol, asked.json, model.mediaTokens);
  return { origin: "gateway", body: renderCount(protocol, tokens) };
}

/** The refusal with model and group, unless it names them already. */
function named(refused: Refusal, model: Model, { key }: KeyView): Refusal {
  return { ...refused, facts: { model: model.name, group: key.group, ...refused.facts } };
}

function clientRequest(protocol: CountedProtocol, { envelope, ...read }: ReadBody): ClientRequest {
  return { protocol, model: envelope.model, stream: false, ...read };
}

/** The upstream's count; its refusal of the caller's body; or `none` for any other reason. */
async function nativeCount(
  request: AcceptedRequest,
  asked: ClientRequest,
  { protocol, model, group }: { readonly protocol: CountedProtocol; readonly model: Model; readonly group: Ruled },
  record: RequestRecord,
  { nativeCounts, dispatcher, clock }: CountParts,
): Promise<Counted | Refusal | undefined | "none"> {
  const isNeeded = asked.stored?.needed !== undefined;
  const routes = routesFor(model.routes, asked).filter(
    (route) => route.protocol === protocol && (isNeeded || nativeCounts.mayAsk(route)),
  );
  if (routes.length === 0) return "none";
  if (!nativeCounts.enter()) return isNeeded ? ALL_BUSY : "none";
  try {
    const result = await dispatcher.run<Token>({
      protocol,
      routes,
      stream: false,
      pathSuffix: PATH_SUFFIXES[protocol],
      headers: forwardedHeaders(protocol, request.headers),
      deadlineMs: clock.monotonicMs() + NATIVE_COUNT_MS_MAX,
      signal: request.signal,
      encodeFor: (route) => encoded(asked, route, actionsFor([group, model, route], route.protocol)),
      inspector,
    });
    record.dispatched(result.attempts);
    for (const { upstream, model: upstreamModel, outcome } of result.attempts) {
      if (isLasting(outcome)) nativeCounts.failed({ upstream, upstreamModel });
    }
    return resultOf(result, asked);
  } finally {
    nativeCounts.leave();
  }
}

/**
 * The operator's rules that apply to a count: what they remove, and what they add for the model to read. Rules that set
 * a member are only for the model path, because a count endpoint refuses most members.
 */
const COUNTED_RULES: ReadonlySet<RuleAction["kind"]> = new Set(["drop", "system", "strip_attribution"]);

function encoded(asked: ClientRequest, route: Route, actions: readonly RuleAction[]): AttemptRequest<Token> | Refusal {
  const target = { protocol: route.protocol, systemRole: route.capabilities.systemRole };
  const counted = actions.filter(({ kind }) => COUNTED_RULES.has(kind));
  const plain = encodeCount(asked, route);
  if (isRefusal(plain)) return plain;
  const body = rewriteBody(plain, target, counted, plain === asked.body ? asked.scan : undefined);
  return { body, headers: headerEdits(actions), token: { body: undefined } };
}

/** Outcomes that the next count on the same route would most likely have as well. */
function isLasting(outcome: string): boolean {
  return outcome !== "ok" && outcome !== "client_gone" && outcome !== "upstream_rejected";
}

/** As many counts as allowed are under way at upstreams. After the longest time of a count there is room. */
const ALL_BUSY = refusal("upstream_rate_limit", {}, { retryAfterS: Math.ceil(NATIVE_COUNT_MS_MAX / MS_PER_S) });

function resultOf(result: Answered<Token> | Unanswered, asked: ClientRequest): Counted | Refusal | undefined | "none" {
  if (result.answered) return result.token.body ? { origin: "upstream", body: result.token.body } : "none";
  if (result.clientGone) return undefined;
  const { refusal: refused, attempts } = result;
  if (asked.stored?.needed) return cannotCount(attempts) ? "none" : refusedBesideStored(refused, attempts, asked);
  // What an upstream refuses in this body, it would also refuse in the request itself, so the client should get the
  // refusal.
  return refused.cause === "upstream_rejected" ? refused : "none";
}

/** Whether the upstream has no such endpoint, or answers with something else: trying again would not help. */
function cannotCount(attempts: readonly AttemptRecord[]): boolean {
  const last = attempts.at(-1);
  // A 404 may also be about an item that it does not keep.
  if (last === undefined || last.outcome === "upstream_rejected") return false;
  return last.status === 404 || last.status === 405 || last.outcome === "upstream_invalid";
}

interface Token {
  body: Uint8Array | undefined;
}

const STREAMED = new Error("a count is never streamed");

const inspector: Inspector<Token> = {
  chunk() {
    throw STREAMED;
  },
  end() {
    throw STREAMED;
  },
  whole(token, body) {
    if (!isCount(body)) return { cause: "upstream_invalid", code: undefined, reason: "the reply is not a count" };
    token.body = body;
    return "accept";
  },
};

/*
 * Decides which counts are worth asking an upstream for. A client sends 25 of them at once and waits for all. So only a
 * few run at the same time, and a route that could not count is skipped for a while: the estimate is always available.
 */

/** Concurrent counts at upstreams, per process: they use slots that model requests need more. */
export const NATIVE_COUNTS_MAX = 8;

/** How long a route that could not count is skipped. */
export const COUNT_REST_MS = 30_000;

/** Maximum of skipped routes; there are fewer unless the configuration is reloaded again and again. */
const PAUSED_MAX = 1_000;

/** A route, by the names that both sides of dispatch know. */
interface CountedRoute {
  readonly upstream: string;
  readonly upstreamModel: string;
}

export class NativeCounts {
  readonly #clock: Clock;
  readonly #pausedUntilMs = new Map<string, number>();
  #running = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one of the slots. @returns whether there was one; if so, `leave` must follow exactly once. */
  enter(): boolean {
    if (this.#running >= NATIVE_COUNTS_MAX) return false;
    this.#running += 1;
    return true;
  }

  leave(): void {
    this.#running -= 1;
  }

  mayAsk(route: CountedRoute): boolean {
    const untilMs = this.#pausedUntilMs.get(keyOf(route));
    return untilMs === undefined || this.#clock.monotonicMs() >= untilMs;
  }

  /** The route gave no count. */
  failed(route: CountedRoute): void {
    if (this.#pausedUntilMs.size >= PAUSED_MAX) this.#pausedUntilMs.clear();
    this.#pausedUntilMs.set(keyOf(route), this.#clock.monotonicMs() + COUNT_REST_MS);
  }
}

function keyOf({ upstream, upstreamModel }: CountedRoute): string {
  return JSON.stringify([upstream, upstreamModel]);
}
