/** A chat completions stream as hub events (docs/translation-rules.md rules 43, 44 and 48 to 55). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { ReplyPlan } from "../hub.ts";
import { CallBlock, ReasoningBlock, RefusalBlock, TextBlock } from "../reply/blocks.ts";
import { StreamDecoder } from "../reply/decoder.ts";
import { createdSeconds, logprobList, urlCitation } from "../reply/facts.ts";
import type { EventSink } from "../reply/sink.ts";
import type { Ids } from "../reply/tool-call.ts";
import { invalid } from "../watch.ts";
import { ChatOutput } from "./produced.ts";
import { callIdentity, callText, contentText, finishOfChoice, reasoningOf, stopOf } from "./reply-decode.ts";
import { RETURNED, ReturnedParts } from "./returned.ts";
import { ChatStreamUsage } from "./usage.ts";
import { saysNothing } from "./watch.ts";

/**
 * Decodes chunks. Text, refusal and reasoning form one block at a time, since chat marks no ends: another kind, or a new
 * call, ends it. Calls stay open beside them as their deltas may interleave. The reply ends with `[DONE]`, so that a
 * usage chunk after the finish reason still counts.
 */
export class ChatStreamDecoder extends StreamDecoder {
  protected override readonly output = new ChatOutput();
  readonly #calls: ChatCalls;
  /** What the server wants back and the client has not got yet; collected where the client carries such things. */
  readonly #returned = new ReturnedParts(this.sink);
  /** One choice is asked for in every protocol. */
  readonly #counted = new ChatStreamUsage(1);
  #prose: TextBlock | RefusalBlock | ReasoningBlock | undefined;
  /** A count from before the stop reason may be a running one. */
  protected override usageIsWhole = false;

  constructor(plan: ReplyPlan, ids: Ids) {
    super(plan, ids);
    this.#calls = new ChatCalls(this.sink);
  }

  protected override read(chunk: JsonObject, name: string): void {
    const error = objectOf(chunk.error);
    if (error) {
      this.report(error.type, error.code, error.message);
      this.#counted.see(chunk, this.hasOutput);
      this.#tellUsage();
    } else if (Array.isArray(chunk.choices) || objectOf(chunk.usage)) this.#readChunk(chunk);
    else if (!saysNothing(name, chunk)) this.refuse(invalid("a chunk has no choices"));
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
    const finish = finishOfChoice(choice);
    if (finish === "failure") this.failAtEnd(String(choice.finish_reason));
    else if (finish !== undefined) this.stop = stopOf(finish);
  }

  /** What a delta holds, in the order in which a reply says it: content comes before calls (rule 54). */
  #readDelta(delta: JsonObject, logprobs: readonly unknown[] | undefined): void {
    if (this.#isCarried) this.#returned.seeMessage(delta);
    const reasoning = reasoningOf(delta);
    if (reasoning !== undefined) this.#reasoning().append(reasoning);
    const text = contentText(delta.content);
    if (text !== "") this.#text().append(text, logprobs);
    const refusal = textOf(delta.refusal);
    if (refusal !== undefined) this.#refusal().append(refusal);
    this.#cite(delta);
    for (const one of arrayOf(delta.tool_calls)) {
      const entry = objectOf(one);
      if (entry) this.#takeCall(entry);
    }
    const deprecated = objectOf(delta.function_call);
    if (deprecated) this.#calls.takeDeprecated(deprecated, () => this.#endProse());
  }

  /** What belongs to a call is sealed before it, so that no reply ends with reasoning where that can be helped. */
  #takeCall(entry: JsonObject): void {
    this.#calls.take(entry, (call, place) => {
      if (call === undefined) this.#endProse();
      const id = call === undefined ? this.sink.callIds.kept(textOf(entry.id)) : call.clientId;
      if (this.#isCarried) this.#returned.seeCall(entry, id, place);
      if (call === undefined) this.#carry();
    });
  }

  /** Whether the client brings back what is sealed for it. */
  get #isCarried(): boolean {
    return this.sink.plan.reasoning.envelope;
  }

  /** Gives the client what it has to bring back, in a stretch of reasoning without words. */
  #carry(): void {
    if (!this.#returned.isEmpty) new ReasoningBlock(this.sink).end(RETURNED, this.#returned.take(""), true);
  }

  #text(): TextBlock {
    if (this.#prose?.kind !== "text") {
      this.#endProse();
      this.#calls.leave();
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
    if (prose?.kind !== "reasoning") {
      prose?.end();
      return;
    }
    const native = this.#returned.take(prose.text());
    prose.end(typeof native === "string" ? undefined : RETURNED, native);
  }

  protected override closeBlocks(): void {
    this.#endProse();
    this.#calls.endAll();
    this.#carry();
  }
}

/*
 * Which tool call of a chat stream a delta belongs to: by index where there is one, else by id
 * (docs/translation-rules.md rule 54).
 */

class ChatCalls {
  readonly #sink: EventSink;
  /** In order of appearance, which for well-behaved servers is the order of their indices. */
  readonly #calls: CallBlock[] = [];
  readonly #byIndex = new Map<number, CallBlock>();
  readonly #byId = new Map<string, CallBlock>();
  /** The call that the last delta was for. */
  #last: CallBlock | undefined;
  /** The deprecated single call. */
  #deprecated: CallBlock | undefined;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /**
   * Takes one entry of `delta.tool_calls`.
   * @param before is called first, with the call, undefined for one that now comes to be, and its place among the calls.
   */
  take(entry: JsonObject, before: (call: CallBlock | undefined, place: number) => void): void {
    const known = this.#known(entry);
    before(known, known ? this.#calls.indexOf(known) : this.#calls.length);
    const call = known ?? this.#begin(entry);
    if (call !== this.#last) this.leave();
    this.#last = call;
    const id = textOf(entry.id);
    call.identify(id, callIdentity(entry));
    if (id !== undefined) this.#byId.set(id, call);
    call.append(callText(entry));
  }

  /** Takes `delta.function_call`: there is one, and it never has an id. */
  takeDeprecated(entry: JsonObject, beforeNew: () => void): void {
    if (this.#deprecated === undefined) {
      beforeNew();
      this.#deprecated = this.#add();
    }
    const call = this.#deprecated;
    call.identify(undefined, callIdentity({ function: entry }));
    call.startWithoutId();
    call.append(callText({ function: entry }));
  }

  /** Something else goes on: the call that was fed last ends if its arguments are whole, so that nobody waits for it. */
  leave(): void {
    if (this.#last?.isComplete) this.#last.end();
  }

  endAll(): void {
    for (const call of this.#calls) call.end();
  }

  #known(entry: JsonObject): CallBlock | undefined {
    const id = textOf(entry.id);
    const isNamed = callIdentity(entry) !== undefined;
    const index = indexOf(entry);
    const call =
      index === undefined
        ? id === undefined
          ? this.#last
          : this.#byId.get(id)
        : (this.#byIndex.get(index) ?? (isNamed || id === undefined ? undefined : this.#byId.get(id)));
    if (call === undefined) return undefined;
    // Some servers send every call with index 0: another id, or another name after whole arguments, is another call.
    if (id !== undefined) return call.upstreamId === undefined || call.upstreamId === id ? call : undefined;
    return isNamed && call.isNamed && call.isComplete ? undefined : call;
  }

  #begin(entry: JsonObject): CallBlock {
    const call = this.#add();
    const index = indexOf(entry);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #add(): CallBlock {
    const call = new CallBlock(this.#sink);
    this.#calls.push(call);
    return call;
  }
}

function indexOf(entry: JsonObject): number | undefined {
  const { index } = entry;
  return typeof index === "number" && Number.isSafeInteger(index) && index >= 0 ? index : undefined;
}
