/** Reads what an upstream answers about a response that it keeps. */
import { parseReply } from "../../convert/reply/parse.ts";
import type { AttemptRequest, Inspector } from "../../dispatch/ask.ts";
import { type JsonObject, parseObject } from "../../values/json-object.ts";

export interface FoundReply {
  reply: { readonly body: Uint8Array; readonly json: JsonObject } | undefined;
}

const NO_BODY = new Uint8Array();
const STREAMED = new Error("what is stored is never streamed");

/** The request has no body. */
export function requestForStored(): AttemptRequest<FoundReply> {
  return { body: NO_BODY, token: { reply: undefined } };
}

/** Whether a response is still being written (https://platform.openai.com/docs/api-reference/responses/object). */
export function isBeingWritten({ status }: JsonObject): boolean {
  return status === "queued" || status === "in_progress";
}

/** Accepts any JSON object. */
export const storedInspector: Inspector<FoundReply> = {
  chunk() {
    throw STREAMED;
  },
  end() {
    throw STREAMED;
  },
  whole(token, body) {
    const { json, fault } = parseReply(body, "responses", parseObject);
    if (fault) return fault;
    token.reply = { body, json };
    return "accept";
  },
};
