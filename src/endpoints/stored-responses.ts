/**
 * `GET`, `DELETE /v1/responses/{id}`, `POST .../cancel` and `GET .../input_items` for responses that a `stateful`
 * upstream keeps. They go only to that upstream, and only for the account that got the id. They cost nothing and are
 * limited like counts. The key's group and plan must still have the model
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import type { AcceptedRequest } from "../accept/listener.ts";
import { storedAnswer } from "../convert/responses/stored/reply.ts";
import { openStored, WrappedIds } from "../convert/responses/stored/stored.ts";
import type { AttemptRecord, DispatchAsk, Unanswered } from "../dispatch/ask.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { contextOf } from "../request/context.ts";
import type { RequestRecord } from "../request/record.ts";
import type { PipelineParts } from "../request/run.ts";
import { type FoundReply, isBeingWritten, requestForStored, storedInspector } from "../request/stored/found-reply.ts";
import type { KeyView } from "../store/records.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { StoredName } from "../values/members/stored.ts";
import { modelFor } from "./models.ts";

/** What a server answers to DELETE (https://platform.openai.com/docs/api-reference/responses/delete). @param id the client's. */
export function deletedAnswer(id: string): Uint8Array {
  return Buffer.from(JSON.stringify({ id, object: "response", deleted: true }));
}

/** Takes room for so many bytes of an answer; a refusal if there is none. */
export type HoldRoom = (bytes: number) => Refusal | undefined;

type StoredParts = Pick<PipelineParts, "settings" | "clock" | "sealing" | "dispatcher"> & { readonly hold: HoldRoom };

/** The maximum time of the upstream, which only looks up a response. */
const ANSWER_MS_MAX = 30_000;

/** Why nothing is found: `unknown` is about the id, `gone` about the server that kept the response. */
export type NotFound = "unknown" | "gone";

/**
 * Asks the upstream that keeps a response.
 * @returns the reply's body with the ids that the client knows; a refusal in the order of the model endpoint's;
 *   `unknown` for an id that does not exist, belongs to another account or was deleted; `gone` if no route leads to its
 *   server; undefined if the client disconnected.
 */
export async function askStored(
  { method, path, query, signal }: AcceptedRequest,
  view: KeyView,
  record: RequestRecord,
  parts: StoredParts,
): Promise<Uint8Array | Refusal | NotFound | undefined> {
  const context = contextOf(parts, view.key);
  const [, , , asked = "", action] = path.split("/");
  const name = openStored(asked, context);
  if (!name) return "unknown";
  record.asked(name.model);
  const model = modelFor(view, name.model, parts.settings().catalog);
  if (isRefusal(model)) return model;
  const route = model.routes.find(({ stateful, upstream }) => stateful && upstream === name.upstream);
  if (!route) return "gone";
  const wanted = queryFor(new URLSearchParams(query), (id) => openStored(id, context), name);
  if (isRefusal(wanted)) return wanted;
  const ofResponse = `/${encodeURIComponent(name.id)}`;
  const common: Omit<DispatchAsk<FoundReply>, "deadlineMs"> = {
    protocol: "responses",
    routes: [route],
    stream: false,
    readsInTurn: "by_client",
    readsFor: { account: view.key.tag, key: view.key.id },
    headers: [],
    signal,
    encodeFor: requestForStored,
    inspector: storedInspector,
  };
  // Of each question by itself: a change that its server makes must not be cut because the lookup before it took long.
  const deadlineMs = () => parts.clock.monotonicMs() + ANSWER_MS_MAX;
  let before: readonly AttemptRecord[] = [];
  if (method !== "GET") {
    // A server answers DELETE with a few words, so a large response can be deleted although there is no room for it.
    const hold = method === "DELETE" ? undefined : parts.hold;
    const lookup = { ...common, method: "GET", pathSuffix: ofResponse, deadlineMs: deadlineMs() } as const;
    const found = await lookedAt(parts.dispatcher, lookup, hold);
    if (found.refused !== "none") {
      record.dispatched(found.attempts);
      return found.refused;
    }
    before = found.attempts;
  }
  const result = await parts.dispatcher.run<FoundReply>({
    ...common,
    deadlineMs: deadlineMs(),
    method: method as "POST" | "GET" | "DELETE",
    pathSuffix: action === undefined ? ofResponse : `${ofResponse}/${action}`,
    query: wanted,
  });
  record.dispatched([...before, ...result.attempts]);
  if (result.answered) {
    const { reply } = result.token;
    if (!reply) throw new Error("an accepted reply was not read");
    const ids = new WrappedIds(name, context, { names: new Map([[asked, name]]) });
    return storedAnswer(reply.body, ids, name.model);
  }
  return notFoundOr(result);
}

/**
 * A client that deletes or cancels a response in the middle of its stream would end the stream without its count, and
 * keep what it has read (docs/decisions/stateful-upstreams-get-wrapped-ids.md). So the server is asked first. Servers
 * answer `/cancel` with the whole response, and a change that is done cannot be refused. So its room is taken before.
 * @returns `none` if the response is complete, undefined if the client disconnected; nothing of the response, which may be
 *   large and is not needed during the change.
 */
async function lookedAt(
  dispatcher: Dispatcher,
  ask: DispatchAsk<FoundReply>,
  hold: HoldRoom | undefined,
): Promise<{ readonly refused: Refusal | NotFound | "none" | undefined; readonly attempts: readonly AttemptRecord[] }> {
  const found = await dispatcher.run(ask);
  const { attempts } = found;
  if (!found.answered) return { refused: isTooLarge(found) ? NOT_SEEN_COMPLETE : notFoundOr(found), attempts };
  const { reply } = found.token;
  if (!reply) throw new Error("an accepted reply was not read");
  return { refused: isBeingWritten(reply.json) ? STILL_WRITTEN : (hold?.(reply.body.length) ?? "none"), attempts };
}

const STILL_WRITTEN = refusal("wrong_type", {
  param: "id",
  detail: "The response is still being written.",
  remedy: "Wait for its end; a client that needs no more of its stream can close the connection.",
});

/** A client can ask for a response that becomes too large to be read, such as for twenty images and then long thinking. */
const NOT_SEEN_COMPLETE = refusal("wrong_type", {
  param: "id",
  detail: "The response is too large for the gateway to see whether it is complete.",
  remedy: "Let your operator delete it at the model's server.",
});

function isTooLarge({ attempts }: Unanswered): boolean {
  return attempts.at(-1)?.askedFor === true;
}

function notFoundOr({ clientGone, attempts, refusal: refused }: Unanswered): Refusal | "unknown" | undefined {
  if (clientGone) return undefined;
  const status = attempts.at(-1)?.status;
  return status === 404 || status === 405 ? "unknown" : refused;
}

/** The query parameters that are passed on for a stored response. */
const PASSED = ["include", "include[]", "limit", "order"] as const;

function queryFor(
  query: URLSearchParams,
  open: (id: string) => StoredName | undefined,
  { upstream }: StoredName,
): string | Refusal {
  if (query.get("stream") === "true") {
    const detail =
      "A stored response is sent whole; only one that was created in the background could be streamed again.";
    return refusal("unsupported_parameter", { param: "stream", detail });
  }
  const wanted = new URLSearchParams();
  for (const name of PASSED) for (const value of query.getAll(name)) wanted.append(name, value);
  const after = query.get("after");
  if (after === null) return wanted.toString();
  const item = open(after);
  if (item?.upstream !== upstream) {
    return refusal("wrong_type", { param: "after", detail: "It is not the id of an item of this response." });
  }
  wanted.append("after", item.id);
  return wanted.toString();
}
