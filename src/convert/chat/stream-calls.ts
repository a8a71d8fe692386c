/**
 * Which tool call of a chat stream a delta belongs to: by index where there is one, else by id
 * (docs/translation-rules.md rule 54).
 */
import { type JsonObject, textOf } from "../../values/json-object.ts";
import { CallBlock } from "../reply/blocks.ts";
import type { EventSink } from "../reply/sink.ts";
import { callIdentity, callText } from "./reply-decode.ts";

export class ChatCalls {
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
   * @param beforeNew is called before a call that was not known comes to be.
   */
  take(entry: JsonObject, beforeNew: () => void): void {
    const call = this.#known(entry) ?? this.#begin(entry, beforeNew);
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

  #begin(entry: JsonObject, beforeNew: () => void): CallBlock {
    beforeNew();
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
