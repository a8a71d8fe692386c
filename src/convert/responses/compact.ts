/**
 * `POST /v1/responses/compact`: an upstream shortens a conversation to one encrypted item. Only an upstream of this
 * protocol can do it, and only that upstream can read the item afterwards. The bytes pass as on the model path.
 */
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import type { OpenExchange } from "../exchange.ts";
import { openPassthrough } from "../passthrough/passthrough.ts";

/** The refusal if compaction is not available. A 404 that names a model would be read as one about the model. */
export function noCompaction(): Refusal {
  const detail = "Compaction is not offered here. Summarize the conversation with a request of your own.";
  return refusal("unknown_path", { model: undefined, group: undefined, detail });
}

/**
 * Opens a compaction on a route. Refuses routes of other protocols, and output limits, which this endpoint does not
 * take.
 */
export const openCompaction: OpenExchange = (request, route, permitted, context) => {
  if (route.protocol !== "responses") {
    return noCompaction();
  }
  if (permitted.outputLimit !== undefined) {
    return refusal("insufficient_balance", {
      detail: "The balance does not cover a compaction, whose length cannot be limited.",
    });
  }
  // This endpoint takes neither `store` nor the other members that are spliced into an ordinary request.
  const asked = { ...request, json: { ...request.json, store: false } };
  const exchange = openPassthrough(asked, route, permitted, context);
  // The reply contains no model name to replace.
  const unnamed = openPassthrough(asked, { ...route, upstreamModel: asked.model }, permitted, context);
  if (isRefusal(exchange) || isRefusal(unnamed)) return exchange;
  return {
    request: exchange.request,
    translation: undefined,
    whole: (body) => unnamed.whole(body),
    stream: () => unnamed.stream(),
  };
};
