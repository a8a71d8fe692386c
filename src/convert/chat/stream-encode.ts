/** Streams for chat clients (docs/translation-rules.md rules 39 to 56). */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { NO_USAGE, type Usage } from "../../values/tokens/usage.ts";
import { sseFrame } from "../../wire/sse.ts";
import type { ClientFrames, ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import { type Citation, type ReplyEvent, type Stop, stopFor } from "../hub-reply.ts";
import { safeCallId } from "../rules/ids.ts";
import { quiet, type StreamEncoder, semantic, terminal } from "../stream-encoder.ts";
import { renderStreamFailure } from "./error.ts";
import {
  annotationOf,
  completionId,
  finishReason,
  imageOf,
  pieceOfCall,
  REASONING_SEPARATOR,
  separatorBetweenMessages,
  startOfCall,
} from "./reply-encode.ts";
import { writeUsage } from "./usage.ts";

const VARYING = { "text-delta": { text: "content" }, "reasoning-delta": { text: "reasoning_content" } } as const;

interface StreamedCall {
  readonly tool: ToolRef;
  /** Its position among the calls, numbered from 0 without gaps. */
  readonly ordinal: number;
  begun: boolean;
}

/** Writes `chat.completion.chunk`s. The finish reason is sent at the end of the stream, when it is final. */
export class ChatStreamEncoder implements StreamEncoder {
  readonly varying = VARYING;
  readonly #plan: ReplyPlan;
  readonly #id: string;
  #createdS: number;
  #tier: string | undefined;
  #calls = 0;
  #images = 0;
  #openCall: StreamedCall | undefined;
  #hasText = false;
  #hasReasoning = false;
  #hasRefusal = false;
  /** Separators that must be written before the next text and before the next reasoning. */
  #textSeparator = "";
  #reasoningSeam = "";
  /** UTF-16 units of the content so far, and how many of them came before the open text; undefined: none is open. */
  #contentChars = 0;
  #textOffset: number | undefined;
  /** Sources on the web; they are sent at once at the end, because OpenAI's SDK keeps the last such delta only. */
  readonly #annotations: JsonObject[] = [];
  #usage: Usage | undefined;
  #stop: Stop = stopFor("end");

  constructor(plan: ReplyPlan, context: ConvertContext) {
    this.#plan = plan;
    this.#id = completionId(context);
    this.#createdS = context.nowS;
  }

  push(event: ReplyEvent): readonly ClientFrames[] {
    switch (event.type) {
      case "reply-start":
        this.#createdS = event.createdS ?? this.#createdS;
        this.#tier = event.serviceTier;
        return [quiet(this.#chunk({ role: "assistant", content: "", refusal: null }))];
      case "text-start":
        if (event.startsMessage && this.#hasText) this.#textSeparator = separatorBetweenMessages(this.#plan);
        this.#textOffset = this.#contentChars + this.#textSeparator.length;
        return [];
      case "text-delta":
        return this.#text(event.text, event.logprobs);
      case "text-citation":
        this.#cite(event.citation);
        return [];
      case "text-end":
        this.#textOffset = undefined;
        return [];
      case "refusal-delta":
        return this.#refusal(event.text);
      case "reasoning-start":
        if (this.#hasReasoning) this.#reasoningSeam = REASONING_SEPARATOR;
        return [];
      case "reasoning-delta":
        return this.#reasoning(event.text);
      case "image":
        return [semantic(this.#chunk({ images: [imageOf(event.url, this.#images++)] }))];
      case "tool-start":
        return this.#startCall(event.id, event.tool);
      case "tool-delta":
        return this.#continueCall(event.input);
      case "tool-end":
        return this.#endCall(event.input);
      case "usage-update":
        this.#usage = event.usage;
        return [];
      case "reply-stop":
        this.#stop = event.stop;
        return this.#explainRefusal(event.stop);
      case "reply-end":
        return [terminal(...this.#ending())];
      default:
        return [];
    }
  }

  /** Chunks do not depend on the chunks before them; only the positions of sources do. */
  again(text: string): number {
    if (this.#textOffset !== undefined) this.#contentChars += text.length;
    return 0;
  }

  #text(text: string, logprobs: readonly unknown[] | undefined): readonly ClientFrames[] {
    if (text === "") return [];
    const content = this.#textSeparator + text;
    this.#textSeparator = "";
    this.#contentChars += content.length;
    this.#hasText = true;
    return [semantic(this.#chunk({ content }, logprobs && { content: logprobs, refusal: null }))];
  }

  #cite(citation: Citation): void {
    const offset = this.#textOffset ?? 0;
    this.#annotations.push(annotationOf(citation, offset, this.#contentChars - offset));
  }

  #refusal(text: string): readonly ClientFrames[] {
    if (text === "") return [];
    this.#hasRefusal = true;
    return [semantic(this.#chunk({ refusal: text }))];
  }

  #reasoning(text: string): readonly ClientFrames[] {
    if (text === "") return [];
    const reasoning = this.#reasoningSeam + text;
    this.#reasoningSeam = "";
    this.#hasReasoning = true;
    return [semantic(this.#chunk({ reasoning_content: reasoning }))];
  }

  #startCall(id: string, tool: ToolRef): readonly ClientFrames[] {
    const ordinal = this.#calls++;
    this.#openCall = { tool, ordinal, begun: false };
    if (!this.#plan.deprecatedFunctions) {
      return this.#callChunk(ordinal, startOfCall(safeCallId(id), tool));
    }
    if (ordinal > 0) return []; // The deprecated form has room for one call (rule 37).
    return [semantic(this.#chunk({ function_call: { name: tool.name, arguments: "" } }))];
  }

  #continueCall(input: string): readonly ClientFrames[] {
    const call = this.#openCall;
    if (!call || input === "") return [];
    call.begun = true;
    if (!this.#plan.deprecatedFunctions) return this.#callChunk(call.ordinal, pieceOfCall(call.tool, input));
    return call.ordinal > 0 ? [] : [semantic(this.#chunk({ function_call: { arguments: input } }))];
  }

  /** A call without arguments gets `{}`, because `JSON.parse("")` fails in every client. */
  #endCall(input: string): readonly ClientFrames[] {
    const call = this.#openCall;
    if (!call) return [];
    const whole = call.tool.kind !== "custom" && input.trim() === "" ? "{}" : input;
    const frames = call.begun ? [] : this.#continueCall(whole);
    this.#openCall = undefined;
    return frames;
  }

  #callChunk(index: number, fields: JsonObject): readonly ClientFrames[] {
    return [semantic(this.#chunk({ tool_calls: [{ index, ...fields }] }))];
  }

  /** The vendor's explanation of a refusal, if the model wrote none (rule 43). */
  #explainRefusal({ refusal }: Stop): readonly ClientFrames[] {
    return refusal?.explanation && !this.#hasRefusal ? this.#refusal(refusal.explanation) : [];
  }

  #ending(): Uint8Array[] {
    const finish = finishReason(this.#stop.reason, this.#plan);
    const frames = this.#annotations.length > 0 ? [this.#chunk({ annotations: this.#annotations })] : [];
    frames.push(this.#chunk({}, undefined, finish));
    if (this.#plan.includeUsage) {
      frames.push(frame({ ...this.#head(), choices: [], usage: writeUsage(this.#usage ?? NO_USAGE) }));
    }
    return [...frames, sseFrame("[DONE]")];
  }

  #chunk(delta: JsonObject, logprobs: JsonObject | null = null, finishReason: string | null = null): Uint8Array {
    const choices = [{ index: 0, delta, logprobs, finish_reason: finishReason }];
    return frame({ ...this.#head(), choices, usage: this.#plan.includeUsage ? null : undefined });
  }

  #head(): JsonObject {
    return {
      id: this.#id,
      object: "chat.completion.chunk",
      created: this.#createdS,
      model: this.#plan.model,
      service_tier: this.#tier,
    };
  }

  heartbeat(): Uint8Array {
    return this.#chunk({});
  }

  fail(answer: ErrorAnswer, code: string, requestId: string): Uint8Array {
    return sseFrame(renderStreamFailure(answer, code, requestId));
  }
}

function frame(value: JsonObject): Uint8Array {
  return sseFrame(JSON.stringify(value));
}
