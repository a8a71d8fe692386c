/** The endpoints beside the three model paths: never charged, outside of limits. */
import type { AcceptedRequest } from "./accept/listener.ts";
import type { Reply } from "./accept/reply.ts";
import { asAnthropicModel, asAnthropicPage, asOpenAiList, asOpenAiModel, modelsFor } from "./models.ts";
import type { PipelineParts } from "./pipeline.ts";
import { type Refuse, refuseBadKey } from "./refuse.ts";
import { type KeyView, StoreError } from "./store/contract.ts";
import { isRefusal, type Refusal, refusal } from "./values/errors.ts";

/** Serves `GET /v1/models`, `GET /v1/models/{id}` and what the stateless gateway has nothing to say about. */
export async function serveSide(
  request: AcceptedRequest,
  reply: Reply,
  parts: PipelineParts,
  refuse: Refuse,
): Promise<void> {
  const view = await keyView(request, parts);
  if (isRefusal(view)) return refuse(refuseBadKey(view, request, parts.failedKeys));
  const answer = answerTo(request, view, parts);
  if (isRefusal(answer)) return refuse(answer);
  const headers = { "content-type": "application/json", "x-tollgate-origin": "gateway" };
  reply.whole(200, headers, Buffer.from(JSON.stringify(answer)));
}

function answerTo(request: AcceptedRequest, view: KeyView, parts: PipelineParts): object | Refusal {
  const { route } = request;
  if (route.kind === "models") return models(request, route.id, view, parts);
  if (route.kind === "side" && route.name === "stored_response") {
    return refusal("unknown_path", { detail: "This gateway keeps no responses: send store: false and the history." });
  }
  return refusal("unknown_path", { detail: "This endpoint is not offered here." });
}

function models(
  request: AcceptedRequest,
  id: string | undefined,
  view: KeyView,
  parts: PipelineParts,
): object | Refusal {
  const usable = modelsFor(view, parts.settings().catalog);
  const anthropic = request.headers.has("anthropic-version");
  if (id === undefined) {
    return anthropic ? asAnthropicPage(usable, new URLSearchParams(request.query)) : asOpenAiList(usable);
  }
  const model = usable.find((one) => one.name === id);
  if (!model) return refusal("unknown_model", { model: id, group: view.key.group });
  return anthropic ? asAnthropicModel(model) : asOpenAiModel(model);
}

/** Reads what the presented key may see. */
export async function keyView(request: AcceptedRequest, parts: PipelineParts): Promise<KeyView | Refusal> {
  const { key, clientAddress } = request;
  if (isRefusal(key)) return key;
  if (key === "noise" || !parts.failedKeys.mayLookUp(clientAddress) || parts.admit.unknownKeys.has(key.hash)) {
    return refusal("unknown_key");
  }
  try {
    const view = await parts.admit.store.readKey(key.tag, key.hash);
    if (!view) {
      parts.admit.unknownKeys.add(key.hash);
      return refusal("unknown_key");
    }
    return view.key.status === "revoked" ? refusal("revoked_key") : view;
  } catch (error) {
    if (error instanceof StoreError) return refusal(error.kind === "older" ? "store_older" : "store_unavailable");
    throw error;
  }
}
