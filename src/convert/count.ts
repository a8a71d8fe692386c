/**
 * The number of input tokens of a request, for the endpoints that only count: the upstream's own count if it has one,
 * else an estimate. Clients use estimates to decide when to compact their history; they are never billed.
 *
 * tokenx makes the estimate, in linear time: it weighs words, digits, punctuation and scripts against the tokenizer of
 * current models. An exact tokenizer in JavaScript was measured too and would block the event loop: 100 kB of one
 * repeated letter took it seven seconds. tokenx takes a few milliseconds for any text.
 */

import { estimateTokenCount } from "tokenx";
import type { MediaTokens } from "../values/catalog.ts";
import { isRefusal, type Refusal } from "../values/errors.ts";
import { arrayOf, type JsonObject, objectOf, parseObject } from "../values/json-object.ts";
import { decodeUtf8, spliceJson } from "../wire/json.ts";
import type { ClientRequest, RouteFacts } from "./exchange.ts";
import { withoutMadeFiles } from "./passthrough/made-files.ts";
import { withoutEnvelopes } from "./passthrough/own-envelopes.ts";
import { refusedState } from "./passthrough/request.ts";
import { withoutUnlisted } from "./passthrough/unlisted.ts";
import { hasTooManyNames } from "./reply/parse.ts";
import { type StoredRoute, storedSplices } from "./responses/stored/request.ts";

/** The protocols that have an endpoint for counting. */
export type CountedProtocol = "messages" | "responses";

/**
 * The most characters that are examined, which takes about 10 ms. A longer text is judged by samples of this total
 * size.
 */
const SAMPLED_CHARS_MAX = 65_536;
/** Number of samples. They are evenly spread, so that prose at the beginning does not decide for code at the end. */
const SAMPLES = 32;

/** Tokens of a turn in addition to its text: role and delimiters. */
const TURN_TOKENS = 4;
/** Tokens of every request in addition to its turns. */
const REQUEST_TOKENS = 3;

/** The members that hold the conversation, and those that the model gets as JSON. */
const CONVERSATION: Readonly<Record<CountedProtocol, readonly string[]>> = {
  messages: ["system", "messages"],
  responses: ["instructions", "input"],
};
const SHOWN_AS_JSON: Readonly<Record<CountedProtocol, readonly string[]>> = {
  messages: ["tools", "output_config"],
  responses: ["tools", "text"],
};

/**
 * Estimates the input tokens of a body that is valid for its protocol; at least 1. An image or a file counts the
 * configured minimum, whatever its size.
 */
export function estimateInput(protocol: CountedProtocol, json: Readonly<JsonObject>, media: MediaTokens): number {
  const input = new PromptText();
  for (const name of SHOWN_AS_JSON[protocol]) input.addJson(json[name]);
  for (const name of CONVERSATION[protocol]) input.addParts(json[name]);
  const turns = arrayOf(json[protocol === "messages" ? "messages" : "input"]).length;
  return (
    estimateText(input.pieces.join("\n")) +
    input.images * media.image +
    input.files * media.file +
    turns * TURN_TOKENS +
    REQUEST_TOKENS
  );
}

/** Estimates the tokens of a text in bounded time, whatever its length. */
export function estimateText(text: string): number {
  if (text.length <= SAMPLED_CHARS_MAX) return estimateTokenCount(text);
  const width = SAMPLED_CHARS_MAX / SAMPLES;
  const stride = (text.length - width) / (SAMPLES - 1);
  let tokens = 0;
  for (let sample = 0; sample < SAMPLES; sample++) {
    const start = Math.floor(sample * stride);
    tokens += estimateTokenCount(text.slice(start, start + width));
  }
  return Math.ceil(tokens * (text.length / SAMPLED_CHARS_MAX));
}

/** Members of messages, blocks and items that the model does not read as text. */
const UNREAD: ReadonlySet<string> = new Set([
  "annotations",
  "cache_control",
  "call_id",
  "data",
  "encrypted_content",
  "id",
  "media_type",
  "role",
  "signature",
  "status",
  "tool_use_id",
  "type",
]);

/** Members that are data: their member names count as well as their values. */
const DATA_MEMBERS: ReadonlySet<string> = new Set(["input", "input_schema", "parameters", "schema", "tools"]);

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image", "input_image", "computer_screenshot"]);
const FILE_TYPES: ReadonlySet<string> = new Set(["input_file", "input_audio"]);

/**
 * Collects what a model reads of a conversation. The walk is iterative because the client chooses the depth
 * (docs/failure-model.md row 44).
 */
class PromptText {
  readonly pieces: string[] = [];
  images = 0;
  files = 0;

  addJson(value: unknown): void {
    if (typeof value === "object" && value !== null) this.pieces.push(JSON.stringify(value));
  }

  addParts(root: unknown): void {
    const pending: unknown[] = [root];
    while (pending.length > 0) {
      const node = pending.pop();
      if (typeof node === "string") this.pieces.push(node);
      else if (Array.isArray(node)) for (let i = node.length - 1; i >= 0; i--) pending.push(node[i]);
      else if (typeof node === "object" && node !== null) this.#addPart(node as JsonObject, pending);
    }
  }

  #addPart(part: JsonObject, pending: unknown[]): void {
    const type = typeof part.type === "string" ? part.type : "";
    if (IMAGE_TYPES.has(type)) {
      this.images += 1;
      return;
    }
    if (FILE_TYPES.has(type)) {
      this.files += 1;
      return;
    }
    const source = type === "document" ? objectOf(part.source) : undefined;
    if (source && source.type !== "content") {
      // A document of type text is text.
      if (source.type === "text") pending.push(source.data);
      else this.files += 1;
      return;
    }
    for (const [name, value] of Object.entries(part)) {
      if (UNREAD.has(name)) continue;
      if (DATA_MEMBERS.has(name) && typeof value !== "string") this.addJson(value);
      else pending.push(value);
    }
  }
}

/** The part of a request that is counted: everything that a server would be sent. */
export function countedOf(request: ClientRequest): ClientRequest {
  return withoutMadeFiles(request).request;
}

/**
 * The upstream's body for a count: the client's body with the upstream's model name, without what that server cannot
 * read and without unknown members.
 */
export function encodeCount(
  request: ClientRequest,
  route: Pick<RouteFacts, "upstream" | "stateful" | "upstreamModel" | "passedMembers">,
): Uint8Array | Refusal {
  const listed = withoutUnlisted(request, route, { strict: false });
  if (isRefusal(listed)) throw new Error("a count is never strict");
  const named = refusedState(request, route) ?? storedSplices(request, route);
  if (isRefusal(named)) return named;
  const opened = withoutEnvelopes(request, listed.json, undefined, named.ofItem);
  if (isRefusal(opened)) return opened;
  const set = { ...listed.set, ...named.set, ...opened.set };
  if (route.upstreamModel !== request.model) set.model = Buffer.from(JSON.stringify(route.upstreamModel));
  return spliceJson(request.body, request.scan, { set, remove: [...listed.remove, ...opened.remove] });
}

/**
 * The refusal of a request that cannot be counted because it refers to state at the upstream, which no tenant may reach
 * (ARCHITECTURE.md promise 14).
 * @param route the route that keeps what the request refers to; undefined: it refers to nothing, or nothing keeps it.
 */
export function countFault(request: ClientRequest, route?: StoredRoute): Refusal | undefined {
  return refusedState(request, route);
}

/** Whether an upstream's reply is a count. */
export function isCount(body: Uint8Array): boolean {
  if (hasTooManyNames(body)) return false;
  const text = decodeUtf8(body);
  const count = text === undefined ? undefined : parseObject(text)?.input_tokens;
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0;
}

/** The reply to the client for a count that was made here. */
export function renderCount(protocol: CountedProtocol, tokens: number): Uint8Array {
  const count = { input_tokens: tokens };
  return Buffer.from(JSON.stringify(protocol === "messages" ? count : { object: "response.input_tokens", ...count }));
}
