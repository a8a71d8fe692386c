/** The finish reason of a whole reply, in the words of its own protocol. */
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { elementSpans, findNested, spliceNested } from "../../wire/json.ts";
import { ownFinish } from "../chat/reply-encode.ts";
import { ownStopReason } from "../messages/reply-encode.ts";
import { ownIncompleteReason } from "../responses/response.ts";

/** The body, with an unknown finish reason replaced by the protocol's own (docs/translation-rules.md rule 43). */
export function withOwnEnd(body: Uint8Array, protocol: Protocol, json: JsonObject): Uint8Array {
  if (protocol === "chat") return withOwnChoices(body, json);
  if (protocol === "messages") return withOwnWord(body, "stop_reason", json.stop_reason, ownStopReason);
  const reason = ownIncompleteReason(json);
  const place = ["incomplete_details", "reason"];
  return reason === undefined ? body : spliceNested(body, place, JSON.stringify(reason));
}

/**
 * The same for each choice. Only the choice itself is edited: a call's arguments may be an object with members of the
 * same name.
 */
function withOwnChoices(body: Uint8Array, json: JsonObject): Uint8Array {
  const choices = arrayOf(json.choices);
  if (!choices.some(hasForeignWord)) return body;
  const words = choices.map((one) => objectOf(one)?.finish_reason);
  const list = findNested(body, ["choices"]);
  if (!list) return body;
  const pieces: Uint8Array[] = [];
  let end = 0;
  for (const [index, span] of [...elementSpans(body.subarray(list.start, list.end))].entries()) {
    const choice = body.subarray(list.start + span.start, list.start + span.end);
    pieces.push(
      body.subarray(end, list.start + span.start),
      withOwnWord(choice, "finish_reason", words[index], ownFinish),
    );
    end = list.start + span.end;
  }
  return Buffer.concat([...pieces, body.subarray(end)]);
}

function hasForeignWord(choice: unknown): boolean {
  const word = objectOf(choice)?.finish_reason;
  return typeof word === "string" && ownFinish(word) !== undefined;
}

function withOwnWord(
  body: Uint8Array,
  member: string,
  word: unknown,
  own: (word: string) => string | undefined,
): Uint8Array {
  const instead = typeof word === "string" ? own(word) : undefined;
  return instead === undefined ? body : spliceNested(body, [member], instead);
}
