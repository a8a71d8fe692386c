/** A chat completions stream as hub events (docs/translation-rules.md rules 43, 44 and 48 to 55). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { ReplyPlan } from "../hub.ts";
import { ReasoningBlock, RefusalBlock, TextBlock } from "../reply/blocks.ts";
import { StreamDecoder } from "../reply/decoder.ts";
import { createdSeconds, logprobList, urlCitation } from "../reply/facts.ts";
import type { Ids } from "../reply/tool-call.ts";
import { invalid } from "../watch.ts";
import { ChatOutput } from "./produced.ts";
import { contentText, isFailureWord, reasoningOf, stopOf } from "./reply-decode.ts";
import { ChatCalls } from "./stream-calls.ts";
import { ChatStreamUsage } from "./stream-usage.ts";

/**
 * Decodes chunks. Text, refusal and reasoning form one block at a time, since chat marks no ends: another kind, or a new
 * call, ends it. Calls stay open beside them as their deltas may interleave. The reply ends with `[DONE]`, so that a
 * usage chunk after the finish reason still counts.
 */
export class ChatStreamDecoder extends StreamDecoder {
  protected override readonly output = new ChatOutput();
  readonly #calls: ChatCalls;
  /** One choice is asked for in every protocol. */
  readonly #counted = new ChatStreamUsage(1);
  #prose: TextBlock | RefusalBlock | ReasoningBlock | undefined;
  /** A count from before the stop reason may be a running one. */
  protected override usageIsWhole = false;

  constructor(plan: ReplyPlan, ids: Ids) {
    super(plan, ids);
    this.#calls = new ChatCalls(this.sink);
  }

  protected override read(chunk: JsonObject): void {
    const error = objectOf(chunk.error);
    if (error) {
      this.report(error.type, error.code, error.message);
      this.#counted.see(chunk, this.hasOutput);
      this.#tellUsage();
    } else if (Array.isArray(chunk.choices) || objectOf(chunk.usage)) this.#readChunk(chunk);
    else this.refuse(invalid("a chunk has no choices"));
  }

  #readChunk(chunk: JsonObject): void {
    this.start({
      upstreamId: textOf(chunk.id),
      serviceTier: textOf(chunk.service_tier),
      createdS: createdSeconds(chunk.created),
    });
    for (const one of arrayOf(chunk.choices)) {
      const choice = objectOf(one);
      if (choice && (choice.index ?? 0) === 0) this.#readChoice(choice); // More than one is never asked for (rule 30).
    }
    this.#counted.see(chunk, this.hasOutput);
    this.#tellUsage();
  }

  #tellUsage(): void {
    const { usage } = this.#counted;
    this.usageIsWhole = this.#counted.final;
    if (usage === undefined || usage === this.usage) return;
    // After an error the client gets no more events, but the usage is kept for the bill.
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
    const delta = objectOf(choice.delta);
    if (delta) this.#readDelta(delta, logprobList(objectOf(choice.logprobs)?.content));
    const word = textOf(choice.finish_reason);
    if (word === undefined) return;
    if (isFailureWord(word)) this.failAtEnd(word);
    else this.stop = stopOf(word);
  }

  /** What a delta holds, in the order in which a reply says it: content comes before calls (rule 54). */
  #readDelta(delta: JsonObject, logprobs: readonly unknown[] | undefined): void {
    const reasoning = reasoningOf(delta);
    if (reasoning !== undefined) this.#reasoning().append(reasoning);
    const text = contentText(delta.content);
    if (text !== "") this.#text().append(text, logprobs);
    const refusal = textOf(delta.refusal);
    if (refusal !== undefined) this.#refusal().append(refusal);
    this.#cite(delta);
    const beforeNew = () => this.#endProse();
    for (const one of arrayOf(delta.tool_calls)) {
      const entry = objectOf(one);
      if (entry) this.#calls.take(entry, beforeNew);
    }
    const deprecated = objectOf(delta.function_call);
    if (deprecated) this.#calls.takeDeprecated(deprecated, beforeNew);
  }

  #text(): TextBlock {
    if (this.#prose?.kind !== "text") {
      this.#endProse();
      this.#calls.leave();
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

  /** Sources belong to the text block that is open; without one they are dropped. */
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
    if (prose?.kind === "reasoning") prose.end(undefined, prose.text());
    else prose?.end();
  }

  protected override closeBlocks(): void {
    this.#endProse();
    this.#calls.endAll();
  }
}
