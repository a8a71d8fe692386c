/** Parses a server's reply of one JSON object, after a check that it can be parsed quickly. */
import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { countNames, decodeUtf8, elementSpans, findMembers, hasMoreNames, type NameLimits } from "../../wire/json.ts";
import { SSE_EVENT_BYTES_MAX } from "../../wire/sse.ts";
import { withCount } from "../counted-fault.ts";
import type { UpstreamFault } from "../exchange.ts";
import { beyondLimit, invalid } from "../watch.ts";
import { outlineOf } from "./outline.ts";
import { REPLY_BLOCKS_PASSED_MAX } from "./sink.ts";

/** A text of this size or less cannot have too many names or values. */
const SURE_BYTES = 256 * 1024;

/**
 * The most names in a reply, and the most arrays and objects. Probabilities of twenty words for each of 16,384 tokens
 * have 1,050,000 names, only a few of them different, in 700,000 arrays and objects. The probabilities of a prompt, as
 * vLLM gives them, have four names per word, one of which is the number of its token; the limit leaves room for twenty
 * words for each of 14,000 tokens. The input of a tool that a model has written has fewer. Both have less than 3,000,000
 * values; 15,000,000 digits, each with its comma, take 0.2 s to parse.
 */
const REPLY_MAX: NameLimits = { names: 1_200_000, different: 50_000, containers: 1_200_000, values: 4_000_000 };

/** The same for an event: in 4 MiB, probabilities have 210,000 arrays and objects. A million empty ones take 0.2 s. */
const EVENT_MAX: NameLimits = { ...REPLY_MAX, containers: 500_000 };

/** The member with the list of blocks, items or choices of a whole reply. */
const LISTS: Readonly<Record<Protocol, string>> = { chat: "choices", messages: "content", responses: "output" };

/** Limits for whole replies. */
interface ReplyLimits {
  /** A reply with more blocks, items or choices is refused before it is parsed. */
  readonly blocksMax: number;
}

type ParsedReply =
  | { readonly json: JsonObject; readonly fault?: undefined }
  | { readonly json?: undefined; readonly fault: UpstreamFault };

/**
 * Parses a whole reply.
 * @param protocol the upstream's.
 * @param parse parses the text; undefined if it is not a JSON object.
 * @returns a fault if the body is not a JSON object in UTF-8, or would take long to parse (docs/failure-model.md row
 * C4); in the latter case with the server's usage.
 */
export function parseReply(
  body: Uint8Array,
  protocol: Protocol,
  parse: (text: string) => JsonObject | undefined,
  { blocksMax }: ReplyLimits = { blocksMax: REPLY_BLOCKS_PASSED_MAX },
): ParsedReply {
  const excess = excessOf(body, protocol, blocksMax);
  if (excess) {
    return { fault: withCount(beyondLimit(`the reply has too many ${excess}`), protocol, outlineOf(body) ?? {}) };
  }
  const text = decodeUtf8(body);
  const json = text === undefined ? undefined : parse(text);
  return json ? { json } : { fault: invalid("the body is not a JSON object in UTF-8") };
}

/**
 * What a whole reply has too many of. A short one is not checked; its blocks are counted when they are read. Blocks are
 * counted only if there are commas enough, because that takes two more passes.
 */
function excessOf(json: Uint8Array, protocol: Protocol, blocksMax: number): "names or values" | "blocks" | undefined {
  if (json.length <= SURE_BYTES) return undefined;
  const counted = countNames(json, limitsOf(json));
  if (counted === "more") return "names or values";
  return counted.commas >= blocksMax && hasMoreBlocks(json, protocol, blocksMax) ? "blocks" : undefined;
}

function hasMoreBlocks(json: Uint8Array, protocol: Protocol, max: number): boolean {
  const list = findMembers(json, [LISTS[protocol]]).get(LISTS[protocol]);
  if (!list) return false;
  let blocks = 0;
  for (const _ of elementSpans(json.subarray(list.start, list.end))) if (++blocks > max) return true;
  return false;
}

/** Whether a server's JSON, a whole reply or an event, would take long to parse (docs/failure-model.md row C4). */
export function hasTooManyNames(json: Uint8Array): boolean {
  return json.length > SURE_BYTES && hasMoreNames(json, limitsOf(json));
}

/** A whole reply that is no larger than an event has no more in it. */
function limitsOf({ length }: Uint8Array): NameLimits {
  return length > SSE_EVENT_BYTES_MAX ? REPLY_MAX : EVENT_MAX;
}
