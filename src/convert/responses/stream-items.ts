/** The open output items of a responses stream; each converts its events to blocks of the hub. */
import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import { CallBlock, ReasoningBlock, RefusalBlock, TextBlock } from "../reply/blocks.ts";
import { nestsWithin } from "../reply/depth.ts";
import { logprobList, urlCitation } from "../reply/facts.ts";
import type { EventSink } from "../reply/sink.ts";
import { imageOfItem } from "../rules/media.ts";
import { callIdentity, callIdOf, callText, partText, reasoningText } from "./reply-decode.ts";

/** An item of any kind. `finish` takes its final form, if the upstream sent one; further calls have no effect. */
export interface StreamItem {
  readonly kind: "message" | "reasoning" | "call" | "image" | "other";
  finish(final: JsonObject | undefined): void;
}

/** Makes the item for an `item` object. */
export function itemFor(item: JsonObject, sink: EventSink): StreamItem {
  switch (item.type) {
    case "message":
      return new MessageItem(sink);
    case "reasoning":
      return new ReasoningItem(sink);
    case "function_call":
    case "custom_tool_call":
      return new CallItem(sink, item);
    case "image_generation_call":
      return new ImageItem(sink);
    default:
      return OTHER;
  }
}

/** Tools that the server runs, and unknown types (docs/translation-rules.md rule 42). */
const OTHER: StreamItem = Object.freeze({ kind: "other", finish() {} });

/** An image, which is emitted when it is done; partial images are not. */
class ImageItem implements StreamItem {
  readonly kind = "image";
  readonly #sink: EventSink;
  #shown = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  finish(final: JsonObject | undefined): void {
    const url = final && imageOfItem(final);
    if (url === undefined || this.#shown) return;
    this.#shown = true;
    this.#sink.emit({ type: "image", key: this.#sink.claim(), url });
  }
}

type PartBlock = TextBlock | RefusalBlock;

/** A message: one block per content part. */
export class MessageItem implements StreamItem {
  readonly kind = "message";
  readonly #sink: EventSink;
  /** The last block of each part; a part that has one has been streamed. */
  readonly #parts = new Map<number, PartBlock>();
  /** Those that have not ended: an item may be finished very often. */
  readonly #open = new Set<PartBlock>();
  /** The parts whose sources have been streamed. */
  readonly #cited = new Set<number>();
  #spoken = false;
  #finished = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  text(part: number, text: string, logprobs: readonly unknown[] | undefined): void {
    if (text === "") return;
    const open = this.#parts.get(part);
    const block = open?.kind === "text" && !open.ended ? open : this.#replace(part, this.#newText());
    block.append(text, logprobs);
  }

  refusal(part: number, text: string): void {
    if (text === "") return;
    const open = this.#parts.get(part);
    const block = open?.kind === "refusal" && !open.ended ? open : this.#replace(part, new RefusalBlock(this.#sink));
    this.#spoken = true;
    block.append(text);
  }

  cite(part: number, annotation: unknown): void {
    const open = this.#parts.get(part);
    const citation = urlCitation(annotation);
    if (open?.kind !== "text" || !citation) return;
    this.#cited.add(part);
    // Encoders keep sources until the end.
    this.#sink.claim();
    this.#sink.keep(citation.url);
    this.#sink.keep(citation.title);
    open.cite(citation);
  }

  /** A part in its final form: its text and its sources count only if none were streamed (rule 55). */
  finishPart(part: number, final: JsonObject): void {
    if (!this.#parts.has(part)) {
      const text = partText(final);
      if (final.type === "refusal") this.refusal(part, text);
      else this.text(part, text, logprobList(final.logprobs));
    }
    if (!this.#cited.has(part)) for (const annotation of arrayOf(final.annotations)) this.cite(part, annotation);
    this.#end(this.#parts.get(part));
  }

  finish(final: JsonObject | undefined): void {
    if (!this.#finished) this.#finishParts(arrayOf(final?.content));
    this.#finished = true;
    for (const block of this.#open) this.#end(block); // Including blocks that late deltas have opened since.
  }

  #finishParts(content: readonly unknown[]): void {
    for (const [index, one] of content.entries()) {
      if (this.#sink.excess !== undefined) break;
      const part = objectOf(one);
      if (part) this.finishPart(index, part);
    }
  }

  #newText(): TextBlock {
    const block = new TextBlock(this.#sink, !this.#spoken);
    this.#spoken = true;
    return block;
  }

  #replace<B extends PartBlock>(part: number, block: B): B {
    this.#end(this.#parts.get(part));
    this.#parts.set(part, block);
    this.#open.add(block);
    return block;
  }

  #end(block: PartBlock | undefined): void {
    if (block === undefined) return;
    block.end();
    this.#open.delete(block);
  }
}

/** Reasoning: one block, whose parts are separated by a blank line (rule 39). */
export class ReasoningItem implements StreamItem {
  readonly kind = "reasoning";
  readonly #sink: EventSink;
  readonly #block: ReasoningBlock;
  /** Summaries or raw text: only what came first is emitted, because the other repeats it. */
  #source: "summary" | "content" | undefined;
  readonly #parts = new Set<number>();
  #lastPart: number | undefined;
  /** Parts that an event has opened, and parts that an event has ended. */
  readonly #opened = new Set<number>();
  readonly #ended = new Set<number>();
  /** Whether its server numbers each delta as a part of its own (vLLM, docs/vendor-dialects.md). */
  #isCounting = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
    this.#block = new ReasoningBlock(sink);
  }

  /** A part of its content begins. */
  openPart(part: number): void {
    if (this.#opened.has(part)) return;
    this.#sink.claim();
    this.#opened.add(part);
  }

  append(source: "summary" | "content", part: number, text: string): void {
    this.#source ??= source;
    if (this.#source !== source || text === "") return;
    const isCounted = !this.#block.isEmpty && this.#lastPart !== part && this.#isCounted(part);
    const isNew = !this.#block.isEmpty && this.#lastPart !== part && !isCounted;
    // A delta with a number of its own is not a part: one block of reasoning may have thousands.
    if (!isCounted && this.#lastPart !== part && !this.#parts.has(part)) {
      this.#sink.claim();
      this.#parts.add(part);
    }
    this.#lastPart = part;
    this.#block.append(isNew ? `\n\n${text}` : text);
  }

  /**
   * Whether the number has no meaning: it is the next one, of content; no event has opened it; and the last part has
   * not ended.
   */
  #isCounted(part: number): boolean {
    const last = this.#lastPart ?? 0;
    if (this.#source !== "content" || part !== last + 1 || this.#opened.has(part) || this.#ended.has(last))
      return false;
    this.#isCounting = true;
    return true;
  }

  /** A part in its final form, for servers that do not stream it. */
  finishPart(source: "summary" | "content", part: number, text: string): void {
    if (!this.#parts.has(part) && !this.#isCounting) this.append(source, part, text);
    if (source === "content" && (this.#parts.has(part) || this.#lastPart === part)) this.#ended.add(part);
  }

  /** The final form contains the encrypted content; in the opening form it may be partial (rule 55). */
  finish(final: JsonObject | undefined): void {
    if (this.#block.ended) return;
    if (!nestsWithin(final)) {
      this.#sink.exceed("a reasoning item nests too deep");
      return;
    }
    if (final && this.#block.isEmpty) this.#block.append(reasoningText(final));
    const opaque = textOf(final?.encrypted_content);
    this.#block.end(opaque, final ?? this.#native(), this.#block.isEmpty);
  }

  /** An item that was never closed, assembled from its events. */
  #native(): JsonObject {
    const text = this.#block.text();
    if (this.#source === "content") {
      return { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text }] };
    }
    return { type: "reasoning", summary: text === "" ? [] : [{ type: "summary_text", text }] };
  }
}

/** A function call or a freeform call. */
export class CallItem implements StreamItem {
  readonly kind = "call";
  readonly #block: CallBlock;
  readonly #sink: EventSink;
  /** The whole input, from the opening or a `.done` event. */
  #whole = "";

  /** @param item the opening item; undefined if deltas came first and nothing is known of it. */
  constructor(sink: EventSink, item: JsonObject | undefined) {
    this.#sink = sink;
    this.#block = new CallBlock(sink);
    if (item) this.learn(item);
  }

  /** Whether only deltas have come so far. */
  get isUnnamed(): boolean {
    return !this.#block.isNamed && !this.#block.ended;
  }

  append(fragment: string): void {
    this.#block.append(fragment);
  }

  /** The whole input; used at the end if none was streamed (rule 55). */
  setWhole(input: string): void {
    if (input === "") return;
    this.#sink.keep(input);
    this.#whole = input;
  }

  finish(final: JsonObject | undefined): void {
    if (this.#block.ended) return;
    if (final) this.learn(final);
    this.#block.end(this.#whole);
  }

  /** Takes what an opening or final item contains about the call. */
  learn(item: JsonObject): void {
    this.#block.identify(callIdOf(item), callIdentity(item));
    this.setWhole(callText(item));
  }
}
