/**
 * Where conversations were answered last, so that their next turn finds a warm prompt cache there, and sealed reasoning
 * the account that can open it (docs/translation-rules.md rule 8).
 *
 * It is a wish, never a rule: health, room and failover come first. What is forgotten costs little, since
 * the first choice for a conversation is drawn from its own hash: every replica draws the same.
 */
import { hash } from "node:crypto";
import type { Route } from "../values/catalog.ts";
import { createRecent, type Recent } from "../values/recent.ts";
import type { Clock } from "../values/time.ts";

/** A conversation that pauses for longer finds no warm cache anyway. */
const CONVERSATION_TTL_MS = 3_600_000;
/** Conversations remembered at once; those that paused for longest are drawn anew. */
const CONVERSATIONS_MAX = 100_000;

export class Affinity {
  readonly #upstreams: Recent<string>;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#upstreams = createRecent({ max: CONVERSATIONS_MAX, ttlMs: CONVERSATION_TTL_MS, clock });
  }

  /**
   * @param conversation a hash that stays the same from turn to turn; of the text nothing comes here.
   * @returns the name of the upstream that answered it last.
   */
  recall(conversation: string): string | undefined {
    return this.#upstreams.get(conversation);
  }

  /** An upstream has answered: the next turn should come back to it. */
  remember(conversation: string, upstream: string): void {
    this.#upstreams.set(conversation, upstream);
  }
}

const DRAW_BYTES = 6;

/** A number in [0, 1) that is the same for the same conversation and route, and evenly spread over conversations. */
export function drawOf(conversation: string, route: Route): number {
  const digest = hash("sha256", `${conversation}\n${route.upstream}\n${route.upstreamModel}`, "buffer");
  return digest.readUIntBE(0, DRAW_BYTES) / 2 ** (8 * DRAW_BYTES);
}
