/**
 * The endpoints beside the three model paths. They need a good key and cost nothing: no hold, no
 * charge, outside of limits and funds. The one that asks a model for something, `compact`, goes the way of the model path.
 */
import type { AcceptedRequest } from "../accept/listener.ts";
import type { Reply } from "../accept/reply.ts";
import { readKeyView, storeRefusal } from "../admit/key-view.ts";
import { render } from "../request/answer.ts";
import type { RequestRecord } from "../request/record.ts";
import { presentedKey, refuseBadKey } from "../request/refuse.ts";
import type { PipelineParts } from "../request/run.ts";
import { serveModel } from "../request/serve.ts";
import type { KeyView } from "../store/records.ts";
import { answerOf, isRefusal, type Refusal, refusal } from "../values/errors.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { COMPACT } from "./compact.ts";
import { type CountParts, countTokens } from "./count-tokens.ts";
import { explainOwn } from "./explain/questions.ts";
import { asAnthropicModel, asAnthropicPage, asOpenAiList, asOpenAiModel, modelsFor } from "./models.ts";
import type { SideRates } from "./rate.ts";
import { ownUsage, type UsageParts } from "./usage.ts";

/** What only these endpoints need. */
type SideParts = PipelineParts & CountParts & UsageParts & { readonly sideRates: SideRates };

/** One request on its way. */
interface SideRun {
  readonly request: AcceptedRequest;
  readonly reply: Reply;
  readonly record: RequestRecord;
  /** The protocol in whose shape the answer is written. */
  readonly shape: Protocol;
}

/** An answer that is ready to be sent. */
interface SideAnswer {
  readonly status: number;
  readonly origin: "gateway" | "upstream";
  readonly body: Uint8Array;
}

/** Serves a request on a side endpoint. Never rejects: a defect becomes a 500. */
export async function serveSide(request: AcceptedRequest, reply: Reply, parts: SideParts): Promise<void> {
  const { route } = request;
  if (route.kind === "side" && route.name === "compact") {
    return serveModel(route.protocol, request, reply, parts, COMPACT);
  }
  const record = parts.recorder.begin({
    requestId: reply.requestId,
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
    await reply.finished;
    record.finish();
  }
}

/** The catalog is read by the SDKs of all protocols at one path; the version header shows which of them asks. */
function shapeOf({ route, protocol, headers }: AcceptedRequest): Protocol {
  return route.kind === "models" && headers.has("anthropic-version") ? "messages" : protocol;
}

/** The answer, the refusal to send in its place, or undefined when the client has left. */
async function answerTo(run: SideRun, parts: SideParts): Promise<SideAnswer | Refusal | undefined> {
  const { request, record } = run;
  const { route } = request;
  const view = await keyView(request, parts);
  if (isRefusal(view)) return view;
  record.groupKnown(view.key.group);
  if (route.kind === "model") throw new Error("the model paths are no side endpoints");
  const tooOften = parts.sideRates.ask(route.kind === "models" ? "models" : route.name, view.key.id);
  if (tooOften) return tooOften;
  if (route.kind === "models") return json(models(run, route.id, view, parts));
  if (route.name === "usage")
    return json(await fromStore(() => ownUsage(view, new URLSearchParams(request.query), parts)));
  if (route.name === "explain") return explanation(run, view, parts);
  if (route.name === "stored_response") return unknownResponse(run);
  const protocol = route.name === "count_tokens" ? "messages" : "responses";
  const counted = await countTokens(protocol, request, view, record, parts);
  return counted === undefined || isRefusal(counted) ? counted : { status: 200, ...counted };
}

/** What would become of the body if it were sent; a body that cannot be read is refused as it would be there. */
async function explanation({ request, record }: SideRun, view: KeyView, parts: SideParts) {
  const body = await request.readBody();
  record.bodyRead();
  if (isRefusal(body)) return body;
  return json(await fromStore(() => explainOwn(view, request, body, { ...parts, accounts: parts.usage })));
}

function models({ request, shape }: SideRun, id: string | undefined, view: KeyView, parts: SideParts) {
  const query = new URLSearchParams(request.query);
  // Codex asks for its own list, whose entries carry prompts and tool settings that replace its built-in ones. We have
  // none of these, and half of an entry stops it at its start; at a 404 it goes on with what it has built in.
  if (query.has("client_version")) {
    return refusal("unknown_path", { detail: "This gateway has no list of models in the form of this client." });
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

/**
 * No response is kept here, so none is found: said as the protocol's own server says it, which clients know how to take,
 * with the members that every error of ours has.
 */
function unknownResponse({ request, reply, record }: SideRun): SideAnswer {
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
    remedy: "This gateway keeps no responses: send store: false and the whole history with each request.",
    request_id: reply.requestId,
  };
  return { status, origin: "gateway", body: Buffer.from(JSON.stringify({ error })) };
}

/** Reads what the presented key may see. */
async function keyView(request: AcceptedRequest, parts: PipelineParts): Promise<KeyView | Refusal> {
  const key = presentedKey(request, parts);
  if (isRefusal(key)) return key;
  return parts.overload.at("headers", key) ?? readKeyView(key, parts.admit);
}

/** What is read from the store, or the refusal that says that it does not answer. */
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
  record.groupKnown(refused.facts.group);
  record.refused(answer, status);
  reply.whole(status, { ...headers, ...idHeader(shape, reply.requestId) }, body);
}

/** The header in which the shape's SDK looks for the request's id; the path alone does not always show it. */
function idHeader(shape: Protocol, requestId: string): Record<string, string> {
  const name = PROTOCOLS[shape].requestIdHeader;
  return name === undefined ? {} : { [name]: requestId };
}
