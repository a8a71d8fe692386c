/** Ids of tool calls, safe for every protocol and the same in each turn (docs/translation-rules.md rule 35). */
import { createHash } from "node:crypto";

const SAFE = /^[a-zA-Z0-9_-]{1,64}$/;

/** The id itself when every protocol takes it, else a digest of it: never cut, since prefixes collide. */
export function safeCallId(id: string): string {
  return SAFE.test(id) ? id : `call_${createHash("sha256").update(id).digest("base64url")}`;
}

/**
 * The ids of one conversation on their way upstream. Some servers number their calls anew in each turn; a vendor that
 * wants every id once gets a digest for each further use, the same in every later request.
 */
export class CallIds {
  readonly #uses = new Map<string, number>();

  /** The id of a call, in the order in which the calls are written. */
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

/** Longest user identifier that OpenAI's protocols take, in characters. */
const USER_ID_CHARS_MAX = 128;

/** A user id that fits `safety_identifier`: itself, or the hex digest of a longer one (rule 28). */
export function shortUserId(id: string): string {
  return id.length > USER_ID_CHARS_MAX ? createHash("sha256").update(id).digest("hex") : id;
}
