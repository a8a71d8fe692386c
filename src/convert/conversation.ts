/**
 * What stays the same from turn to turn of a conversation, as a hash: dispatch sends its turns to the same upstream,
 * whose prompt cache is warm (docs/translation-rules.md rule 8). The text itself goes nowhere.
 */
import { createHash } from "node:crypto";
import { arrayOf, type JsonObject, objectOf } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";

/** Headers by which known clients name their session, best first: Codex, opencode, others. */
export const SESSION_HEADERS = ["session-id", "x-session-id", "x-session-affinity"] as const;

/** Characters of the instructions, and of the first turn, by which conversations are distinguished. */
export const BEGINNING_CHARS_MAX = 16 * 1024;

/** A client's own name for a conversation may have this length; what is longer counts in part. */
const NAME_CHARS_MAX = 1_024;

/**
 * Hashes what the client itself says of its session, else the instructions and the first turn.
 * @param session the value of the first of `SESSION_HEADERS` that the request has.
 * @param scope whose conversation it is, and with which model: others with the same text are others.
 * @returns 32 hexadecimal digits.
 */
export function conversationHash(
  protocol: Protocol,
  json: JsonObject,
  session: string | undefined,
  scope: readonly string[],
): string {
  const named = nameIn(json) ?? session;
  const hash = createHash("sha256").update(JSON.stringify(scope));
  if (named) hash.update(`named\n${named.slice(0, NAME_CHARS_MAX)}`);
  else for (const part of beginning(protocol, json)) hash.update(`\nbegins\n${prefixOf(part)}`);
  return hash.digest("hex").slice(0, 32);
}

/** `prompt_cache_key` of chat and responses; `metadata.user_id` of messages, in which Claude Code names its session. */
function nameIn(json: JsonObject): string | undefined {
  const key = json.prompt_cache_key;
  if (typeof key === "string" && key !== "") return key;
  const user = objectOf(json.metadata)?.user_id;
  return typeof user === "string" && user !== "" ? user : undefined;
}

/** The instructions, and everything up to the first turn of the user's. */
function beginning(protocol: Protocol, json: JsonObject): unknown[] {
  const instructions = protocol === "messages" ? json.system : json.instructions;
  const turns = protocol === "responses" ? json.input : json.messages;
  if (typeof turns === "string") return [instructions, turns];
  const list = arrayOf(turns);
  const first = list.findIndex((turn) => objectOf(turn)?.role === "user");
  return [instructions, ...list.slice(0, first + 1)];
}

/** The texts inside a value, in order, up to a bound: a first turn may hold megabytes of images. */
function prefixOf(value: unknown): string {
  const texts: string[] = [];
  let room = BEGINNING_CHARS_MAX;
  const gather = (part: unknown): void => {
    if (room <= 0) return;
    if (typeof part === "string") {
      texts.push(part.slice(0, room));
      room -= part.length;
    } else if (typeof part === "object" && part !== null) {
      for (const member of Object.values(part)) gather(member);
    }
  };
  gather(value);
  return texts.join("\n");
}
