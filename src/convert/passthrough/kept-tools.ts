/**
 * Hosted tools that an item of the input offers, on a route whose upstream keeps the response
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). The upstream keeps the item too, and offers the tool in every
 * request that continues the response. Such a request does not name the tool, so no client would pay for its calls, and
 * its model may have no price for them.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, objectOf } from "../../values/json-object.ts";
import { hostedType, toolsIn } from "../../values/members/hosted-tools.ts";
import type { ClientRequest } from "../exchange.ts";
import { mayBeReferredTo } from "../responses/references/sealing.ts";
import type { StoredRoute } from "../responses/stored/request.ts";

/** The refusal of a hosted tool that later requests would have without offering it; undefined: none. */
export function refusedKeptTool({ protocol, model, json }: ClientRequest, route: StoredRoute): Refusal | undefined {
  if (protocol !== "responses" || !route.stateful || !mayBeReferredTo(json)) return undefined;
  for (const [at, item] of arrayOf(json.input).entries()) {
    const { tools, tool } = objectOf(item) ?? {};
    if (tools === undefined && tool === undefined) continue;
    const hosted = toolsIn([tools, tool]).map((one) => hostedType(protocol, one));
    const type = hosted.find((one) => one !== undefined);
    if (type === undefined) continue;
    const detail = `The server would keep the hosted tool "${type}" with this item and offer it in later requests, which do not name it.`;
    const remedy = 'Offer it in "tools" of each request that may use it, or send store: false.';
    return refusal("unsupported_parameter", { model, param: `input[${at}].tools`, detail, remedy });
  }
  return undefined;
}
