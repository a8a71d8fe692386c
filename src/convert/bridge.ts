/**
 * Chooses the conversion of an attempt: passthrough if client and upstream speak the same protocol, else translation.
 */

import { isRefusal, type Refusal } from "../values/errors.ts";
import type { Exchange, OpenExchange } from "./exchange.ts";
import { openPassthrough } from "./passthrough/passthrough.ts";
import { openTranslation } from "./translate/translate.ts";
import { StreamOrWhole } from "./whole-as-stream.ts";

/** Opens the exchange of one attempt. */
export const openExchange: OpenExchange = (request, route, permitted, context): Exchange | Refusal => {
  const open = route.protocol === request.protocol ? openPassthrough : openTranslation;
  const exchange = open(request, route, permitted, context);
  if (isRefusal(exchange)) return exchange;
  return {
    request: exchange.request,
    translation: exchange.translation,
    whole: (body) => exchange.whole(body),
    stream: () => new StreamOrWhole(route.protocol, exchange.stream()),
  };
};
