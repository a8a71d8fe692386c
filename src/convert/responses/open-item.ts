/** The one item that a responses stream has open: what has been said of it, and what is left to say when it ends. */

import type { JsonObject } from "../../values/json-object.ts";
import type { ToolRef } from "../hub.ts";
import type { MessagePart } from "./items.ts";

/** A message; its item stays open while further parts may follow. */
export interface OpenMessage {
  readonly type: "message";
  readonly id: string;
  readonly parts: MessagePart[];
  /** Whether the last part is open. */
  partOpen: boolean;
}

interface OpenReasoning {
  readonly type: "reasoning";
  readonly id: string;
  text: string;
}

/** A call; finished once its input is known, though its `done` waits for what follows. */
export interface OpenCall {
  readonly type: "call";
  readonly id: string;
  readonly callId: string;
  readonly tool: ToolRef;
  /** Whether a delta of its input has gone out. */
  begun: boolean;
  ended: boolean;
  input: string;
}

export type OpenItem = OpenMessage | OpenReasoning | OpenCall;

/** The members of the event that ends a part's text. */
export function doneMembers(part: MessagePart): JsonObject {
  return part.type === "output_text" ? { text: part.text, logprobs: part.logprobs } : { refusal: part.refusal };
}
