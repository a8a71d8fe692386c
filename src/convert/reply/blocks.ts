/**
 * The blocks of a streamed reply. Each emits its start, deltas and end, in this order and once, even if its input
 * repeats itself. A block that stays empty emits nothing, because it would not appear in a whole reply
 * (docs/translation-rules.md rule 53).
 */
import type { BlockKey, Citation } from "../hub-reply.ts";
import { FreeformInput } from "./freeform-input.ts";
import { Gathered, ObjectEnd } from "./gathered.ts";
import type { EventSink } from "./sink.ts";
import { type CallIdentity, callInput, type RestoredCall, restoreCall } from "./tool-call.ts";

/** Visible text. */
export class TextBlock {
  readonly kind = "text";
  readonly #sink: EventSink;
  readonly #key: BlockKey;
  readonly #startsMessage: boolean;
  #chars = 0;
  #started = false;
  #ended = false;

  constructor(sink: EventSink, startsMessage: boolean) {
    this.#sink = sink;
    this.#key = sink.claim();
    this.#startsMessage = startsMessage;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** UTF-16 units so far. */
  get chars(): number {
    return this.#chars;
  }

  append(text: string, logprobs: readonly unknown[] | undefined): void {
    if (this.#ended || text === "") return;
    this.#start();
    this.again(text);
    this.#sink.speaking = this;
    this.#sink.emit({ type: "text-delta", key: this.#key, text, logprobs });
  }

  /** Counts more text, whose events are emitted elsewhere. */
  again(text: string): void {
    this.#chars += text.length;
  }

  /** Emits a source, if there is text that it can belong to. */
  cite(citation: Citation): void {
    if (this.#started && !this.#ended) this.#sink.emit({ type: "text-citation", key: this.#key, citation });
  }

  end(): void {
    if (this.#started && !this.#ended) this.#sink.emit({ type: "text-end", key: this.#key });
    this.#ended = true;
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#sink.emit({ type: "text-start", key: this.#key, startsMessage: this.#startsMessage });
  }
}

/** The text of a refusal. */
export class RefusalBlock {
  readonly kind = "refusal";
  readonly #sink: EventSink;
  readonly #key: BlockKey;
  #started = false;
  #ended = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
    this.#key = sink.claim();
  }

  get ended(): boolean {
    return this.#ended;
  }

  append(text: string): void {
    if (this.#ended || text === "") return;
    if (!this.#started) this.#sink.emit({ type: "refusal-start", key: this.#key });
    this.#started = true;
    this.#sink.emit({ type: "refusal-delta", key: this.#key, text });
  }

  end(): void {
    if (this.#started && !this.#ended) this.#sink.emit({ type: "refusal-end", key: this.#key });
    this.#ended = true;
  }
}

/** A block of reasoning. Its text is kept, because the envelope at its end contains all of it (rule 38). */
export class ReasoningBlock {
  readonly kind = "reasoning";
  readonly #sink: EventSink;
  readonly #key: BlockKey;
  readonly #text = new Gathered();
  #started = false;
  #ended = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
    this.#key = sink.claim();
  }

  get ended(): boolean {
    return this.#ended;
  }

  get isEmpty(): boolean {
    return this.#text.isEmpty;
  }

  text(): string {
    return this.#text.text();
  }

  append(text: string): void {
    if (this.#ended || text === "") return;
    this.#start(false);
    this.again(text);
    this.#sink.speaking = this;
    this.#sink.emit({ type: "reasoning-delta", key: this.#key, text });
  }

  /** Keeps more text, whose events are emitted elsewhere. */
  again(text: string): void {
    this.#text.add(text);
    this.#sink.keep(text);
  }

  /**
   * @param opaque what must come back unchanged.
   * @param redacted whether the reasoning has no readable part.
   */
  end(opaque: string | undefined, native: unknown, redacted = false): void {
    if (this.#ended) return;
    if (opaque !== undefined) this.#start(redacted);
    if (this.#started) this.#sink.emit({ type: "reasoning-end", key: this.#key, opaque, native });
    this.#ended = true;
  }

  #start(redacted: boolean): void {
    if (this.#started) return;
    this.#started = true;
    this.#sink.emit({ type: "reasoning-start", key: this.#key, redacted });
  }
}

/**
 * A tool call. It starts once its id and name are known; earlier deltas are held back. A call without an id gets one
 * when it ends; a call without a name is never shown (rule 54). For a wrapped freeform call, the text inside its
 * arguments is emitted (rule 33).
 */
export class CallBlock {
  readonly #sink: EventSink;
  readonly #key: BlockKey;
  readonly #input = new Gathered();
  readonly #objectEnd = new ObjectEnd();
  #id: string | undefined;
  #identity: CallIdentity | undefined;
  #restored: RestoredCall | undefined;
  #clientId: string | undefined;
  /** For a wrapped freeform call: the reader of its text, and the number of characters emitted. */
  readonly #freeform = new FreeformInput();
  #textChars = 0;
  #emitted = false;
  #hasInput = false;
  #inputChars = 0;
  #ended = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
    this.#key = sink.claim();
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The upstream's id, once it is known. */
  get upstreamId(): string | undefined {
    return this.#id;
  }

  /** The id that the client has for the call, once it has started. */
  get clientId(): string | undefined {
    return this.#clientId;
  }

  get isNamed(): boolean {
    return this.#identity !== undefined;
  }

  /** How many characters its arguments have so far. */
  get inputChars(): number {
    return this.#inputChars;
  }

  /** Whether it has no arguments so far. */
  get isBlank(): boolean {
    return !this.#hasInput;
  }

  /** Whether the arguments so far are one whole JSON object. */
  get isComplete(): boolean {
    return this.#identity?.freeform !== true && this.#objectEnd.isComplete;
  }

  /** Adds id and name; what is already known stays. */
  identify(id: string | undefined, identity: CallIdentity | undefined): void {
    if (this.#ended) return;
    if (this.#id === undefined) this.#sink.keep(id);
    if (this.#identity === undefined) this.#sink.keep(identity?.name);
    this.#id ??= id;
    this.#identity ??= identity;
    if (this.#id !== undefined) this.#start();
  }

  /** Starts the call as soon as it has a name, with an id of ours, for an upstream that never sends ids. */
  startWithoutId(): void {
    this.#start();
  }

  append(fragment: string): void {
    if (this.#ended || fragment === "") return;
    this.#hasInput ||= fragment.trim() !== "";
    this.#inputChars += fragment.length;
    this.#input.add(fragment);
    this.#objectEnd.feed(fragment);
    this.#sink.keep(fragment);
    if (this.#restored !== undefined) this.#emit(fragment);
  }

  #start(): void {
    if (this.#ended || this.#restored !== undefined || this.#identity === undefined) return;
    this.#restored = restoreCall(this.#sink.plan, this.#identity);
    const id = this.#sink.callIds.take(this.#id);
    this.#clientId = id;
    this.#sink.emit({ type: "tool-start", key: this.#key, id, tool: this.#restored.tool });
    this.#emit(this.#input.text());
  }

  #emit(fragment: string): void {
    if (this.#restored?.wrapped) {
      this.#emitText(this.#freeform.push(fragment));
      return;
    }
    const input = this.#emitted || this.#identity?.freeform ? fragment : fragment.trimStart();
    if (input === "") return;
    this.#emitted = true;
    this.#sink.emit({ type: "tool-delta", key: this.#key, input });
  }

  #emitText(text: string): void {
    if (text === "") return;
    this.#textChars += text.length;
    this.#sink.emit({ type: "tool-delta", key: this.#key, input: text });
  }

  /** @param whole the whole input, for upstreams that send it only at the end; used if nothing was streamed. */
  end(whole: string = ""): void {
    if (this.#ended) return;
    if (this.#input.text().trim() === "") this.append(whole);
    this.#start();
    this.#ended = true;
    if (this.#restored === undefined || this.#identity === undefined) return;
    const { wrapped } = this.#restored;
    const { freeform } = this.#identity;
    const text = this.#input.text();
    const input = callInput(this.#restored, freeform, wrapped || freeform ? text : text.trimStart());
    // What has not been emitted yet: all arguments that have another form, and the rest of a cut escape.
    if (wrapped) this.#emitText(input.slice(this.#textChars));
    this.#sink.emit({ type: "tool-end", key: this.#key, input });
  }
}
