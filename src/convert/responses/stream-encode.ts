/**
 * Streams for responses clients (docs/translation-rules.md rules 39 to 56): items in sequence, events numbered from 0.
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Usage } from "../../values/tokens/usage.ts";
import { sseFrame } from "../../wire/sse.ts";
import type { ClientFrames, ConvertContext } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type ReplyEvent, type Stop, stopFor } from "../hub-reply.ts";
import { isTruncated, quiet, type StreamEncoder, semantic, terminal } from "../stream-encoder.ts";
import { renderStreamFailure } from "./error.ts";
import { ItemWriter } from "./item-writer.ts";
import { explanation } from "./reply-encode.ts";
import { incompleteReason, type ResponseIdentity, responseEnded, responseId, responseInProgress } from "./response.ts";

const DELTA = { text: "delta", number: "sequence_number" } as const;
const VARYING = { "text-delta": DELTA, "reasoning-delta": DELTA } as const;

export class ResponsesStreamEncoder implements StreamEncoder {
  readonly varying = VARYING;
  readonly #plan: ReplyPlan;
  readonly #context: ConvertContext;
  readonly #items: ItemWriter;
  #identity: ResponseIdentity;
  #sequenceNumber = 0;
  #frames: Uint8Array[] = [];
  #usage: Usage | undefined;
  #stop: Stop = stopFor("end");

  constructor(plan: ReplyPlan, context: ConvertContext) {
    this.#plan = plan;
    this.#context = context;
    this.#identity = { id: responseId(context), createdS: context.nowS, tier: undefined };
    this.#items = new ItemWriter(plan, context, (type, members) => this.#emit(type, members));
  }

  push(event: ReplyEvent): readonly ClientFrames[] {
    const isTerminal = event.type === "reply-end";
    this.#write(event);
    const frames = this.#frames;
    if (frames.length === 0) return [];
    this.#frames = [];
    return [isTerminal ? terminal(...frames) : SEMANTIC.has(event.type) ? semantic(...frames) : quiet(...frames)];
  }

  again(text: string, deltas: number): number {
    this.#items.again(text);
    const first = this.#sequenceNumber;
    this.#sequenceNumber += deltas;
    return first;
  }

  #write(event: ReplyEvent): void {
    switch (event.type) {
      case "reply-start":
        this.#identity = {
          id: this.#identity.id,
          createdS: event.createdS ?? this.#identity.createdS,
          tier: event.serviceTier,
        };
        this.#emit("response.created", { response: responseInProgress(this.#identity, this.#plan) });
        this.#emit("response.in_progress", { response: responseInProgress(this.#identity, this.#plan) });
        return;
      case "usage-update":
        this.#usage = event.usage;
        return;
      case "ping":
        this.#emit("keepalive", {});
        return;
      case "reply-stopping":
        // A client that acts on items, as Codex does on calls, need not wait for the usage.
        this.#items.close(isTruncated(event.stop) ? "incomplete" : "completed");
        return;
      case "reply-stop":
        this.#settle(event.stop);
        return;
      case "reply-end":
        this.#end();
        return;
      case "reply-error":
        return;
      default:
        this.#items.push(event);
    }
  }

  /** Only now is it known whether the last item is complete (rule 43). */
  #settle(stop: Stop): void {
    this.#stop = stop;
    const words = this.#items.hasSpoken ? undefined : explanation(stop);
    if (words !== undefined) this.#items.refuse(words);
    this.#items.close(isTruncated(stop) ? "incomplete" : "completed");
  }

  #end(): void {
    this.#items.carry();
    const ending = { stop: this.#stop, output: this.#items.finished, usage: this.#usage };
    const response = responseEnded(this.#identity, this.#plan, this.#context, ending);
    this.#emit(incompleteReason(this.#stop) === undefined ? "response.completed" : "response.incomplete", { response });
  }

  #emit(type: string, members: JsonObject): void {
    const data = JSON.stringify({ type, sequence_number: this.#sequenceNumber++, ...members });
    this.#frames.push(sseFrame(data, type));
  }

  heartbeat(): Uint8Array {
    const sequence_number = this.#sequenceNumber++;
    return sseFrame(JSON.stringify({ type: "keepalive", sequence_number }), "keepalive");
  }

  fail(answer: ErrorAnswer, code: string, requestId: string): Uint8Array {
    this.#items.closeWhole();
    this.#items.carryBroken();
    const response = { ...responseInProgress(this.#identity, this.#plan), output: this.#items.finished };
    const { error, failed } = renderStreamFailure(answer, code, {
      response,
      sequenceNumber: this.#sequenceNumber,
      requestId,
    });
    const last = this.#frames;
    this.#frames = [];
    return Buffer.concat([...last, sseFrame(error, "error"), sseFrame(failed, "response.failed")]);
  }
}

/** Events whose frames contain the model's text, images or calls. */
const SEMANTIC: ReadonlySet<ReplyEvent["type"]> = new Set([
  "text-delta",
  "refusal-delta",
  "image",
  "reasoning-delta",
  "tool-start",
  "tool-delta",
  "tool-end",
]);
