/**
 * `POST /v1/responses/compact`: an upstream shortens a conversation into one encrypted item. Only an upstream that speaks
 * the protocol can do it, and only it can read the item afterwards; the bytes pass as on the model path.
 */
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import type { OpenExchange } from "../exchange.ts";
import { openPassthrough } from "../passthrough/passthrough.ts";

/** The refusal where there is no such thing. A 404 that names a model would be read as one about the model. */
export function noCompaction(): Refusal {
  const detail = "Compaction is not offered here: summarise the conversation with a request of your own.";
  return refusal("unknown_path", { model: undefined, group: undefined, detail });
}

/** Opens a compaction on a route, or refuses routes of other protocols and output limits, which it cannot be given. */
export const openCompaction: OpenExchange = (request, route, permitted, context) => {
  if (route.protocol !== "responses") {
    return noCompaction();
  }
  if (permitted.outputLimit !== undefined) {
    return refusal("insufficient_balance", {
      detail: "The balance does not cover a compaction, whose length cannot be limited.",
    });
  }
  // This endpoint takes neither `store` nor anything else that is spliced into a request that makes a response.
  const asked = { ...request, json: { ...request.json, store: false } };
  const exchange = openPassthrough(asked, route, permitted, context);
  // The reply names no model, so none is to be put in its place.
  const unnamed = openPassthrough(asked, { ...route, upstreamModel: asked.model }, permitted, context);
  if (isRefusal(exchange) || isRefusal(unnamed)) return exchange;
  return {
    request: exchange.request,
    translation: undefined,
    whole: (body) => unnamed.whole(body),
    stream: () => unnamed.stream(),
  };
};
