/**
 * The shared form of whole replies and stream events, through which the three protocols are translated, as `hub.ts` has
 * that of requests. Rule numbers are those of docs/translation-rules.md.
 */

import type { Usage } from "../values/tokens/usage.ts";
import type { ReasoningPart, ToolRef } from "./hub.ts";

/** Why the model stopped; rule 43 maps each reason to each protocol. */
export type StopReason =
  | "end"
  | "tool-calls"
  | "output-limit"
  | "context-limit"
  | "stop-sequence"
  | "refusal"
  | "pause";

export interface Stop {
  readonly reason: StopReason;
  /** The matched string, for `stop-sequence`. */
  readonly stopSequence: string | undefined;
  /** For `refusal`: the vendor's explanation. */
  readonly refusal: { readonly category: string | null; readonly explanation: string | null } | undefined;
}

/** A source that the text cites; offsets are UTF-16 positions in the text of its block. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly startIndex: number | undefined;
  readonly endIndex: number | undefined;
}

/** One item of the model's output, in order. `logprobs` is the list of either OpenAI protocol, unchanged. */
export type ReplyItem =
  | {
      readonly type: "text";
      readonly text: string;
      /** Responses: true for the first part of a message item; chat and messages: true for every text. */
      readonly startsMessage: boolean;
      readonly citations: readonly Citation[];
      readonly logprobs: readonly unknown[] | undefined;
    }
  | { readonly type: "refusal"; readonly text: string }
  /** An image that the model made: a data URL or an http URL. */
  | { readonly type: "image"; readonly url: string }
  /** `redacted`: none of it is readable. */
  | (ReasoningPart & {
      /** The block or item as the upstream's protocol writes it; an envelope seals this. */
      readonly native: unknown;
      readonly redacted: boolean;
    })
  | {
      readonly type: "tool-call";
      readonly id: string;
      /** The upstream's name until `RestoreMap` has been applied, then the client's. */
      readonly tool: ToolRef;
      readonly input: string;
    };

/** A whole reply. */
export interface HubReply {
  /** The upstream's id; the client gets another id, in the form of its own protocol (rule 7). */
  readonly upstreamId: string | undefined;
  readonly items: readonly ReplyItem[];
  readonly stop: Stop;
  /** Undefined if the upstream gave no plausible usage. */
  readonly usage: Usage | undefined;
  readonly serviceTier: string | undefined;
  /** Seconds since the epoch by the upstream's clock, if it gave them. */
  readonly createdS: number | undefined;
}

// ------------------------------------------------------------------------------------------------------ stream events

/**
 * Identifies one block of the upstream's stream from its start to its end. Blocks of different keys may interleave.
 * `Sequencer` puts them in sequence for clients (rule 56).
 */
export type BlockKey = string;

/**
 * The upstream's stream, event by event, in this order:
 * - one `reply-start`;
 * - blocks, each of `-start`, `-delta`s and `-end`, or of one `image`;
 * - any number of `usage-update`s, pings and `reply-stopping`s between them;
 * - then `reply-stop` and `reply-end`, or `reply-error`; nothing after.
 */
export type ReplyEvent =
  | {
      readonly type: "reply-start";
      readonly upstreamId: string | undefined;
      readonly serviceTier: string | undefined;
      readonly createdS: number | undefined;
    }
  | { readonly type: "text-start"; readonly key: BlockKey; readonly startsMessage: boolean }
  | {
      readonly type: "text-delta";
      readonly key: BlockKey;
      readonly text: string;
      readonly logprobs: readonly unknown[] | undefined;
    }
  | { readonly type: "text-citation"; readonly key: BlockKey; readonly citation: Citation }
  | { readonly type: "text-end"; readonly key: BlockKey }
  | { readonly type: "refusal-start"; readonly key: BlockKey }
  | { readonly type: "refusal-delta"; readonly key: BlockKey; readonly text: string }
  | { readonly type: "refusal-end"; readonly key: BlockKey }
  | { readonly type: "reasoning-start"; readonly key: BlockKey; readonly redacted: boolean }
  /** The deltas of a new summary part begin with a blank line, which the decoder has added. */
  | { readonly type: "reasoning-delta"; readonly key: BlockKey; readonly text: string }
  /** `native` is the whole block or item as the upstream's protocol writes it; the envelope seals this. */
  | {
      readonly type: "reasoning-end";
      readonly key: BlockKey;
      readonly opaque: string | undefined;
      readonly native: unknown;
    }
  /** Sent once both id and name are known; `tool` as in `ReplyItem`. */
  | { readonly type: "tool-start"; readonly key: BlockKey; readonly id: string; readonly tool: ToolRef }
  /** A piece of the upstream's arguments text (or free text for a native custom tool). */
  | { readonly type: "tool-delta"; readonly key: BlockKey; readonly input: string }
  /** `input` is the whole text: the deltas joined, or everything if there were none. */
  | { readonly type: "tool-end"; readonly key: BlockKey; readonly input: string }
  /** A whole block in one event, as in `ReplyItem`. */
  | { readonly type: "image"; readonly key: BlockKey; readonly url: string }
  /** A cumulative snapshot: it replaces the one before and is never added to it (rule 44). */
  | { readonly type: "usage-update"; readonly usage: Usage }
  /**
   * The upstream has given its stop reason, and all blocks have ended; its usage, or even another block, may follow.
   */
  | { readonly type: "reply-stopping"; readonly stop: Stop }
  | { readonly type: "reply-stop"; readonly stop: Stop }
  /** The upstream has sent its own terminal marker. */
  | { readonly type: "reply-end" }
  | { readonly type: "ping" }
  /** The upstream reported a failure in its stream (rule 50). `code` is the machine-readable code, if it gave one. */
  | { readonly type: "reply-error"; readonly code: string | undefined; readonly message: string };

/** An event that belongs to a block. */
export type BlockEvent = Extract<ReplyEvent, { readonly key: BlockKey }>;

/** A stop reason without details. */
export function stopFor(reason: StopReason): Stop {
  return { reason, stopSequence: undefined, refusal: undefined };
}
