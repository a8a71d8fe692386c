/** What a server has answered as one JSON object, and whether that may be parsed at all. */
import { type JsonObject, parseObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { decodeUtf8, findNested, hasMoreNames, type NameLimits } from "../../wire/json.ts";
import { withCount } from "../counted-fault.ts";
import type { UpstreamFault } from "../exchange.ts";
import { beyondLimit, invalid } from "../watch.ts";

/** So few bytes have no room for that many names. */
const SURE_BYTES = 256 * 1024;

/**
 * The probabilities of twenty words for each of 16,384 tokens are 1,050,000 names, and a few different ones. Those of a prompt, as vLLM
 * gives them, are named by the numbers of their tokens: thousands. An input of a tool that a model has written has fewer.
 */
const NAMES_MAX: NameLimits = { names: 1_200_000, different: 50_000 };

/** The longest forms have a dozen members. */
const USAGE_BYTES_MAX = 16 * 1024;

type ParsedReply =
  | { readonly json: JsonObject; readonly fault?: undefined }
  | { readonly json?: undefined; readonly fault: UpstreamFault };

/**
 * Parses a whole reply.
 * @param protocol the upstream's.
 * @param parse the text, undefined where it is no JSON object.
 * @returns the fault of one that is no JSON object in UTF-8, or that would take seconds to read (docs/failure-model.md row C4), then
 *   with what its server has counted.
 */
export function parseReply(
  body: Uint8Array,
  protocol: Protocol,
  parse: (text: string) => JsonObject | undefined,
): ParsedReply {
  if (hasTooManyNames(body)) {
    return { fault: withCount(beyondLimit("the reply has too many names"), protocol, { usage: usageIn(body) }) };
  }
  const text = decodeUtf8(body);
  const json = text === undefined ? undefined : parse(text);
  return json ? { json } : { fault: invalid("the body is not a JSON object in UTF-8") };
}

/** Whether a server's JSON, a whole reply or an event, would take seconds to parse (docs/failure-model.md row C4). */
export function hasTooManyNames(json: Uint8Array): boolean {
  return json.length > SURE_BYTES && hasMoreNames(json, NAMES_MAX);
}

/** The count alone, of a reply that is not parsed. */
function usageIn(body: Uint8Array): JsonObject | undefined {
  const span = findNested(body, ["usage"]);
  if (!span || span.end - span.start > USAGE_BYTES_MAX) return undefined;
  const text = decodeUtf8(body.subarray(span.start, span.end));
  return text === undefined ? undefined : parseObject(text);
}
