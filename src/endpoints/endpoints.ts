/**
 * The endpoints besides the three model paths. They need a valid key and cost nothing: no hold, no charge, independent
 * of limits and funds. The exception is `compact`, which sends requests to a model and follows the model path.
 */

import { randomBytes } from "node:crypto";
import { UNPROVEN_BYTES_MAX } from "../accept/body.ts";
import { readEnvelopeInTurns } from "../accept/envelope.ts";
import { type AcceptedRequest, type ConsoleVisit, createListener, type Listener } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import { readKeyView } from "../admit/key-view.ts";
import { storeRefusal } from "../admit/refused.ts";
import type { OwnerConsole } from "../console/owner/owner.ts";
import { noCompaction, openCompaction } from "../convert/responses/compact.ts";
import type { RequestRecord } from "../request/record.ts";
import { presentedKey, refuseBadKey, render } from "../request/refuse.ts";
import type { ModelEndpoint, PipelineParts } from "../request/run.ts";
import { serveModel } from "../request/serve.ts";
import type { Store } from "../store/contract.ts";
import { addressBits } from "../store/limits/address-bits.ts";
import type { KeyView } from "../store/records.ts";
import type { Log } from "../telemetry/log.ts";
import { answerOf, isRefusal, type Refusal, refusal } from "../values/errors.ts";
import { pooled, type WellFormedKey } from "../values/key.ts";
import { errorStack } from "../values/program/error-text.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { newRequestId } from "../values/request-id.ts";
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { type CountParts, countTokens, NativeCounts } from "./count-tokens.ts";
import { explainOwn } from "./explain/questions.ts";
import { asAnthropicModel, asAnthropicPage, asOpenAiList, asOpenAiModel, modelsFor } from "./models.ts";
import { SideRates } from "./rate.ts";
import { askStored, deletedAnswer, type HoldRoom, type NotFound } from "./stored-responses.ts";
import { ownUsage, type UsageParts } from "./usage.ts";

/** What only these endpoints need. */
type SideParts = PipelineParts & CountParts & UsageParts & { readonly sideRates: SideRates };

/** One request on its way. */
interface SideRun {
  readonly request: AcceptedRequest;
  readonly reply: Reply;
  readonly record: RequestRecord;
  /** The protocol in whose format the answer is written. */
  readonly shape: Protocol;
}

/** An answer that is ready to be sent. */
interface SideAnswer {
  readonly status: number;
  readonly origin: "gateway" | "upstream";
  readonly body: Uint8Array;
}

/** Serves a request on a side endpoint. Never rejects: a defect becomes a 500. */
async function serveSide(request: AcceptedRequest, reply: Reply, parts: SideParts): Promise<void> {
  const { route } = request;
  if (route.kind === "side" && route.name === "compact") {
    return serveModel(route.protocol, request, reply, parts, COMPACT);
  }
  const record = parts.recorder.begin({
    requestId: reply.requestId,
    frontRequest: reply.frontRequest,
    protocol: "side",
    endpoint: route.kind === "side" ? route.name : route.kind,
    receivedAtMs: request.receivedAtMs,
  });
  const run: SideRun = { request, reply, record, shape: shapeOf(request) };
  try {
    const answer = await answerTo(run, parts);
    if (isRefusal(answer)) refuse(run, answer, parts);
    else if (answer) send(run, answer);
  } catch (error) {
    record.crashed(error);
    refuse(run, refusal("internal"), parts);
  } finally {
    request.forgetBody();
    await reply.finished;
    record.finish();
  }
}

/** SDKs of all protocols read the catalog at one path; the version header shows which of them asks. */
function shapeOf({ route, protocol, headers }: AcceptedRequest): Protocol {
  return route.kind === "models" && headers.has("anthropic-version") ? "messages" : protocol;
}

/** The answer, the refusal to send instead, or undefined if the client has disconnected. */
async function answerTo(run: SideRun, parts: SideParts): Promise<SideAnswer | Refusal | undefined> {
  const { request, record } = run;
  const { route } = request;
  const key = presentedKey(request, parts);
  if (isRefusal(key)) return key;
  const view = await keyView(key, request, parts);
  if (isRefusal(view)) return view;
  record.keyKnown(view.key, key);
  if (route.kind === "model") throw new Error("the model paths are no side endpoints");
  const tooOften = parts.sideRates.ask(route.kind === "models" ? "models" : route.name, view.key.id);
  if (tooOften) return tooOften;
  if (route.kind === "models") return json(models(run, route.id, view, parts));
  if (route.name === "usage")
    return json(await fromStore(() => ownUsage(view, new URLSearchParams(request.query), parts)));
  if (route.name === "stored_response") return storedResponse(run, view, parts);
  const body = await request.readBody(undefined, parts.overload.roomFor(key.tag));
  record.bodyRead();
  if (isRefusal(body)) return body;
  // The body takes as much memory as on the model path, so the request counts for its account when memory is short.
  const leave = parts.overload.enter(key);
  if (isRefusal(leave)) return leave;
  try {
    if (route.name === "explain") return await explanation(request, body, view, parts);
    const protocol = route.name === "count_tokens" ? "messages" : "responses";
    const counted = await countTokens(protocol, { request, body }, view, record, parts);
    return counted === undefined || isRefusal(counted) ? counted : { status: 200, ...counted };
  } finally {
    leave();
  }
}

/** What would happen to the body if it were sent. A body that cannot be read is refused as it would be then. */
async function explanation(request: AcceptedRequest, body: Uint8Array, view: KeyView, parts: SideParts) {
  return json(await fromStore(() => explainOwn(view, request, body, { ...parts, accounts: parts.usage })));
}

function models({ request, shape }: SideRun, id: string | undefined, view: KeyView, parts: SideParts) {
  const query = new URLSearchParams(request.query);
  // Codex requests its own list, whose entries carry prompts and tool settings that replace its built-in ones. The
  // gateway has none of these, and incomplete entries stop Codex at its start. After a 404, it uses its built-in ones.
  if (query.has("client_version")) {
    return refusal("unknown_path", { detail: "This gateway has no model list in the format of this client." });
  }
  const usable = modelsFor(view, parts.settings().catalog);
  const anthropic = shape === "messages";
  if (id === undefined) return anthropic ? asAnthropicPage(usable, query) : asOpenAiList(usable);
  const model = usable.find((one) => one.name === id);
  if (!model) return refusal("unknown_model", { model: id, group: view.key.group });
  return anthropic ? asAnthropicModel(model) : asOpenAiModel(model);
}

function json(answer: object | Refusal): SideAnswer | Refusal {
  if (isRefusal(answer)) return answer;
  return { status: 200, origin: "gateway", body: Buffer.from(JSON.stringify(answer)) };
}

async function storedResponse(
  run: SideRun,
  view: KeyView,
  parts: SideParts,
): Promise<SideAnswer | Refusal | undefined> {
  const hold = roomUntilSent(view, run, parts);
  const found = await askStored(run.request, view, run.record, { ...parts, hold });
  if (found === "unknown" || found === "gone") return unknownResponse(run, found);
  if (found === undefined || isRefusal(found)) return found;
  const refused = hold(found.length);
  const { method, path } = run.request;
  if (refused && method === "GET") return refused;
  // What DELETE and /cancel have done must not be answered as refused. Some servers answer DELETE with the whole response.
  const isReplaced = refused && method === "DELETE";
  return { status: 200, origin: "upstream", body: isReplaced ? deletedAnswer(path.split("/")[3] ?? "") : found };
}

/**
 * A client can ask for a large answer any number of times at no cost and be slow to read it, so it takes room like a
 * large body of a request.
 * @returns takes room for so many bytes until the reply is finished, or gives a refusal if there is none.
 */
function roomUntilSent({ key }: KeyView, { reply }: SideRun, { overload }: SideParts): HoldRoom {
  const room = overload.roomFor(key.tag);
  void reply.finished.then(() => room.free());
  return (bytes) => (bytes <= UNPROVEN_BYTES_MAX || reply.gone ? undefined : room.hold(bytes));
}

const NOT_FOUND_REMEDIES: Readonly<Record<NotFound, string>> = {
  unknown:
    "Nothing is kept under this id for this account. Only models of a stateful upstream (an operator's setting) keep responses. Otherwise, send store: false and the whole history with each request.",
  gone: "The server that kept it no longer serves this model, or no longer keeps responses. Send the whole history with each request.",
};

/**
 * No response is found under the id. The error has the format of the protocol's own server, which clients can handle,
 * with the members that every error of the gateway has.
 */
function unknownResponse({ request, reply, record }: SideRun, why: NotFound): SideAnswer {
  const id = request.path.split("/")[3] ?? "";
  const answer = answerOf(refusal("unknown_path"));
  const { status, cause } = answer;
  record.refused(answer, status);
  const error = {
    message: `Response with id '${id}' not found.`,
    type: "invalid_request_error",
    param: null,
    code: null,
    cause,
    remedy: NOT_FOUND_REMEDIES[why],
    request_id: reply.requestId,
  };
  return { status, origin: "gateway", body: Buffer.from(JSON.stringify({ error })) };
}

/** Reads what the presented key may see. */
async function keyView(key: WellFormedKey, request: AcceptedRequest, parts: PipelineParts): Promise<KeyView | Refusal> {
  return parts.overload.at("headers", key) ?? readKeyView(key, addressBits(request.clientAddress ?? ""), parts.admit);
}

/** What was read from the store, or a refusal if the store does not answer. */
async function fromStore<T>(read: () => Promise<T | Refusal>): Promise<T | Refusal> {
  try {
    return await read();
  } catch (error) {
    return storeRefusal(error);
  }
}

function send({ reply, record, shape }: SideRun, { status, origin, body }: SideAnswer): void {
  if (reply.gone) return;
  record.answered(status);
  const headers = { "content-type": "application/json", "x-tollgate-origin": origin };
  reply.whole(status, { ...headers, ...idHeader(shape, reply.requestId) }, body);
}

function refuse({ request, reply, record, shape }: SideRun, refused: Refusal, parts: SideParts): void {
  if (reply.gone || reply.opened) return;
  const limited = refuseBadKey(refused, request, parts.failedKeys);
  const unavailableStatus = parts.settings().upstreamUnavailableStatus;
  const { answer, status, headers, body } = render(limited, shape, reply.requestId, unavailableStatus);
  record.groupKnown(refused.facts.group, request.key);
  record.refused(answer, status);
  reply.whole(status, { ...headers, ...idHeader(shape, reply.requestId) }, body);
}

/** The header in which the SDK looks for the request's id; the path alone does not always determine it. */
function idHeader(shape: Protocol, requestId: string): Record<string, string> {
  const name = PROTOCOLS[shape].requestIdHeader;
  return name === undefined ? {} : { [name]: requestId };
}

/*
 * How `POST /v1/responses/compact` differs from `POST /v1/responses`. It is admitted, held, charged and relayed in the
 * same way, but at another path of the upstream, never streamed, and without an output limit.
 */

const COMPACT: ModelEndpoint = {
  pathSuffix: "/compact",
  open: openCompaction,
  async read(protocol, body) {
    const read = await readEnvelopeInTurns(protocol, body);
    if (isRefusal(read)) return read;
    if (read.envelope.stream) {
      return refusal("unsupported_parameter", { param: "stream", detail: "A compaction is not streamed." });
    }
    // No member limits the output, so the hold covers the most that the model can produce.
    const limit = { field: "max_output_tokens", value: Number.MAX_SAFE_INTEGER, implied: true };
    return { ...read, envelope: { ...read.envelope, limit } };
  },
  refused(refused, attempts) {
    const status = attempts.at(-1)?.status;
    return status === 404 || status === 405 ? noCompaction() : refused;
  },
};

/* The public listener with its pipeline, and how it is drained. */

/** After the deadline of a drain, how long a stream's proper end may take to reach its client. */
const CUT_GRACE_MS = 2_000;
/** How long an immediate stop waits until what it has ended is charged and handed to the kernel. */
const STOP_GRACE_MS = 1_000;
/** For request ids, which are not secret. */
const RANDOM = pooled(randomBytes);

/**
 * @param shared whether other processes listen at the same address, which the parent has opened for all.
 * @param owners the owners' console; without it there is none.
 */
export function publicListener(
  parts: PipelineParts,
  store: Store,
  log: Log,
  shared: boolean,
  owners: OwnerConsole | undefined,
): Listener {
  const { clock } = parts;
  const settings = parts.settings();
  const side = { ...parts, nativeCounts: new NativeCounts(clock), usage: store, sideRates: new SideRates(clock) };
  const rendered = (refused: Refusal, protocol: Protocol, requestId: string) =>
    render(refused, protocol, requestId, parts.settings().upstreamUnavailableStatus);
  const refuse = (refused: Refusal, protocol: Protocol, reply: Reply) => {
    const { requestId, frontRequest } = reply;
    const { answer, status, headers, body } = rendered(refused, protocol, requestId);
    const record = parts.recorder.begin({ requestId, frontRequest, protocol, receivedAtMs: clock.monotonicMs() });
    record.refused(answer, status);
    record.finish();
    if (!reply.gone) reply.whole(status, headers, body);
  };
  return createListener(
    {
      address: settings.listen,
      shared,
      bodyBytesMax: settings.bodyBytesMax,
      trustProxy: settings.trustProxy,
      corsOrigins: settings.corsOrigins,
      siteUrl: () => parts.settings().site,
      consolePath: owners && settings.console?.path,
      consoleUrl: settings.console && `${settings.console.publicUrl ?? ""}${settings.console.path}/`,
      clock,
      newRequestId: () => newRequestId(clock.wallMs(), RANDOM),
      connectionGuard: parts.overload.connectionGuard,
    },
    {
      onRequest: (request: AcceptedRequest, reply: Reply) =>
        request.route.kind === "model"
          ? serveModel(request.route.protocol, request, reply, parts)
          : serveSide(request, reply, side),
      ...(owners && { onConsole: (visit: ConsoleVisit, reply: Reply) => visitConsole(visit, reply, owners, refuse) }),
      onRefusal: refuse,
      renderRefusal: rendered,
      onUnnamedFront: (peer) =>
        log.warn(
          { event: "front_not_trusted", from: peer },
          `X-Forwarded-For of a request from ${peer} was ignored: if this is your front, add it (trust_proxy: ` +
            `[${peer}]). Otherwise all its clients count as one client, and the bad keys of one block the others`,
        ),
      onCrash: (error) => log.error({ reason: errorStack(error) }, "a request failed on a defect of the gateway"),
    },
  );
}

const NO_BYTES = new Uint8Array(0);

/** Passes a request on to the console, which knows nothing of connections. */
async function visitConsole(
  visit: ConsoleVisit,
  reply: Reply,
  owners: OwnerConsole,
  refuse: (refused: Refusal, protocol: Protocol, reply: Reply) => void,
): Promise<void> {
  const { method, target, headers, clientAddress, throughFront } = visit;
  const hasBody = headers.has("transfer-encoding") || (headers.get("content-length") ?? "0") !== "0";
  const body = hasBody ? await visit.readBody() : NO_BYTES;
  if (isRefusal(body)) return refuse(body, "chat", reply);
  const answer = await owners({
    method,
    target,
    headers: joined(headers.entries()),
    body,
    clientAddress,
    throughFront,
  });
  if (!reply.gone) reply.whole(answer.status, answer.headers, answer.body);
}

/** One value for each header (RFC 9110, section 5.3): if a header was sent twice, neither value is used alone. */
function joined(entries: Iterable<readonly [string, string]>): Record<string, string> {
  const all = new Map<string, string>();
  for (const [name, value] of entries) {
    const before = all.get(name);
    all.set(name, before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`);
  }
  return Object.fromEntries(all);
}

/**
 * ARCHITECTURE.md promise 12: the front has been notified; late requests are still served, then running ones finish.
 */
export async function drainListener(
  listener: Listener,
  settings: Settings,
  clock: Clock,
  cut: () => void,
): Promise<void> {
  listener.lameDuck();
  await new Promise<void>((resolve) => clock.after(settings.drain.lameDuckMs, resolve));
  const closed = listener.close();
  let cancel = clock.after(settings.drain.deadlineMs, () => {
    cut();
    // Streams that have not ended properly by now have a client that does not read.
    cancel = clock.after(CUT_GRACE_MS, () => listener.destroy());
  });
  await closed;
  cancel();
}

/**
 * Ends everything that runs, and closes the listener. A whole answer whose charge is being written, the ends of cut
 * streams, and the refusals of all other requests are sent first: nothing may be charged and then not sent.
 */
export async function stopListener(listener: Listener, cut: () => void): Promise<void> {
  // Before anything is awaited: what is cut here must not count as left by its client.
  cut();
  await listener.answered(STOP_GRACE_MS);
  listener.destroy();
  await listener.close();
}
