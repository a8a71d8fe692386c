/**
 * A hash of what stays the same from turn to turn of a conversation. Dispatch uses it to send the turns to the same
 * upstream, whose prompt cache is warm (docs/translation-rules.md rule 8). The text itself is not kept.
 */
import { createHash } from "node:crypto";
import { arrayOf, type JsonObject, objectOf } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";

/** Headers in which known clients name their session, most reliable first: Codex, opencode, others. */
export const SESSION_HEADERS = ["session-id", "x-session-id", "x-session-affinity"] as const;

/** The most characters of the instructions, and of the first turn, that are hashed. */
export const BEGINNING_CHARS_MAX = 16 * 1024;

/** The most characters of a client's own name for a conversation that are hashed. */
const NAME_CHARS_MAX = 1_024;

/**
 * Hashes the session that the client names, else the instructions and the first turn.
 * @param session the value of the first of `SESSION_HEADERS` that the request has.
 * @param scope the owner and the model; the same text in another scope is another conversation.
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

/**
 * The client's name for the conversation: `prompt_cache_key` of chat and responses; `metadata.user_id` of messages, in
 * which Claude Code names its session.
 */
function nameIn(json: JsonObject): string | undefined {
  const key = json.prompt_cache_key;
  if (typeof key === "string" && key !== "") return key;
  const user = objectOf(json.metadata)?.user_id;
  return typeof user === "string" && user !== "" ? user : undefined;
}

/** The instructions, and everything up to and including the first user turn. */
function beginning(protocol: Protocol, json: JsonObject): unknown[] {
  const instructions = protocol === "messages" ? json.system : json.instructions;
  const turns = protocol === "responses" ? json.input : json.messages;
  if (typeof turns === "string") return [instructions, turns];
  const list = arrayOf(turns);
  const first = list.findIndex((turn) => objectOf(turn)?.role === "user");
  return [instructions, ...list.slice(0, first + 1)];
}

/** The texts inside a value, in order, up to a limit: a first turn may contain megabytes of images. */
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
