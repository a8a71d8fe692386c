/**
 * Ids of tool calls that every protocol takes and that are the same in each turn (docs/translation-rules.md rule 35).
 */
import { createHash } from "node:crypto";

const SAFE = /^[a-zA-Z0-9_-]{1,64}$/;

/** The id itself if every protocol takes it, else a digest. It is never cut, because prefixes collide. */
export function safeCallId(id: string): string {
  return SAFE.test(id) ? id : `call_${createHash("sha256").update(id).digest("base64url")}`;
}

/**
 * The call ids of one conversation for the upstream. Some servers number their calls from the start in each turn. For a
 * vendor that needs unique ids, each further use gets a digest, the same in every later request.
 */
export class CallIds {
  readonly #uses = new Map<string, number>();

  /** The id of a call; must be asked in the order in which the calls are written. */
  ofCall(id: string): string {
    const uses = this.#uses.get(id) ?? 0;
    this.#uses.set(id, uses + 1);
    return this.#nth(id, uses);
  }

  /** The id of a result: that of the last call written with this id. */
  ofResult(id: string): string {
    return this.#nth(id, Math.max(0, (this.#uses.get(id) ?? 1) - 1));
  }

  #nth(id: string, use: number): string {
    return use === 0 ? safeCallId(id) : safeCallId(`${id} #${use}`); // The blank makes it a digest.
  }
}

/** The longest user id that OpenAI's protocols take, in characters. */
const USER_ID_CHARS_MAX = 128;

/** A user id that fits `safety_identifier`: the id itself, or the hex digest of one that is too long (rule 28). */
export function shortUserId(id: string): string {
  return id.length > USER_ID_CHARS_MAX ? createHash("sha256").update(id).digest("hex") : id;
}
