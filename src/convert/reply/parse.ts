/** What a server has answered as one JSON object, and whether that may be parsed at all. */
import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { decodeUtf8, elementSpans, findMembers, hasMoreNames, type NameLimits } from "../../wire/json.ts";
import { withCount } from "../counted-fault.ts";
import type { UpstreamFault } from "../exchange.ts";
import { beyondLimit, invalid } from "../watch.ts";
import { outlineOf } from "./outline.ts";
import { REPLY_BLOCKS_PASSED_MAX } from "./sink.ts";

/** So few bytes have no room for that many names. */
const SURE_BYTES = 256 * 1024;

/**
 * The probabilities of twenty words for each of 16,384 tokens are 1,050,000 names, and a few different ones. Those of a prompt, as vLLM
 * gives them, have four names for each word, one of which is the number of its token: there is room for twenty words for each of 14,000
 * tokens. An input of a tool that a model has written has fewer.
 */
const NAMES_MAX: NameLimits = { names: 1_200_000, different: 50_000 };

/** The list that each protocol's reply is. */
const LISTS: Readonly<Record<Protocol, string>> = { chat: "choices", messages: "content", responses: "output" };

/** What is read of whole replies. */
interface ReplyLimits {
  /** Blocks, items or choices beyond which a reply is refused before it is parsed. */
  readonly blocksMax: number;
}

type ParsedReply =
  | { readonly json: JsonObject; readonly fault?: undefined }
  | { readonly json?: undefined; readonly fault: UpstreamFault };

/**
 * Parses a whole reply.
 * @param protocol the upstream's.
 * @param parse the text, undefined where it is no JSON object.
 * @returns the fault of one that is no JSON object in UTF-8, or that would take long to read (docs/failure-model.md row C4), then
 *   with what its server has counted.
 */
export function parseReply(
  body: Uint8Array,
  protocol: Protocol,
  parse: (text: string) => JsonObject | undefined,
  { blocksMax }: ReplyLimits = { blocksMax: REPLY_BLOCKS_PASSED_MAX },
): ParsedReply {
  const excess = hasTooManyNames(body) ? "names" : hasTooManyBlocks(body, protocol, blocksMax) ? "blocks" : undefined;
  if (excess) {
    return { fault: withCount(beyondLimit(`the reply has too many ${excess}`), protocol, outlineOf(body) ?? {}) };
  }
  const text = decodeUtf8(body);
  const json = text === undefined ? undefined : parse(text);
  return json ? { json } : { fault: invalid("the body is not a JSON object in UTF-8") };
}

/** Whether a whole reply has more blocks than that; a short one has no room for them, or says so where it is read. */
function hasTooManyBlocks(json: Uint8Array, protocol: Protocol, max: number): boolean {
  if (json.length <= SURE_BYTES) return false;
  const list = findMembers(json, [LISTS[protocol]]).get(LISTS[protocol]);
  if (!list) return false;
  let blocks = 0;
  for (const _ of elementSpans(json.subarray(list.start, list.end))) if (++blocks > max) return true;
  return false;
}

/** Whether a server's JSON, a whole reply or an event, would take seconds to parse (docs/failure-model.md row C4). */
export function hasTooManyNames(json: Uint8Array): boolean {
  return json.length > SURE_BYTES && hasMoreNames(json, NAMES_MAX);
}
