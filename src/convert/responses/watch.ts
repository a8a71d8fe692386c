/** Watches a responses stream. */
import type { ErrorAnswer } from "../../values/errors.ts";
import { type JsonObject, objectOf, objectsIn, parseObject } from "../../values/json-object.ts";
import type { Usage } from "../../values/tokens/usage.ts";
import { spliceNested } from "../../wire/json.ts";
import { jsonFrame, type SseEvent, sseFrame } from "../../wire/sse.ts";
import type { AnsweredModel } from "../answered-model.ts";
import type { DeltaRun, Varying } from "../delta-template.ts";
import type { AttemptCounts, UpstreamFault } from "../exchange.ts";
import { finishOf } from "../rules/finish-words.ts";
import {
  brokenOff,
  invalid,
  type MissingUsage,
  NOTHING,
  passed,
  reported,
  type SeenEvent,
  TRUNCATED,
  type Watcher,
  type WatcherOptions,
} from "../watch.ts";
import { DeliveredItems } from "./delivered-items.ts";
import { renderStreamFailure } from "./error.ts";
import { ResponsesOutput } from "./produced.ts";
import { type Keeping, KeptItems, writeCarrier } from "./references/sealing.ts";
import { FAILED } from "./reply-decode.ts";
import { ownIncompleteReason } from "./response.ts";
import { readUsage, writeUsage } from "./usage.ts";

const TEXT_DELTA = /^response\.(?:output_text|refusal|reasoning_text|reasoning_summary_text)\.delta$/;
const DELTA_MEMBERS: ReadonlySet<string> = new Set([
  ...["type", "delta", "sequence_number", "obfuscation", "logprobs"],
  ...["item_id", "output_index", "content_index", "summary_index"],
]);
const FAILING: ReadonlySet<unknown> = new Set(["response.failed", "response.cancelled"]);
const TERMINAL: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete"]);

/** The most characters of items that are kept for the event that ends a failed stream. */
const FINISHED_CHARS_MAX = 1024 * 1024;

interface ResponsesWatchOptions extends WatcherOptions {
  /** Whether `truncate` may be called, which requires all items of the stream; default: no. */
  readonly openEnded?: boolean;
  /** How the items are put into the id of the carrier; undefined: nothing can refer to them. */
  readonly keeping?: Keeping | undefined;
  /**
   * Makes the response that the client gets if the server begins with the first item; undefined: such a stream is
   * refused.
   */
  readonly opening?: () => JsonObject;
}

export class ResponsesWatcher implements Watcher {
  readonly #rename: string | undefined;
  readonly #answered: AnsweredModel | undefined;
  #fault: UpstreamFault | undefined;
  #usage: Usage | undefined;
  readonly #output = new ResponsesOutput();
  #response: JsonObject | undefined;
  #sequenceNumber = -1;
  #itemsDone = 0;
  /** The finished items as the client got them, while they are within FINISHED_CHARS_MAX; else none. */
  readonly #finished: JsonObject[] = [];
  #finishedChars = 0;
  #ended = false;
  /** Whether the failure that ended the response included usage. */
  #failedWithCount = false;
  /** The last event, if it had output. */
  #last: JsonObject | undefined;
  /** The part of each item that the client has got, in case the stream must be ended here. */
  readonly #delivered: DeliveredItems | undefined;
  readonly #missingUsage: MissingUsage | undefined;
  readonly #opening: (() => JsonObject) | undefined;
  /** The id that the client got for a response whose server began without naming it. */
  #madeId: string | undefined;
  readonly #keeping: Keeping | undefined;
  readonly #kept = new KeptItems();

  constructor({ rename, openEnded = false, answered, missingUsage, keeping, opening }: ResponsesWatchOptions) {
    this.#keeping = keeping;
    this.#opening = opening;
    this.#missingUsage = missingUsage;
    this.#rename = rename;
    this.#answered = answered;
    this.#delivered = openEnded ? new DeliveredItems() : undefined;
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  get varying(): Varying | undefined {
    // The items of an open-ended stream must be known exactly, so each delta is parsed.
    return this.#last && !this.#delivered ? varyingOf(this.#last) : undefined;
  }

  again(source: Buffer, run: DeltaRun): void {
    if (run.number !== undefined) this.#sequenceNumber = run.number;
    this.#output.again(source, run);
  }

  see(event: SseEvent): SeenEvent {
    this.#last = undefined;
    if (event.data === undefined) return passed(event, false);
    if (event.data.length === 0) return NOTHING; // SDKs fail on it.
    const text = Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength).toString();
    if (text.trim() === "[DONE]") return NOTHING;
    const payload = parseObject(text);
    if (!payload) return this.#refuse(invalid("an event is not a JSON object"));
    this.#answered?.see(payload);
    const type = payload.type;
    if (type === "error") {
      const nested = objectOf(payload.error);
      const error = nested ?? payload;
      this.#failedWithCount = this.#count(payload);
      return this.#refuse(reported(nested?.type, error.code, error.message, error.param));
    }
    if (typeof payload.sequence_number === "number") this.#sequenceNumber = payload.sequence_number;
    // The upstream numbers its heartbeats like events; without them the client would see a gap.
    if (type === "keepalive") return this.#response ? passed(event, false) : NOTHING;
    const response = objectOf(payload.response);
    if (response) return this.#seeResponse(event, payload, response);
    // Without its response such an event ends nothing here, but clients would take it for the end.
    if (TERMINAL.has(type) || FAILING.has(type)) return NOTHING;
    const begun = this.#response ? undefined : this.#begin(payload);
    if (!this.#response) return this.#refuse(invalid("an event came before response.created"));
    if (type === "response.output_item.done") {
      this.#keep(objectOf(payload.item));
      this.#remember(objectOf(payload.item), text.length);
    }
    if (type === "response.output_item.added" && this.#keeping) this.#kept.begin(objectOf(payload.item)?.id);
    const semantic = this.#output.see(type, payload);
    if (semantic && !begun) this.#last = payload;
    this.#delivered?.see(payload, text.length);
    if (begun) return { bytes: Buffer.concat([begun, event.raw]), semantic, terminal: false };
    return passed(event, semantic);
  }

  /**
   * Some servers begin with the first item, at which the official client throws. The client then gets a
   * `response.created` first.
   */
  #begin({ type, sequence_number: number }: JsonObject, id?: unknown): Uint8Array | undefined {
    if (typeof type !== "string" || !type.startsWith("response.")) return undefined;
    const made = this.#opening?.();
    if (!made) return undefined;
    const response = typeof id === "string" ? { ...made, id } : made;
    this.#response = response;
    if (typeof id !== "string" && typeof made.id === "string") this.#madeId = made.id;
    const sequence_number = typeof number === "number" ? Math.max(0, number - 1) : 0;
    this.#sequenceNumber = Math.max(this.#sequenceNumber, sequence_number);
    return sseFrame(JSON.stringify({ type: "response.created", sequence_number, response }), "response.created");
  }

  #keep(item: JsonObject | undefined): void {
    this.#itemsDone++;
    if (item && this.#keeping) this.#kept.add(this.#keeping.keep(item));
  }

  /** @param chars length of its event. */
  #remember(item: JsonObject | undefined, chars: number): void {
    this.#finishedChars += chars;
    if (this.#finishedChars > FINISHED_CHARS_MAX) this.#finished.length = 0;
    else if (item) this.#finished.push(item);
  }

  #seeResponse(event: SseEvent, payload: JsonObject, response: JsonObject): SeenEvent {
    const { type } = payload;
    // A failed response has used tokens too.
    const isCounted = this.#count(response);
    const incomplete = objectOf(response.incomplete_details)?.reason;
    if (type === "response.incomplete" && finishOf(incomplete) === "failure") {
      this.#failedWithCount = isCounted;
      return this.#refuse(brokenOff(incomplete));
    }
    const terminal = TERMINAL.has(type);
    if (FAILING.has(type) || (terminal && FAILED.has(response.status))) {
      this.#failedWithCount = isCounted;
      const error = objectOf(response.error);
      const code = error?.code ?? (terminal ? response.status : undefined);
      return this.#refuse(reported(error?.type, code, error?.message, error?.param));
    }
    const frames: Uint8Array[] = [];
    // Some servers send everything in their last event. The official client needs the response to be created before its
    // end.
    const begun = terminal && !this.#response ? this.#begin(payload, response.id) : undefined;
    if (begun) frames.push(begun);
    this.#response ??= response;
    if (terminal) this.#ended = true;
    if (terminal && this.#itemsDone === 0) for (const item of objectsIn(response.output)) this.#keep(item);
    const semantic = this.#output.see(type, payload);
    const usage = terminal ? this.#missingUsage?.(this.counts()) : undefined;
    const carrier = terminal ? this.#carrier() : undefined;
    if (carrier) {
      // Before the last event, which gets the next number.
      if (typeof payload.sequence_number === "number") this.#sequenceNumber = payload.sequence_number - 1;
      writeCarrier(carrier, this.#itemsDone, (name, members) => frames.push(this.#frame(name, members)));
      if (typeof payload.sequence_number === "number") this.#sequenceNumber++;
    }
    const number = carrier && payload.sequence_number !== undefined ? this.#sequenceNumber : undefined;
    const bytes = this.#rewritten(event, type, response, { usage, number });
    return { bytes: frames.length === 0 ? bytes : Buffer.concat([...frames, bytes]), semantic, terminal };
  }

  /** Reads the usage of an event or of its response. @returns whether there is one. */
  #count(counted: JsonObject): boolean {
    const usage = readUsage(counted, this.#output.hostedCalls);
    this.#usage = usage ?? this.#usage;
    return usage !== undefined;
  }

  /** The carrier of the stream's items, for a client that refers to them. */
  #carrier(): JsonObject | undefined {
    return this.#keeping && this.#kept.carrier(this.#keeping.context);
  }

  /** The carrier of a stream that fails; open messages are included as far as they are known. */
  #brokenCarrier(): JsonObject | undefined {
    if (!this.#keeping || this.#ended) return undefined;
    for (const item of this.#delivered?.open() ?? []) {
      if (item.type === "message") this.#kept.add({ ...item, status: "incomplete" });
    }
    this.#kept.breakOff();
    return this.#carrier();
  }

  #frame(type: string, members: JsonObject): Uint8Array {
    return sseFrame(JSON.stringify({ type, sequence_number: ++this.#sequenceNumber, ...members }), type);
  }

  /**
   * The event with these replacements: the client's model name, the id that the response began with, the event's
   * number, missing usage, and for an incomplete response the protocol's own reason.
   */
  #rewritten(
    { data, raw }: SseEvent,
    type: unknown,
    response: JsonObject,
    { usage, number }: { readonly usage: Usage | undefined; readonly number: number | undefined },
  ): Uint8Array {
    const rename = typeof response.model === "string" ? this.#rename : undefined;
    const reason = type === "response.incomplete" ? ownIncompleteReason(response) : undefined;
    const id = typeof response.id === "string" ? this.#madeId : undefined;
    if (data === undefined || [rename, reason, usage, number, id].every((one) => one === undefined)) return raw;
    let spliced: Uint8Array = data;
    if (number !== undefined) spliced = spliceNested(spliced, ["sequence_number"], String(number));
    if (id !== undefined) spliced = spliceNested(spliced, ["response", "id"], JSON.stringify(id));
    if (rename !== undefined) spliced = spliceNested(spliced, ["response", "model"], JSON.stringify(rename));
    const place = ["response", "incomplete_details", "reason"];
    if (reason !== undefined) spliced = spliceNested(spliced, place, JSON.stringify(reason));
    if (usage) {
      const written = { ...objectOf(response.usage), ...writeUsage(usage) };
      spliced = spliceNested(spliced, ["response", "usage"], JSON.stringify(written));
    }
    return jsonFrame(spliced, String(type));
  }

  #refuse(fault: UpstreamFault): SeenEvent {
    this.#fault = fault;
    return NOTHING;
  }

  finish(): Uint8Array | undefined {
    if (!this.#ended) this.#fault = TRUNCATED;
    return undefined;
  }

  counts(): AttemptCounts {
    const final = (this.#ended || this.#failedWithCount) && this.#usage !== undefined;
    return { usage: this.#usage, final, produced: this.#output.counts() };
  }

  fail(answer: ErrorAnswer, requestId: string): Uint8Array {
    const response = { ...this.#clientResponse(requestId), output: this.#finished };
    const frames: Uint8Array[] = [];
    const carrier = this.#brokenCarrier();
    if (carrier) {
      writeCarrier(carrier, this.#itemsDone + 1, (type, members) => frames.push(this.#frame(type, members)));
    }
    const code = this.#fault?.code ?? "server_error";
    const { error, failed } = renderStreamFailure(answer, code, {
      response,
      sequenceNumber: this.#sequenceNumber + 1,
      requestId,
    });
    return Buffer.concat([...frames, sseFrame(error, "error"), sseFrame(failed, "response.failed")]);
  }

  truncate(usage: Usage): Uint8Array {
    const frames: Uint8Array[] = [];
    const emit = (type: string, members: JsonObject): void => {
      frames.push(this.#frame(type, members));
      if (type === "response.output_item.done") this.#keep(objectOf(members.item));
    };
    const output = this.#delivered?.close(emit) ?? [];
    const carrier = this.#carrier();
    if (carrier) writeCarrier(carrier, output.length, emit);
    const response = {
      ...this.#clientResponse(""),
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output,
      usage: writeUsage(usage),
    };
    emit("response.incomplete", { response });
    return Buffer.concat(frames);
  }

  #clientResponse(requestId: string): JsonObject {
    const response = this.#response ?? { id: `resp_${requestId}`, object: "response", output: [] };
    return this.#rename === undefined ? response : { ...response, model: this.#rename };
  }

  heartbeat(): Uint8Array | undefined {
    if (!this.#response) return undefined;
    // Repeats the number of the last event: a new number would collide with the upstream's next.
    return sseFrame(
      JSON.stringify({ type: "keepalive", sequence_number: Math.max(0, this.#sequenceNumber) }),
      "keepalive",
    );
  }
}

/** Defined only for the delta of one text that contains nothing else. */
export function varyingOf(payload: JsonObject): Varying | undefined {
  const { type, delta, sequence_number: number, obfuscation } = payload;
  const isText = typeof type === "string" && TEXT_DELTA.test(type) && typeof delta === "string";
  if (!isText || !Object.keys(payload).every((name) => DELTA_MEMBERS.has(name))) return undefined;
  return {
    text: "delta",
    number: number === undefined ? undefined : "sequence_number",
    noise: obfuscation === undefined ? undefined : "obfuscation",
  };
}
