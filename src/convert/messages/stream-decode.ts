/** Decodes a messages stream to hub events (docs/translation-rules.md rules 43, 44 and 48 to 55). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { Varying } from "../delta-template.ts";
import type { Citation } from "../hub-reply.ts";
import { CallBlock, ReasoningBlock, TextBlock } from "../reply/blocks.ts";
import { StreamDecoder } from "../reply/decoder.ts";
import type { EventSink } from "../reply/sink.ts";
import { errorIn, invalid } from "../watch.ts";
import { MessagesOutput } from "./produced.ts";
import { citationOf, inputText, redactedBlock, serviceTierOf, stopOf, thinkingBlock } from "./reply-decode.ts";
import { MessageUsage } from "./usage.ts";
import { varyingOf } from "./watch.ts";

/** An open content block; `undefined` for a block of a tool that the server runs. */
type Open =
  | { readonly kind: "text"; readonly block: TextBlock; readonly citations: Citation[] }
  | { readonly kind: "thinking"; readonly block: ReasoningBlock; signature: string | undefined }
  | { readonly kind: "redacted"; readonly block: ReasoningBlock; readonly data: string | undefined }
  | { readonly kind: "tool_use"; readonly block: CallBlock; readonly whole: string };

const DELTA_KINDS: ReadonlyMap<unknown, Open["kind"]> = new Map([
  ["text_delta", "text"],
  ["citations_delta", "text"],
  ["thinking_delta", "thinking"],
  ["signature_delta", "thinking"],
  ["input_json_delta", "tool_use"],
] as const);

/**
 * Decodes events. Blocks are identified by their index; usage counts are snapshots, of which the last one counts (rule
 * 44).
 */
export class MessagesStreamDecoder extends StreamDecoder {
  protected override readonly output = new MessagesOutput();
  readonly #open = new Map<number | undefined, Open | undefined>();
  readonly #counted = new MessageUsage();
  /** The last block of `message_start`, which deltas may continue. */
  #begun: number | undefined;
  protected override usageIsWhole = false;

  protected override read(payload: JsonObject, name: string): void {
    const type = textOf(payload.type) ?? name;
    if (type === "error") this.#readError(payload);
    else if (type === "ping") this.ping();
    else if (type === "message_start") this.#startMessage(payload);
    else if (this.started) this.#readEvent(type, payload);
    else this.refuse(invalid("an event came before message_start"));
  }

  protected override varyingOf(payload: JsonObject): Varying | undefined {
    return varyingOf(payload);
  }

  /** The usage is kept for the charge; the client gets no more events. */
  #readError(payload: JsonObject): void {
    this.#counted.count(payload.usage);
    this.usage = this.#counted.usage;
    this.usageIsWhole = this.#counted.final;
    this.failedWithCount = objectOf(payload.usage) !== undefined;
    const error = errorIn(payload);
    this.report(error?.type, error?.code, error?.message, error?.details);
  }

  #readEvent(type: string, payload: JsonObject): void {
    if (this.hasOutput) this.#counted.produced();
    if (type === "content_block_start") this.#startBlock(payload);
    else if (type === "content_block_delta") this.#readDelta(payload);
    else if (type === "content_block_stop") this.#stopBlock(indexOf(payload));
    else if (type === "message_delta") this.#readEnding(payload);
    else if (type === "message_stop") this.#readStop(payload);
  }

  #readStop(payload: JsonObject): void {
    this.#counted.countLast(payload);
    this.#tellUsage();
    this.finish();
  }

  #tellUsage(): void {
    this.usageIsWhole = this.#counted.final;
    const { usage } = this.#counted;
    if (usage !== this.usage) this.countUsage(usage);
  }

  /** Some servers add chat's marker; it has no meaning here. */
  protected override readDone(): void {}

  #startMessage(payload: JsonObject): void {
    const message = objectOf(payload.message);
    if (!message || this.started) {
      this.refuse(invalid("message_start is empty or came twice"));
      return;
    }
    this.start({ upstreamId: textOf(message.id), serviceTier: serviceTierOf(message.usage), createdS: undefined });
    this.#counted.begin(message.usage);
    this.#tellUsage();
    // Blocks that `message_start` contains. Deltas may continue the last one until another begins.
    for (const [index, one] of arrayOf(message.content).entries()) {
      this.#startBlock({ index, content_block: one });
      this.#begun = index;
    }
  }

  #readEnding(payload: JsonObject): void {
    this.#counted.count(payload.usage);
    this.#tellUsage();
    const ending = objectOf(payload.delta);
    const stop = ending && stopOf(ending);
    if (stop === "failure") this.failAtEnd(String(ending?.stop_reason));
    else if (stop !== undefined) this.stop = stop;
  }

  #startBlock(payload: JsonObject): void {
    const content = objectOf(payload.content_block);
    const index = indexOf(payload);
    if (this.#begun !== undefined) this.#stopBlock(this.#begun);
    this.#begun = undefined;
    this.#stopBlock(index);
    this.#open.set(index, content && openBlock(content, this.sink));
    if (this.#open.get(index) === undefined) this.sink.claim(); // Blocks that are left out count too.
  }

  /** A delta for no open block, or for a block of another kind, opens its own (rule 52). */
  #readDelta(payload: JsonObject): void {
    const delta = objectOf(payload.delta);
    const kind = DELTA_KINDS.get(delta?.type);
    if (!delta || kind === undefined) return;
    const index = indexOf(payload);
    let open = this.#open.get(index);
    if (open === undefined && this.#open.has(index)) return;
    if (open?.kind !== kind) {
      if (kind === "tool_use") return; // Arguments of a call without a name.
      this.#stopBlock(index);
      open = openBlock({ type: kind }, this.sink);
      this.#open.set(index, open);
    }
    if (open) appendDelta(open, delta, this.sink);
  }

  #stopBlock(index: number | undefined): void {
    const open = this.#open.get(index);
    this.#open.delete(index);
    if (open) endBlock(open);
  }

  protected override closeBlocks(): void {
    for (const open of this.#open.values()) if (open) endBlock(open);
    this.#open.clear();
  }
}

/** A block's index; servers that leave it out have one block at a time. */
function indexOf({ index }: JsonObject): number | undefined {
  return typeof index === "number" ? index : undefined;
}

function openBlock(content: JsonObject, sink: EventSink): Open | undefined {
  switch (content.type) {
    case "text": {
      const block = new TextBlock(sink, true);
      block.append(textOf(content.text) ?? "", undefined);
      return { kind: "text", block, citations: [] };
    }
    case "thinking": {
      const block = new ReasoningBlock(sink);
      block.append(textOf(content.thinking) ?? "");
      return { kind: "thinking", block, signature: textOf(content.signature) };
    }
    case "redacted_thinking": {
      const data = textOf(content.data);
      sink.keep(data);
      return { kind: "redacted", block: new ReasoningBlock(sink), data };
    }
    case "tool_use":
      return openCall(content, sink);
    default:
      return undefined;
  }
}

function openCall(content: JsonObject, sink: EventSink): Open {
  const block = new CallBlock(sink);
  const name = textOf(content.name);
  block.identify(textOf(content.id), name === undefined ? undefined : { name, freeform: false });
  block.startWithoutId();
  const whole = inputText(content.input);
  sink.keep(whole);
  if (whole === undefined) sink.exceed("the arguments of a call nest too deep");
  return { kind: "tool_use", block, whole: whole === "{}" ? "" : (whole ?? "") };
}

function appendDelta(open: Open, delta: JsonObject, sink: EventSink): void {
  if (open.kind === "text") {
    if (delta.type === "text_delta") open.block.append(textOf(delta.text) ?? "", undefined);
    else keepCitation(open.citations, delta.citation, sink);
  } else if (open.kind === "thinking") {
    if (delta.type === "thinking_delta") open.block.append(textOf(delta.thinking) ?? "");
    else keepSignature(open, textOf(delta.signature), sink);
  } else if (open.kind === "tool_use") {
    open.block.append(textOf(delta.partial_json) ?? "");
  }
}

function keepSignature(
  open: Extract<Open, { kind: "thinking" }>,
  signature: string | undefined,
  sink: EventSink,
): void {
  if (signature === undefined) return;
  sink.keep(signature);
  open.signature = signature;
}

/** Keeps a citation until its text is complete, because only then is its range known. */
function keepCitation(citations: Citation[], value: unknown, sink: EventSink): void {
  const citation = citationOf(value, 0);
  if (citation === undefined) return;
  sink.claim();
  sink.keep(citation.url);
  sink.keep(citation.title);
  citations.push(citation);
}

function endBlock(open: Open): void {
  if (open.kind === "text") {
    for (const citation of open.citations) open.block.cite({ ...citation, endIndex: open.block.chars });
    open.block.end();
  } else if (open.kind === "thinking") {
    open.block.end(open.signature, thinkingBlock(open.block.text(), open.signature));
  } else if (open.kind === "redacted") {
    open.block.end(open.data, redactedBlock(open.data), true);
  } else {
    open.block.end(open.whole);
  }
}
