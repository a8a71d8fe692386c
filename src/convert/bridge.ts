/** Which conversion an attempt needs: none but splices where both sides speak one protocol, else a translation. */

import type { Refusal } from "../values/errors.ts";
import type { Exchange, OpenExchange } from "./exchange.ts";
import { openPassthrough } from "./passthrough/passthrough.ts";
import { openTranslation } from "./translate/translate.ts";

/** Opens the exchange of one attempt. */
export const openExchange: OpenExchange = (request, route, permitted, context): Exchange | Refusal => {
  const open = route.protocol === request.protocol ? openPassthrough : openTranslation;
  return open(request, route, permitted, context);
};
