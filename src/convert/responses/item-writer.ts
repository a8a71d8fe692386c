/**
 * Writes the items of a responses stream. The `done` event of an item is sent when the next item begins or the reply
 * stops, because only then is it known whether the item was cut (docs/translation-rules.md rule 43) and whether a
 * message continues with another part (rule 40).
 */

import type { JsonObject } from "../../values/json-object.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import type { BlockEvent, Citation } from "../hub-reply.ts";
import { safeCallId } from "../rules/ids.ts";
import {
  annotationOf,
  callItem,
  callItemId,
  type ItemStatus,
  imageItem,
  imageText,
  itemId,
  keptReasoning,
  type MessagePart,
  messageItem,
  refusalPart,
  textPart,
} from "./items.ts";
import { KeptItems, writeCarrier } from "./references/sealing.ts";

/** Writes an event. */
export type Emit = (type: string, members: JsonObject) => void;

export class ItemWriter {
  readonly #plan: ReplyPlan;
  readonly #context: ConvertContext;
  readonly #emit: Emit;
  readonly #finished: JsonObject[] = [];
  readonly #kept = new KeptItems();
  #open: OpenItem | undefined;
  #hasSpoken = false;

  constructor(plan: ReplyPlan, context: ConvertContext, emit: Emit) {
    this.#plan = plan;
    this.#context = context;
    this.#emit = emit;
  }

  /** The finished items, which the terminal event repeats. */
  get finished(): readonly JsonObject[] {
    return this.#finished;
  }

  /** Whether the model has written any text in a message. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  push(event: BlockEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#speak(event.text, "output_text", event.logprobs ?? []);
        break;
      case "text-citation":
        this.#cite(event.citation);
        break;
      case "refusal-delta":
        this.#speak(event.text, "refusal", []);
        break;
      case "text-end":
      case "refusal-end":
        this.#endPart();
        break;
      case "image":
        this.#show(event.url);
        break;
      case "reasoning-start":
        this.#startReasoning();
        break;
      case "reasoning-delta":
        this.#reason(event.text);
        break;
      case "reasoning-end":
        this.#endReasoning(event.native);
        break;
      case "tool-start":
        this.#startCall(event.id, event.tool);
        break;
      case "tool-delta":
        this.#continueCall(event.input);
        break;
      case "tool-end":
        this.#endCall(event.input);
        break;
      default:
        break;
    }
  }

  /** Records more of the open text, whose events are written elsewhere. */
  again(text: string): void {
    const open = this.#open;
    const part = open?.type === "message" ? open.parts.at(-1) : undefined;
    if (part?.type === "output_text") part.text += text;
    if (open?.type === "reasoning") open.text += text;
  }

  /** Writes a whole refusal. */
  refuse(text: string): void {
    this.#speak(text, "refusal", []);
    this.#endPart();
  }

  /** Ends the open item, if any. */
  close(status: ItemStatus): void {
    const open = this.#open;
    if (!open) return;
    if (open.type === "message") this.#done(messageItem(open.id, status, open.parts));
    if (open.type === "call") this.#done(callItem(open.id, open.callId, open.tool, open.input, status));
    this.#open = undefined;
  }

  /** Ends the open item if it is complete: the stream fails, but complete items stay complete (rule 49). */
  closeWhole(): void {
    const open = this.#open;
    if ((open?.type === "message" && !open.partOpen) || (open?.type === "call" && open.ended)) this.close("completed");
  }

  /** Writes the carrier of a stream that fails: an open message as far as it was written, an open call not at all. */
  carryBroken(): void {
    if (!this.#plan.referable) return;
    const open = this.#open;
    if (open?.type === "message" && open.parts.length > 0) {
      this.#kept.add(messageItem(open.id, "incomplete", open.parts));
    }
    this.#kept.breakOff();
    this.carry();
  }

  /** Writes the carrier, after all items are done. */
  carry(): void {
    const carrier = this.#kept.carrier(this.#context);
    // After an open item, which has the index before.
    if (carrier) writeCarrier(carrier, this.#finished.length + (this.#open ? 1 : 0), this.#emit);
  }

  #done(item: JsonObject, kept = item): void {
    if (this.#plan.referable) this.#kept.add(kept);
    this.#emit("response.output_item.done", { output_index: this.#finished.length, item });
    this.#finished.push(item);
  }

  #added(item: JsonObject): void {
    if (this.#plan.referable) this.#kept.begin(item.id);
    this.#emit("response.output_item.added", { output_index: this.#finished.length, item });
  }

  /** Members that locate an event of the open item. */
  #place(item_id: string): JsonObject {
    return { item_id, output_index: this.#finished.length };
  }

  // ---------------------------------------------------------------------------------------------------------- messages

  #speak(delta: string, type: MessagePart["type"], logprobs: readonly unknown[]): void {
    if (delta === "") return;
    this.#hasSpoken = true;
    const message = this.#openMessage();
    const part = this.#openPart(message, type);
    if (part.type === "output_text") {
      part.text += delta;
      part.logprobs.push(...logprobs);
      this.#emit("response.output_text.delta", { ...this.#partPlace(message), delta, logprobs });
    } else {
      part.refusal += delta;
      this.#emit("response.refusal.delta", { ...this.#partPlace(message), delta });
    }
  }

  #cite(citation: Citation): void {
    const message = this.#openMessage();
    const part = this.#openPart(message, "output_text");
    if (part.type !== "output_text") return;
    const annotation = annotationOf(citation, part.text);
    const place = { ...this.#partPlace(message), annotation_index: part.annotations.length };
    part.annotations.push(annotation);
    this.#emit("response.output_text.annotation.added", { ...place, annotation });
  }

  #openMessage(): OpenMessage {
    if (this.#open?.type === "message") return this.#open;
    this.close("completed");
    const message: OpenMessage = { type: "message", id: itemId("msg_", this.#context), parts: [], partOpen: false };
    this.#open = message;
    this.#added(messageItem(message.id, "in_progress", []));
    return message;
  }

  #openPart(message: OpenMessage, type: MessagePart["type"]): MessagePart {
    const last = message.parts.at(-1);
    if (message.partOpen && last) return last;
    const part = type === "output_text" ? textPart() : refusalPart();
    message.parts.push(part);
    message.partOpen = true;
    this.#emit("response.content_part.added", { ...this.#partPlace(message), part });
    return part;
  }

  #partPlace(message: OpenMessage): JsonObject {
    return { ...this.#place(message.id), content_index: message.parts.length - 1 };
  }

  #endPart(): void {
    if (this.#open?.type !== "message" || !this.#open.partOpen) return;
    const part = this.#open.parts.at(-1);
    if (!part) return;
    this.#open.partOpen = false;
    const place = this.#partPlace(this.#open);
    this.#emit(`response.${part.type}.done`, { ...place, ...doneMembers(part) });
    this.#emit("response.content_part.done", { ...place, part });
  }

  /** An image that the model made. One behind a URL becomes text, because an image item has no member for it. */
  #show(url: string): void {
    const text = imageText(url);
    if (text !== undefined) {
      this.#speak(text, "output_text", []);
      this.#endPart();
      return;
    }
    this.close("completed");
    const { item, kept } = imageItem(url, this.#context);
    this.#added({ ...item, status: "in_progress", result: null });
    this.#emit("response.image_generation_call.completed", this.#place(String(item.id)));
    this.#done(item, kept);
  }

  // --------------------------------------------------------------------------------------------------------- reasoning

  #startReasoning(): void {
    this.close("completed");
    const id = itemId("rs_", this.#context);
    this.#open = { type: "reasoning", id, text: "" };
    this.#added({ id, type: "reasoning", summary: [] });
  }

  #reason(delta: string): void {
    const open = this.#open;
    if (open?.type !== "reasoning" || delta === "") return;
    const place = this.#place(open.id);
    const form = this.#reasoningForm;
    if (open.text === "") this.#emit(form.added, { ...place, ...form.index, part: { type: form.part, text: "" } });
    open.text += delta;
    this.#emit(form.delta, { ...place, ...form.index, delta });
  }

  #endReasoning(native: unknown): void {
    const open = this.#open;
    if (open?.type !== "reasoning") return;
    const place = this.#place(open.id);
    const form = this.#reasoningForm;
    const { text } = open;
    if (text !== "") {
      this.#emit(form.textDone, { ...place, ...form.index, text });
      this.#emit(form.done, { ...place, ...form.index, part: { type: form.part, text } });
    }
    const { item, kept } = keptReasoning(open.id, { text, native }, this.#plan, this.#context);
    this.#done(item, kept);
    this.#open = undefined;
  }

  get #reasoningForm() {
    return this.#plan.reasoning.summary ? SUMMARY : RAW_REASONING;
  }

  // ------------------------------------------------------------------------------------------------------------- calls

  #startCall(id: string, tool: ToolRef): void {
    this.close("completed");
    const call: OpenCall = {
      type: "call",
      id: callItemId(tool, this.#context),
      callId: safeCallId(id),
      tool,
      begun: false,
      ended: false,
      input: "",
    };
    this.#open = call;
    // The action of a typed call contains everything and is known only at its end.
    if (DELTAS.has(tool.kind)) this.#added(callItem(call.id, call.callId, tool, "", "in_progress"));
  }

  #continueCall(delta: string): void {
    const call = this.#open;
    if (call?.type !== "call" || delta === "") return;
    const stem = DELTAS.get(call.tool.kind);
    if (stem === undefined) return;
    call.begun = true;
    this.#emit(`${stem}.delta`, { ...this.#place(call.id), delta });
  }

  #endCall(input: string): void {
    const call = this.#open;
    if (call?.type !== "call") return;
    call.ended = true;
    const stem = DELTAS.get(call.tool.kind);
    if (stem === undefined) {
      call.input = input;
      this.#added(callItem(call.id, call.callId, call.tool, input, "in_progress"));
      return;
    }
    if (!call.begun && input.trim() !== "{}") this.#continueCall(input);
    call.input = call.tool.kind === "function" && input.trim() === "" ? "{}" : input;
    const whole = call.tool.kind === "custom" ? { input: call.input } : { arguments: call.input };
    this.#emit(`${stem}.done`, { ...this.#place(call.id), ...whole });
  }
}

/** Kinds of calls whose input is streamed, with the names of their events. */
const DELTAS: ReadonlyMap<string, string> = new Map([
  ["function", "response.function_call_arguments"],
  ["custom", "response.custom_tool_call_input"],
]);

/** The two forms of reasoning (rule 38). */
const SUMMARY = {
  added: "response.reasoning_summary_part.added",
  delta: "response.reasoning_summary_text.delta",
  textDone: "response.reasoning_summary_text.done",
  done: "response.reasoning_summary_part.done",
  part: "summary_text",
  index: { summary_index: 0 },
} as const;

const RAW_REASONING = {
  added: "response.content_part.added",
  delta: "response.reasoning_text.delta",
  textDone: "response.reasoning_text.done",
  done: "response.content_part.done",
  part: "reasoning_text",
  index: { content_index: 0 },
} as const;

/* The single open item of a responses stream: its content so far, and what must be written when it ends. */

/** A message; its item stays open while further parts may follow. */
interface OpenMessage {
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

/** A call. It is complete once its input is known, but its `done` event is sent later. */
interface OpenCall {
  readonly type: "call";
  readonly id: string;
  readonly callId: string;
  readonly tool: ToolRef;
  /** Whether a delta of its input has been sent. */
  begun: boolean;
  ended: boolean;
  input: string;
}

type OpenItem = OpenMessage | OpenReasoning | OpenCall;

/** The members of the event that ends a part's text. */
function doneMembers(part: MessagePart): JsonObject {
  return part.type === "output_text" ? { text: part.text, logprobs: part.logprobs } : { refusal: part.refusal };
}
