/** Chooses the error renderer of each protocol. */
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
 * The JSON body of an answer that is not 2xx, in the shape of the client's protocol.
 * @param requestId the value of `x-request-id`.
 */
export function renderError(protocol: Protocol, answer: ErrorAnswer, requestId: string): string {
  return RENDERERS[protocol](answer, requestId);
}
