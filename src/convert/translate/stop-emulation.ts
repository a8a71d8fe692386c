/**
 * Ends a reply at a stop string that the upstream did not get (docs/translation-rules.md rule 25). Only visible text is
 * searched, one text block at a time. A stream holds back no more text than could still become a stop string.
 */
import type { BlockKey, HubReply, ReplyEvent, ReplyItem, Stop } from "../hub-reply.ts";
import { StopMatcher } from "./stop-matcher.ts";

/** Events that still pass after a match: usage and end. */
const AFTER_A_HIT: ReadonlySet<ReplyEvent["type"]> = new Set(["usage-update", "reply-end", "ping"]);

/** Watches one stream. */
export class StopWatch {
  readonly #matcher: StopMatcher;
  /** The end of the open text that could be the beginning of a stop string. */
  #held = "";
  #heldLogprobs: readonly unknown[] | undefined;
  #hit = false;

  constructor(stops: readonly string[]) {
    this.#matcher = new StopMatcher(stops);
  }

  /**
   * True once a stop string has been found. The reply is then complete for the client; the rest of the upstream's
   * stream matters for its usage only.
   */
  get hit(): boolean {
    return this.#hit;
  }

  /** Whether there are no stop strings. */
  get isIdle(): boolean {
    return this.#matcher.isEmpty;
  }

  /** Takes the next event of a stream whose blocks are in sequence; returns the events that the client may get. */
  push(event: ReplyEvent): readonly ReplyEvent[] {
    if (this.#matcher.isEmpty) return [event];
    if (this.#hit) return AFTER_A_HIT.has(event.type) ? [event] : [];
    if (event.type === "text-delta") return this.#search(event);
    if (event.type === "text-end") return [...this.#flush(event.key), event];
    return [event];
  }

  #search(event: Extract<ReplyEvent, { type: "text-delta" }>): readonly ReplyEvent[] {
    const { key } = event;
    const text = this.#held + event.text;
    const match = this.#matcher.search(event.text);
    if (match) {
      this.#hit = true;
      const before = text.slice(0, this.#held.length + match.end - match.stop.length);
      return [
        ...textDelta(key, before, undefined),
        { type: "text-end", key },
        { type: "reply-stop", stop: stoppedBy(match.stop) },
      ];
    }
    const safe = text.length - this.#matcher.tail;
    const logprobs = joinLogprobs(this.#heldLogprobs, event.logprobs);
    this.#held = text.slice(safe);
    this.#heldLogprobs = safe === 0 ? logprobs : undefined;
    return textDelta(key, text.slice(0, safe), logprobs);
  }

  #flush(key: BlockKey): readonly ReplyEvent[] {
    const flushed = textDelta(key, this.#held, this.#heldLogprobs);
    this.#held = "";
    this.#heldLogprobs = undefined;
    this.#matcher.reset();
    return flushed;
  }
}

/** Ends a whole reply where its stream would have ended. */
export function stopReply(reply: HubReply, stops: readonly string[]): HubReply {
  const matcher = new StopMatcher(stops);
  if (matcher.isEmpty) return reply;
  for (const [index, item] of reply.items.entries()) {
    if (item.type !== "text") continue;
    matcher.reset();
    const match = matcher.search(item.text);
    if (!match) continue;
    const text = item.text.slice(0, match.end - match.stop.length);
    const cut: ReplyItem = { ...item, text, citations: [], logprobs: undefined };
    return { ...reply, items: [...reply.items.slice(0, index), cut], stop: stoppedBy(match.stop) };
  }
  return reply;
}

function stoppedBy(stopSequence: string): Stop {
  return { reason: "stop-sequence", stopSequence, refusal: undefined };
}

function textDelta(key: BlockKey, text: string, logprobs: readonly unknown[] | undefined): readonly ReplyEvent[] {
  return text === "" ? [] : [{ type: "text-delta", key, text, logprobs }];
}

function joinLogprobs(
  held: readonly unknown[] | undefined,
  more: readonly unknown[] | undefined,
): readonly unknown[] | undefined {
  return held && more ? [...held, ...more] : (held ?? more);
}
