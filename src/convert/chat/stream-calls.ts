/**
 * Finds the tool call of a chat stream that a delta belongs to: by index if there is one, else by id
 * (docs/translation-rules.md rule 54).
 */
import { type JsonObject, textOf } from "../../values/json-object.ts";
import { CallBlock } from "../reply/blocks.ts";
import type { EventSink } from "../reply/sink.ts";
import { callIdentity, callText } from "./reply-decode.ts";

/**
 * A call without arguments may still get them, because some servers send the names of all calls first. The stream waits
 * for them until a later call has more characters than this, or is complete and another one begins.
 */
const WAITING_CHARS_MAX = 256;

export class ChatCalls {
  readonly #sink: EventSink;
  /** In order of appearance, which for well-behaved servers is the order of their indices. */
  readonly #calls: CallBlock[] = [];
  /** The positions of the calls in that order. */
  readonly #places = new Map<CallBlock, number>();
  /** Calls that have got something since the upstream last stopped: a server may repeat its stop for each of very many calls. */
  readonly #changed = new Set<CallBlock>();
  /** Calls with a name that have not ended. */
  readonly #running = new Set<CallBlock>();
  readonly #byIndex = new Map<number, CallBlock>();
  readonly #byId = new Map<string, CallBlock>();
  /** The call of the last delta. */
  #last: CallBlock | undefined;
  /** The deprecated single call. */
  #deprecated: CallBlock | undefined;
  /** Calls that ended without arguments because others continued; later arguments for them are a fault. */
  readonly #endedBlank = new Set<CallBlock>();
  /** No call after this position is complete. */
  #lastComplete = -1;
  /** Number of calls, from the first on, whose missing arguments are no longer waited for. */
  #settled = 0;
  #outOfOrder = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /** Whether arguments have come for a call that ended without any. It is then unclear which call they belong to. */
  get outOfOrder(): boolean {
    return this.#outOfOrder;
  }

  /**
   * Takes one entry of `delta.tool_calls`.
   * @param before is called first, with the call (undefined for a new one) and its position among the calls.
   */
  take(entry: JsonObject, before: (call: CallBlock | undefined, place: number) => void): void {
    const known = this.#known(entry);
    before(known, known ? this.#placeOf(known) : this.#calls.length);
    const call = known ?? this.#begin(entry);
    if (call !== this.#last) this.leave();
    this.#last = call;
    const id = textOf(entry.id);
    call.identify(id, callIdentity(entry));
    if (id !== undefined) this.#byId.set(id, call);
    this.#append(call, callText(entry));
  }

  #placeOf(call: CallBlock): number {
    return this.#places.get(call) ?? this.#calls.length;
  }

  #append(call: CallBlock, text: string): void {
    if (text.trim() !== "") this.#outOfOrder ||= this.#endedBlank.has(call);
    call.append(text);
    this.#changed.add(call);
    if (call.isNamed && !call.ended) this.#running.add(call);
    if (call.isComplete) this.#lastComplete = Math.max(this.#lastComplete, this.#placeOf(call));
    if (call.inputChars > WAITING_CHARS_MAX) this.#endBlanksBefore(this.#placeOf(call));
  }

  /**
   * Ends the calls before this position that have no arguments; otherwise the first of them would block all later ones.
   */
  #endBlanksBefore(place: number): void {
    for (; this.#settled < place; this.#settled++) {
      const call = this.#calls[this.#settled];
      if (call) this.#endBlank(call);
    }
  }

  #endBlank(call: CallBlock): void {
    if (call.ended || !call.isBlank || !call.isNamed) return;
    this.#endedBlank.add(call);
    this.#end(call);
  }

  #end(call: CallBlock): void {
    call.end();
    this.#running.delete(call);
  }

  /** Takes `delta.function_call`: there is only one, and it has no id. */
  takeDeprecated(entry: JsonObject, beforeNew: () => void): void {
    if (this.#deprecated === undefined) {
      beforeNew();
      this.#deprecated = this.#add();
    }
    const call = this.#deprecated;
    call.identify(undefined, callIdentity({ function: entry }));
    call.startWithoutId();
    this.#append(call, callText({ function: entry }));
  }

  /**
   * Something else follows: the call of the last delta ends if its arguments are complete, so that nothing waits for
   * it.
   * @param forGood whether a call without arguments ends too.
   */
  leave(forGood = false): void {
    if (this.#last?.isComplete) this.#end(this.#last);
    else if (forGood && this.#last) this.#endBlank(this.#last);
  }

  /** The upstream has stopped: calls with complete arguments end, and so do those without any. */
  endWhole(): void {
    const changed = [...this.#changed].sort((a, b) => this.#placeOf(a) - this.#placeOf(b));
    this.#changed.clear();
    for (const call of changed) {
      if (call.isComplete) this.#end(call);
      else this.#endBlank(call);
    }
  }

  get areEnded(): boolean {
    return this.#running.size === 0;
  }

  endAll(): void {
    for (const call of this.#calls) this.#end(call);
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
    // Some servers send every call with index 0. Another id, or another name after complete arguments, is another call.
    if (id !== undefined) return call.upstreamId === undefined || call.upstreamId === id ? call : undefined;
    return isNamed && call.isNamed && call.isComplete ? undefined : call;
  }

  #begin(entry: JsonObject): CallBlock {
    // A call that was complete may have got more since.
    while (this.#calls[this.#lastComplete]?.isComplete === false) this.#lastComplete--;
    this.#endBlanksBefore(this.#lastComplete);
    const call = this.#add();
    const index = indexOf(entry);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #add(): CallBlock {
    const call = new CallBlock(this.#sink);
    this.#places.set(call, this.#calls.length);
    this.#calls.push(call);
    return call;
  }
}

function indexOf(entry: JsonObject): number | undefined {
  const { index } = entry;
  return typeof index === "number" && Number.isSafeInteger(index) && index >= 0 ? index : undefined;
}
