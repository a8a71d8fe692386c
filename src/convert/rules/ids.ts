/** Ids of tool calls, safe for every protocol and the same in each turn (G4). */
import { createHash } from "node:crypto";

const SAFE = /^[a-zA-Z0-9_-]{1,64}$/;

/** The id itself when every protocol takes it, else a digest of it: never cut, since prefixes collide. */
export function safeCallId(id: string): string {
  return SAFE.test(id) ? id : `call_${createHash("sha256").update(id).digest("base64url")}`;
}

/** Longest user identifier that OpenAI's protocols take, in characters. */
const USER_ID_CHARS_MAX = 128;

/** A user id that fits `safety_identifier`: itself, or the hex digest of a longer one (MC.q15, MR.q9). */
export function shortUserId(id: string): string {
  return id.length > USER_ID_CHARS_MAX ? createHash("sha256").update(id).digest("hex") : id;
}
