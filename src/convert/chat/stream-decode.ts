/** Decodes a chat completions stream to hub events (docs/translation-rules.md rules 43, 44 and 48 to 55). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { Varying } from "../delta-template.ts";
import type { ReplyPlan } from "../hub.ts";
import { ReasoningBlock, RefusalBlock, TextBlock } from "../reply/blocks.ts";
import { StreamDecoder } from "../reply/decoder.ts";
import { createdSeconds, logprobList, urlCitation } from "../reply/facts.ts";
import type { Ids } from "../reply/tool-call.ts";
import { errorIn, invalid } from "../watch.ts";
import { ListedReasoning } from "./listed-reasoning.ts";
import { ChatOutput, messageOf } from "./produced.ts";
import {
  contentText,
  deltaOf,
  failureWordOf,
  finishOfChoice,
  imagesOf,
  listedCalls,
  reasoningOf,
  stopOf,
} from "./reply-decode.ts";
import { RETURNED, ReturnedParts } from "./returned.ts";
import { ChatCalls } from "./stream-calls.ts";
import { ThinkSplitter } from "./think-tags.ts";
import { ChatStreamUsage } from "./usage.ts";
import { saysNothing, varyingOf } from "./watch.ts";

/** Members in which servers send the same reasoning. */
const REASONING: ReadonlySet<string> = new Set([
  ...["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"],
]);
const CONTENT_MEMBERS = ["content", "refusal", "tool_calls", "function_call", "images", ...REASONING] as const;

function hasContent(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === "string" ? value !== "" : objectOf(value) !== undefined;
}

/**
 * Decodes chunks. Chat marks no ends of blocks, so text, refusal and reasoning form one block at a time, which ends
 * when another kind or a new call begins. Calls stay open next to them, because their deltas may interleave. The reply
 * ends with `[DONE]`, so a usage chunk after the finish reason still counts.
 */
export class ChatStreamDecoder extends StreamDecoder {
  protected override readonly output = new ChatOutput();
  readonly #calls: ChatCalls;
  /** What the server wants back and the client has not got yet; collected only if the client gets envelopes. */
  readonly #returned = new ReturnedParts(this.sink);
  /** Every protocol's request asks for one choice. */
  readonly #counted = new ChatStreamUsage(1);
  readonly #listed = new ListedReasoning();
  /** Whether reasoning has come in a member of its own; the lists then repeat it. */
  #isReasoningNamed = false;
  /** The members in which deltas have had content. */
  readonly #streamed = new Set<string>();
  #prose: TextBlock | RefusalBlock | ReasoningBlock | undefined;
  /** Undefined: the server leaves no reasoning in its text. */
  readonly #splitter: ThinkSplitter | undefined;
  /** Usage from before the stop reason may be a running count. */
  protected override usageIsWhole = false;

  constructor(plan: ReplyPlan, ids: Ids) {
    super(plan, ids);
    this.#calls = new ChatCalls(this.sink);
    const { inText = "none" } = plan.reasoning;
    this.#splitter = inText === "none" ? undefined : new ThinkSplitter(inText);
  }

  protected override read(chunk: JsonObject, name: string): void {
    const error = errorIn(chunk);
    if (error) {
      this.report(error.type, error.code, error.message);
      this.#counted.seeFailure(chunk, this.hasOutput);
      this.#tellUsage();
      this.failedWithCount = this.#counted.final;
    } else if (Array.isArray(chunk.choices) || objectOf(chunk.usage)) this.#readChunk(chunk);
    else if (!saysNothing(name, chunk)) this.refuse(invalid("a chunk has no choices"));
  }

  /** Text that could still be a tag, and reasoning that a list may already have had, must be parsed. */
  protected override varyingOf(chunk: JsonObject): Varying | undefined {
    const varying = varyingOf(chunk);
    const isText = varying?.text === "content";
    return (isText ? (this.#splitter?.isThrough ?? true) : this.#listed.isEmpty) ? varying : undefined;
  }

  #readChunk(chunk: JsonObject): void {
    this.start({
      upstreamId: textOf(chunk.id),
      serviceTier: textOf(chunk.service_tier),
      createdS: createdSeconds(chunk.created),
    });
    for (const one of arrayOf(chunk.choices)) {
      if (this.sink.excess !== undefined) break;
      const choice = objectOf(one);
      if (choice && (choice.index ?? 0) === 0) this.#readChoice(choice); // More than one choice is never asked for (rule 30).
    }
    this.#counted.see(chunk, this.hasOutput);
    this.#tellUsage();
    if (this.#calls.outOfOrder) this.refuse(invalid("arguments came for a call that had ended"));
  }

  #tellUsage(): void {
    const { usage } = this.#counted;
    this.usageIsWhole = this.#counted.final;
    if (usage === undefined || usage === this.usage) return;
    // After an error the client gets no more events, but the usage is kept for the charge.
    if (this.ended) this.usage = usage;
    else this.countUsage(usage);
  }

  protected override readDone(): void {
    this.#counted.end();
    this.#tellUsage();
    if (this.started) this.finish();
    else this.refuse(invalid("[DONE] came first"));
  }

  #readChoice(choice: JsonObject): void {
    const logprobs = logprobList(objectOf(choice.logprobs)?.content);
    const delta = objectOf(choice.delta);
    if (delta) {
      for (const name of CONTENT_MEMBERS)
        if (hasContent(delta[name])) this.#streamed.add(REASONING.has(name) ? "reasoning" : name);
      this.#readDelta(delta, logprobs);
    } else this.#readWhole(messageOf(choice), logprobs);
    const finish = finishOfChoice(choice);
    if (finish === "failure") this.failAtEnd(String(failureWordOf(choice)));
    else if (finish !== undefined) {
      this.stop = stopOf(finish);
      this.#closeWhole();
      if (this.#calls.areEnded) this.announce(stopOf(finish));
    }
  }

  /** A message instead of a delta. What deltas have already had is repeated in it and skipped (rule 55). */
  #readWhole(message: JsonObject | undefined, logprobs: readonly unknown[] | undefined): void {
    const isNew = (name: string) => !this.#streamed.has(REASONING.has(name) ? "reasoning" : name);
    const piece = Object.entries(message ?? {}).filter(([name]) => isNew(name));
    if (piece.length > 0) this.#readDelta(deltaOf(Object.fromEntries(piece)), logprobs);
  }

  /**
   * Ends complete blocks once the upstream has given its stop reason, so that the client need not wait for the usage or
   * the terminal marker.
   */
  #closeWhole(): void {
    this.#sayHeld();
    this.#endProse();
    this.#calls.endWhole();
    this.#carry();
  }

  /** Reads a delta in the order of a reply: content before calls (rule 54). */
  #readDelta(delta: JsonObject, logprobs: readonly unknown[] | undefined): void {
    if (this.#isCarried) this.#returned.seeMessage(delta);
    const reasoning = this.#reasoningIn(delta);
    if (reasoning !== "") this.#reasoning().append(reasoning);
    const text = contentText(delta.content);
    if (text !== "") this.#say(text, logprobs);
    const refusal = textOf(delta.refusal);
    if (refusal !== undefined) {
      this.#sayHeld();
      this.#refusal().append(refusal);
    }
    this.#cite(delta);
    for (const url of imagesOf(delta)) this.#show(url);
    for (const entry of listedCalls(delta.tool_calls)) {
      if (this.sink.excess !== undefined) break;
      this.#takeCall(entry);
    }
    const deprecated = objectOf(delta.function_call);
    if (deprecated) {
      this.#sayHeld();
      this.#calls.takeDeprecated(deprecated, () => this.#endProse());
    }
  }

  /** The reasoning text of a delta; lists are read only if no other member has had any. */
  #reasoningIn(delta: JsonObject): string {
    const named = reasoningOf(delta);
    if (named !== undefined) {
      this.#isReasoningNamed = true;
      return this.#listed.isRepeatedBy(named) ? "" : named;
    }
    if (this.#isReasoningNamed) return "";
    return this.#listed.read(delta, this.#prose?.kind === "reasoning" && !this.#prose.isEmpty);
  }

  /** What belongs to a call is sealed before it, so that a reply ends with reasoning only if it must. */
  #takeCall(entry: JsonObject): void {
    this.#calls.take(entry, (call, place) => {
      if (call === undefined) {
        this.#sayHeld();
        this.#endProse();
      }
      const id = call === undefined ? this.sink.callIds.kept(textOf(entry.id)) : call.clientId;
      if (this.#isCarried) this.#returned.seeCall(entry, id, place);
      if (call === undefined) this.#carry();
    });
  }

  /** Whether the client sends envelopes back. */
  get #isCarried(): boolean {
    return this.sink.plan.reasoning.envelope;
  }

  /** Emits what the client must send back, in a reasoning block without text. */
  #carry(): void {
    if (!this.#returned.isEmpty) new ReasoningBlock(this.sink).end(RETURNED, this.#returned.take(""), true);
  }

  /** Adds text, after separating the reasoning that the server has left in it. */
  #say(text: string, logprobs: readonly unknown[] | undefined): void {
    this.#append(this.#splitter?.push(text) ?? { reasoning: "", text }, logprobs);
  }

  /** Something else follows, so what was held back is not a tag. */
  #sayHeld(): void {
    if (this.#splitter) this.#append(this.#splitter.end(), undefined);
  }

  #append(piece: { reasoning: string; text: string }, logprobs: readonly unknown[] | undefined): void {
    if (piece.reasoning !== "") this.#reasoning().append(piece.reasoning);
    if (piece.text !== "") this.#text(piece.text).append(piece.text, logprobs);
  }

  #text(text: string): TextBlock {
    if (this.#prose?.kind !== "text") {
      this.#endProse();
      this.#calls.leave(text.trim() !== "");
      this.#carry();
      this.#prose = new TextBlock(this.sink, true);
    }
    return this.#prose;
  }

  #refusal(): RefusalBlock {
    if (this.#prose?.kind !== "refusal") {
      this.#endProse();
      this.#calls.leave();
      this.#prose = new RefusalBlock(this.sink);
    }
    return this.#prose;
  }

  #reasoning(): ReasoningBlock {
    if (this.#prose?.kind !== "reasoning") {
      this.#endProse();
      this.#calls.leave();
      this.#prose = new ReasoningBlock(this.sink);
    }
    return this.#prose;
  }

  /** An image is a block of its own; text after it begins another. */
  #show(url: string): void {
    this.#sayHeld();
    this.#endProse();
    this.#calls.leave();
    this.sink.emit({ type: "image", key: this.sink.claim(), url });
  }

  /** Citations belong to the open text block; without one they are dropped. */
  #cite(delta: JsonObject): void {
    if (this.#prose?.kind !== "text") return;
    for (const one of arrayOf(delta.annotations)) {
      const citation = urlCitation(one);
      if (citation) this.#prose.cite(citation);
    }
  }

  #endProse(): void {
    const prose = this.#prose;
    this.#prose = undefined;
    if (prose?.kind !== "reasoning") {
      prose?.end();
      return;
    }
    const native = this.#returned.take(prose.text());
    prose.end(typeof native === "string" ? undefined : RETURNED, native);
  }

  protected override closeBlocks(): void {
    this.#sayHeld();
    this.#endProse();
    this.#calls.endAll();
    this.#carry();
  }
}
