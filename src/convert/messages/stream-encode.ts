/**
 * Streams for messages clients (docs/translation-rules.md rules 39 to 56): blocks strictly in sequence, numbered from 0
 * without gaps.
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Usage } from "../../values/tokens/usage.ts";
import { sseFrame } from "../../wire/sse.ts";
import type { ClientFrames, ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import { type ReplyEvent, type Stop, stopFor } from "../hub-reply.ts";
import { safeCallId } from "../rules/ids.ts";
import { imageNote } from "../rules/media.ts";
import { argumentsObject } from "../rules/tool-wrap.ts";
import { quiet, type StreamEncoder, semantic, terminal } from "../stream-encoder.ts";
import { renderStreamFailure } from "./error.ts";
import { isShown, messageBegun, signatureOf, startOfToolUse, stopMembers, writeReplyUsage } from "./reply-encode.ts";

const VARYING = { "text-delta": { text: "text" }, "reasoning-delta": { text: "thinking" } } as const;

export class MessagesStreamEncoder implements StreamEncoder {
  readonly varying = VARYING;
  readonly #plan: ReplyPlan;
  readonly #context: ConvertContext;
  /** The number of the open block, or of the next one. */
  #index = 0;
  /** Whether the hub's open block has been opened for the client; empty blocks never are (rule 40). */
  #isOpen = false;
  /** The beginning of the open reasoning; only whether it has any text matters. */
  #reasoning = "";
  /**
   * Whether the open call's arguments are streamed, or held back until the call's end because they are not an object.
   */
  #input: "unknown" | "streamed" | "held" = "unknown";
  #tool: ToolRef | undefined;
  #refused = "";
  #tier: string | undefined;
  #usage: Usage | undefined;
  #stop: Stop = stopFor("end");

  constructor(plan: ReplyPlan, context: ConvertContext) {
    this.#plan = plan;
    this.#context = context;
  }

  push(event: ReplyEvent): readonly ClientFrames[] {
    switch (event.type) {
      case "reply-start":
        this.#tier = event.serviceTier;
        return [this.#startMessage()];
      case "text-delta":
        return this.#text(event.text);
      case "refusal-delta":
        this.#refused += event.text;
        return this.#text(event.text);
      case "image":
        return [...this.#text(imageNote(event.url)), ...this.#close()];
      case "text-end":
      case "refusal-end":
        return this.#close();
      case "reasoning-start":
        this.#reasoning = "";
        return [];
      case "reasoning-delta":
        return this.#think(event.text);
      case "reasoning-end":
        return this.#endThinking(event.opaque, event.native);
      case "tool-start":
        return this.#startTool(event.id, event.tool);
      case "tool-delta":
        return this.#continueInput(event.input);
      case "tool-end":
        return [...this.#endInput(event.input), ...this.#close()];
      case "usage-update":
        this.#usage = event.usage;
        return [];
      case "ping":
        return [quiet(this.heartbeat())];
      case "reply-stop":
        this.#stop = event.stop;
        return [];
      case "reply-end":
        return [this.#endMessage()];
      default:
        return [];
    }
  }

  /** Deltas do not depend on the deltas before them. */
  again(): number {
    return 0;
  }

  #startMessage(): ClientFrames {
    const message = messageBegun(this.#plan, this.#context, writeReplyUsage(this.#usage, this.#tier));
    return quiet(frame("message_start", { message }));
  }

  #text(text: string): readonly ClientFrames[] {
    if (text === "") return [];
    const opening = this.#open({ type: "text", text: "", citations: null });
    return [...opening, semantic(this.#delta({ type: "text_delta", text }))];
  }

  #think(text: string): readonly ClientFrames[] {
    this.#reasoning ||= text;
    if (text === "" || this.#plan.reasoning.visibility !== "full") return [];
    const opening = this.#open({ type: "thinking", thinking: "", signature: "" });
    return [...opening, semantic(this.#delta({ type: "thinking_delta", thinking: text }))];
  }

  /** The signature is known when the block ends. A block without readable text consists of its signature only. */
  #endThinking(opaque: string | undefined, native: unknown): readonly ClientFrames[] {
    const reasoning = { text: this.#reasoning, opaque, native };
    if (!this.#isOpen && !isShown(reasoning, this.#plan)) return [];
    const opening = this.#open({ type: "thinking", thinking: "", signature: "" });
    const signature = signatureOf(reasoning, this.#plan, this.#context);
    const signed = signature === "" ? [] : [quiet(this.#delta({ type: "signature_delta", signature }))];
    return [...opening, ...signed, ...this.#close()];
  }

  #startTool(id: string, tool: ToolRef): readonly ClientFrames[] {
    this.#tool = tool;
    this.#input = tool.kind === "custom" ? "held" : "unknown";
    this.#isOpen = true;
    const content_block = startOfToolUse(safeCallId(id), tool);
    return [semantic(frame("content_block_start", { index: this.#index, content_block }))];
  }

  /** Streams arguments once they are known to be an object; no other input is valid (rule 36). */
  #continueInput(input: string): readonly ClientFrames[] {
    if (this.#input === "streamed") return input === "" ? [] : [this.#inputDelta(input)];
    if (this.#input === "held") return [];
    const begun = input.trimStart();
    if (begun === "") return [];
    this.#input = begun.startsWith("{") ? "streamed" : "held";
    return this.#continueInput(begun);
  }

  #endInput(input: string): readonly ClientFrames[] {
    if (this.#input === "streamed" || !this.#tool) return [];
    const json = JSON.stringify(argumentsObject(this.#tool, input));
    return json === "{}" ? [] : [this.#inputDelta(json)];
  }

  #inputDelta(partial_json: string): ClientFrames {
    return semantic(this.#delta({ type: "input_json_delta", partial_json }));
  }

  /** Opens the block for the client unless it is already open. */
  #open(content_block: JsonObject): readonly ClientFrames[] {
    if (this.#isOpen) return [];
    this.#isOpen = true;
    return [quiet(frame("content_block_start", { index: this.#index, content_block }))];
  }

  #delta(delta: JsonObject): Uint8Array {
    return frame("content_block_delta", { index: this.#index, delta });
  }

  #close(): readonly ClientFrames[] {
    if (!this.#isOpen) return [];
    this.#isOpen = false;
    return [quiet(frame("content_block_stop", { index: this.#index++ }))];
  }

  /** The only `message_delta` is sent at the end, because usage may follow the stop reason. */
  #endMessage(): ClientFrames {
    const usage = writeReplyUsage(this.#usage, this.#tier);
    const delta = stopMembers(this.#stop, this.#refused);
    return terminal(frame("message_delta", { delta, usage }), frame("message_stop", {}));
  }

  heartbeat(): Uint8Array {
    return frame("ping", {});
  }

  fail(answer: ErrorAnswer, code: string, requestId: string): Uint8Array {
    return sseFrame(renderStreamFailure(answer, requestId, code), "error");
  }
}

function frame(type: string, members: JsonObject): Uint8Array {
  return sseFrame(JSON.stringify({ type, ...members }), type);
}
