/**
 * Translates a stream from one protocol to another in steps: frames, hub events, an assertion of their order, blocks in
 * sequence, stop strings, the client's frames. Each step gets only whole events, so it does not matter how the bytes
 * are split (ARCHITECTURE.md promise 7).
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import { billedUsage, type Usage } from "../../values/tokens/usage.ts";
import { SSE_EVENT_BYTES_MAX, type SseEvent, SseReader } from "../../wire/sse.ts";
import { asBuffer } from "../../wire/utf8.ts";
import { TEMPLATE_MISSES_MAX, type Varying } from "../delta-template.ts";
import type { AttemptCounts, ClientFrames, StreamConverter, UpstreamFault } from "../exchange.ts";
import type { ReplyEvent } from "../hub-reply.ts";
import { ReplyOrder } from "../order.ts";
import { Sequencer } from "../sequence.ts";
import type { StreamEncoder } from "../stream-encoder.ts";
import { beyondLimit, OVERSIZED } from "../watch.ts";
import { plainDelta, RepeatedDelta, textOf } from "./repeated-delta.ts";
import { StopWatch } from "./stop-emulation.ts";

/** The most bytes that a model may produce in one stream; some protocols send everything to the client twice. */
const PRODUCED_BYTES_MAX = 64 * 1024 * 1024;

/** What a translated stream needs of an upstream's protocol. */
export interface ReplyDecoder {
  push(event: SseEvent): readonly ReplyEvent[];
  end(): readonly ReplyEvent[];
  truncate(usage: Usage): readonly ReplyEvent[];
  readonly fault: UpstreamFault | undefined;
  counts(): AttemptCounts;
  /** Bytes of output so far. */
  readonly size: number;
  /** Whether so many more characters can be kept without exceeding a limit. */
  mayKeep(chars: number): boolean;
  /** The members that may differ in further frames like the last one; undefined if each has to be parsed. */
  readonly varying: Varying | undefined;
  /**
   * Accounts for `deltas` more frames of that kind, which together contain this text. Does what `push` would do,
   * without returning events.
   */
  again(text: string, deltas: number): void;
}

export class TranslatedStream implements StreamConverter {
  readonly #reader = new SseReader();
  readonly #decoder: ReplyDecoder;
  readonly #order = new ReplyOrder();
  readonly #sequencer = new Sequencer();
  readonly #stopWatch: StopWatch;
  readonly #encoder: StreamEncoder;
  readonly #inputEstimate: number;
  /** Only servers that are asked in their own protocol keep responses. */
  readonly keptId = undefined;
  /** The usage that is sent to the client if the reply is ended here before the upstream's end. */
  #truncatedAt: Usage | undefined;
  #frames: ClientFrames[] = [];
  /** Made from the last event, if events like it can be recognized by it. */
  #repeated: RepeatedDelta | undefined;
  /** Templates in a row that no following event has matched. */
  #misses = 0;
  #fault: UpstreamFault | undefined;
  #opened = false;
  #ended = false;

  /**
   * @param request `emulateStop`: the stop strings that the upstream did not get; `inputEstimate`: input tokens
   * estimated from the request's size.
   */
  constructor(
    decoder: ReplyDecoder,
    encoder: StreamEncoder,
    request: { readonly emulateStop: readonly string[]; readonly inputEstimate: number },
  ) {
    this.#decoder = decoder;
    this.#encoder = encoder;
    this.#stopWatch = new StopWatch(request.emulateStop);
    this.#inputEstimate = request.inputEstimate;
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  get opened(): boolean {
    return this.#opened;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get draining(): boolean {
    return this.#stopWatch.hit && !this.#ended;
  }

  push(chunk: Uint8Array): readonly ClientFrames[] {
    if (this.#isOver) return [];
    this.#reader.feed(chunk);
    do this.#takeRepeated();
    while (this.#readNext());
    if (this.#reader.overflowed) this.#fail(OVERSIZED);
    return this.#take();
  }

  end(): readonly ClientFrames[] {
    if (this.#isOver) return [];
    for (const event of this.#reader.end()) this.#read(event);
    if (!this.#isOver) {
      this.#process(this.#decoder.end());
      if (this.#decoder.fault) this.#fail(this.#decoder.fault);
    }
    return this.#take();
  }

  truncate(usage: Usage): readonly ClientFrames[] {
    if (this.#isOver) return [];
    this.#truncatedAt = usage;
    this.#process(this.#decoder.truncate(usage));
    return this.#take();
  }

  get #isOver(): boolean {
    return this.#ended || this.#fault !== undefined;
  }

  /** @returns whether to continue with the next event. */
  #readNext(): boolean {
    const event = this.#reader.next();
    if (!event) return false;
    this.#read(event);
    return !this.#isOver;
  }

  #read(event: SseEvent): void {
    const before = this.#frames.length;
    const events = this.#decoder.push(event);
    this.#process(events);
    const fault = this.#decoder.fault ?? this.#excess();
    if (fault) this.#fail(fault);
    this.#learn(event, events, before);
  }

  /** Makes the parsed event the template for those after it, if the client got one frame for it or none. */
  #learn({ raw }: SseEvent, events: readonly ReplyEvent[], before: number): void {
    const last = this.#repeated;
    this.#repeated = undefined;
    const delta = plainDelta(events);
    const isLive = delta && this.#stopWatch.isIdle && this.#sequencer.isLive(delta.key);
    if (!isLive || this.#isOver) return;
    const varying = this.#misses < TEMPLATE_MISSES_MAX ? this.#decoder.varying : undefined;
    if (!varying) return;
    const frame = asBuffer(raw);
    if (last?.fits(frame)) {
      this.#repeated = last;
      return;
    }
    this.#misses++;
    const sent = this.#frames.slice(before).map(({ bytes }) => asBuffer(bytes));
    this.#repeated = RepeatedDelta.of(frame, varying, sent, this.#encoder.varying[delta.type]);
  }

  /** Takes the next events that differ from the last one by their text only. */
  #takeRepeated(): void {
    const bytes = this.#reader.between;
    const repeated = this.#repeated;
    if (!repeated || !bytes) return;
    const from = this.#reader.at;
    // Near a limit, each event has to be parsed.
    const most = bytes.length - from;
    const isNear = most > SSE_EVENT_BYTES_MAX || this.#decoder.size + most > PRODUCED_BYTES_MAX;
    if (isNear || !this.#decoder.mayKeep(most)) return;
    const run = repeated.run(bytes, from);
    if (!run) return;
    this.#misses = 0;
    const { deltas } = run;
    const text = textOf(bytes, run);
    this.#decoder.again(text, deltas);
    const written = repeated.write(bytes, run, this.#encoder.again(text, deltas));
    if (written) this.#frames.push({ bytes: written, semantic: true, terminal: false });
    this.#reader.skipTo(run.end);
  }

  #process(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      for (const next of this.#sequencer.push(this.#order.see(event))) {
        for (const shown of this.#stopWatch.push(next)) this.#write(shown);
      }
    }
  }

  #write(event: ReplyEvent): void {
    if (event.type === "reply-end") this.#encoder.push({ type: "usage-update", usage: this.#clientUsage() });
    const frames = this.#encoder.push(event);
    this.#frames.push(...frames);
    this.#ended ||= frames.some((frame) => frame.terminal);
  }

  /**
   * The usage for the client: the one that it is charged for, even if the server has not counted all of it. Exception:
   * a reply that ended at a stop string found here, without the upstream's usage, is charged by the most expensive
   * evidence (settle/meter.ts, evidenceOf).
   */
  #clientUsage(): Usage {
    if (this.#truncatedAt) return this.#truncatedAt;
    const { usage, final, produced } = this.#decoder.counts();
    return billedUsage(usage, { final, outputEstimate: produced.tokens, inputEstimate: this.#inputEstimate }).usage;
  }

  #excess(): UpstreamFault | undefined {
    if (this.#sequencer.overflowed) return beyondLimit("too much of the stream is queued");
    return this.#decoder.size > PRODUCED_BYTES_MAX ? beyondLimit("the reply is too large") : undefined;
  }

  /** After a stop string the answer is complete, even if the upstream fails. */
  #fail(fault: UpstreamFault): void {
    if (this.#isOver) return;
    if (this.#stopWatch.hit) this.#write({ type: "reply-end" });
    else this.#fault = fault;
  }

  /** Returns what has been written: one piece up to the terminal frames, then these. */
  #take(): readonly ClientFrames[] {
    const frames = this.#frames;
    if (frames.length === 0) return frames;
    this.#frames = [];
    this.#opened = true;
    if (frames.length === 1) return frames;
    const before = frames.filter((frame) => !frame.terminal);
    const ending = frames.filter((frame) => frame.terminal);
    return before.length === 0 ? ending : [joined(before), ...ending];
  }

  counts(): AttemptCounts {
    return this.#decoder.counts();
  }

  fail(answer: ErrorAnswer, requestId: string): Uint8Array {
    return this.#encoder.fail(answer, this.#fault?.code ?? "server_error", requestId);
  }

  heartbeat(): Uint8Array | undefined {
    return this.#opened && !this.#ended ? this.#encoder.heartbeat() : undefined;
  }
}

function joined(frames: readonly ClientFrames[]): ClientFrames {
  const [first] = frames;
  if (first && frames.length === 1) return first;
  return {
    bytes: Buffer.concat(frames.map((frame) => frame.bytes)),
    semantic: frames.some((frame) => frame.semantic),
    terminal: false,
  };
}
