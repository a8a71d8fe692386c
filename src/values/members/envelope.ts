/**
 * What a body asks for, as far as the gateway needs it to route, price and bill the request. Accept reads it from the
 * members, admission computes the hold from it.
 */
import type { Protocol } from "../protocol.ts";

/** One image, or one file of any other kind. */
export interface MediaPiece {
  readonly kind: "image" | "file";
  /** The most that it costs, in tokens; undefined if the body does not show it. */
  readonly tokens: number | undefined;
}

/** The facts of a body; never its content. */
export interface Envelope {
  readonly protocol: Protocol;
  /** As typed; any string that is not empty. */
  readonly model: string;
  readonly stream: boolean;
  /**
   * The client's own output limit in tokens, and the member that holds it. `implied`: the endpoint has no such member,
   * and the hold covers the most that the model can produce.
   */
  readonly limit: { readonly field: string; readonly value: number; readonly implied?: boolean } | undefined;
  /** Thinking tokens that the body asks for; 0 for messages, whose limit includes them. */
  readonly thinkingBudget: number;
  /** The member that contains it. */
  readonly budgetParam?: string | undefined;
  /** Bytes of the output that the client expects (chat's `prediction`); rejected parts of it are billed as output. */
  readonly predictedBytes?: number | undefined;
  /** Chat's `n`; 1 elsewhere. */
  readonly choices: number;
  /** Bytes of the body. */
  readonly bodyBytes: number;
  /** Those that are not base64 media. */
  readonly textBytes: number;
  /** Tokens of that text by a sample of its characters; 0 if it is short. */
  readonly textTokens: number;
  /** Images, documents, files and audio. */
  readonly media: readonly MediaPiece[];
  /** Whether the upstream may compact the conversation in between: it then reads it twice, and bills both. */
  readonly compacts: boolean;
  /** Whether the upstream reads stored data in addition to the body, of a size that only the upstream knows. */
  readonly readsStored?: boolean;
  /** Whether an upstream that keeps responses keeps the reply, so that the client can read it again by its id. */
  readonly keepsReply?: boolean;
  /**
   * A service tier, speed, region or output other than the standard one; it needs a price (ARCHITECTURE.md promise 14).
   */
  readonly serviceTier: string | undefined;
  /** The member that asks for it. */
  readonly tierParam: string | undefined;
  /** Types of the tools that the upstream would run and bill (promise 14). */
  readonly hostedTools: readonly string[];
  /** Those that the answer must use, or whose position does not allow to leave them out. */
  readonly demandedTools: readonly string[];
  /** Whether any tool is offered that the client runs itself. */
  readonly hasOwnTools: boolean;
  /** Bytes that the model reads of the tools in addition to their definitions in the body; undefined: none. */
  readonly formBytes?: number | undefined;
  /** Members that buy something in addition to tokens, or another model (promise 14). */
  readonly options: readonly string[];
  /** Chat: whether the client itself asked for the usage chunk. */
  readonly includeUsage: boolean;
}
