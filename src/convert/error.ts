/** Which protocol renders an error: one row a protocol. */
import type { ErrorAnswer } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import { renderError as chat } from "./chat/error.ts";
import { renderError as messages } from "./messages/error.ts";
import { renderError as responses } from "./responses/error.ts";

const RENDERERS: Readonly<Record<Protocol, (answer: ErrorAnswer, requestId: string) => string>> = {
  chat,
  messages,
  responses,
};

/**
 * The JSON body of an answer that is not 2xx, in the client's protocol's own shape.
 * @param requestId as printed in `x-request-id`.
 */
export function renderError(protocol: Protocol, answer: ErrorAnswer, requestId: string): string {
  return RENDERERS[protocol](answer, requestId);
}
