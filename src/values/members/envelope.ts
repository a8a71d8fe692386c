/**
 * What a body asks for, as far as the gateway must know it to route, price and bill it: accept reads it from the members,
 * admission makes the hold from it.
 */
import type { Protocol } from "../protocol.ts";

/** One image, or one file of any other kind. */
export interface MediaPiece {
  readonly kind: "image" | "file";
  /** The most that it costs, in tokens; undefined when nothing in the body shows it. */
  readonly tokens: number | undefined;
}

/** The facts of a body; never its content. */
export interface Envelope {
  readonly protocol: Protocol;
  /** As typed; any string but the empty one. */
  readonly model: string;
  readonly stream: boolean;
  /**
   * The client's own output limit in tokens and the member that holds it. `implied`: the endpoint has no such member, and
   * the most that the model can give is held.
   */
  readonly limit: { readonly field: string; readonly value: number; readonly implied?: boolean } | undefined;
  /** Tokens of thinking that the body asks for; 0 on messages, whose limit includes them. */
  readonly thinkingBudget: number;
  /** The member that names it. */
  readonly budgetParam?: string | undefined;
  /** Bytes of the output that the client expects (chat's `prediction`), of which what is rejected is billed as output. */
  readonly predictedBytes?: number | undefined;
  /** Chat's `n`; 1 elsewhere. */
  readonly choices: number;
  /** Bytes of the body. */
  readonly bodyBytes: number;
  /** Those of them that are not base64 media. */
  readonly textBytes: number;
  /** Tokens of that text by a sample of its characters; 0 where it is short. */
  readonly textTokens: number;
  /** Images, documents, files and sound. */
  readonly media: readonly MediaPiece[];
  /** Whether the upstream may shorten the conversation on the way: it then reads it twice, and bills both. */
  readonly compacts: boolean;
  /** Whether the upstream reads more than the body has: what it keeps, of a size that only it knows. */
  readonly readsStored?: boolean;
  /**
   * A service tier, speed, region or output other than the standard one; it needs a price (ARCHITECTURE.md promise 14).
   */
  readonly serviceTier: string | undefined;
  /** The member that asks for it. */
  readonly tierParam: string | undefined;
  /** Types of the tools that the upstream would run and bill (promise 14). */
  readonly hostedTools: readonly string[];
  /** Those of them that the answer must use, or that stand where nothing can be left out. */
  readonly demandedTools: readonly string[];
  /** Whether any tool that the client runs itself is offered. */
  readonly hasOwnTools: boolean;
  /** Members that buy something beside tokens, or another model (promise 14). */
  readonly options: readonly string[];
  /** Chat: whether the client asked for the usage chunk itself. */
  readonly includeUsage: boolean;
}
