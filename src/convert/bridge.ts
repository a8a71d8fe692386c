/** Which conversion an attempt needs: none but splices where both sides speak one protocol, else a translation. */
import { type Refusal, refusal } from "../values/errors.ts";
import type { Exchange, OpenExchange } from "./exchange.ts";
import { openPassthrough } from "./passthrough.ts";

/** Opens the exchange of one attempt. */
export const openExchange: OpenExchange = (request, route, permitted, context): Exchange | Refusal => {
  if (route.protocol === request.protocol) return openPassthrough(request, route, permitted, context);
  return refusal("untranslatable", {
    model: request.model,
    detail: `The model's server speaks the ${route.protocol} protocol.`,
  });
};
