/** What a server has answered as one JSON object. */
import type { JsonObject } from "../../values/json-object.ts";
import { decodeUtf8, hasMoreNames, type NameLimits } from "../../wire/json.ts";
import type { UpstreamFault } from "../exchange.ts";
import { beyondLimit, invalid } from "../watch.ts";

/** So few bytes have no room for that many names. */
const SURE_BYTES = 256 * 1024;

/**
 * The probabilities of twenty words for each of 16,000 tokens are a million names, and three different ones. Those of a prompt, as vLLM
 * gives them, are named by the numbers of their tokens: thousands. An input of a tool that a model has written has fewer.
 */
const NAMES_MAX: NameLimits = { names: 1_000_000, different: 50_000 };

type ParsedReply =
  | { readonly json: JsonObject; readonly fault?: undefined }
  | { readonly json?: undefined; readonly fault: UpstreamFault };

/**
 * Parses a whole reply.
 * @param parse the text, undefined where it is no JSON object.
 * @returns the fault of one that is no JSON object in UTF-8, or that would take seconds to read (docs/failure-model.md row C4).
 */
export function parseReply(body: Uint8Array, parse: (text: string) => JsonObject | undefined): ParsedReply {
  if (body.length > SURE_BYTES && hasMoreNames(body, NAMES_MAX)) {
    return { fault: beyondLimit("the reply has too many names") };
  }
  const text = decodeUtf8(body);
  const json = text === undefined ? undefined : parse(text);
  return json ? { json } : { fault: invalid("the body is not a JSON object in UTF-8") };
}
