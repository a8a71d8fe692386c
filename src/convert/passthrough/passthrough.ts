/**
 * Passthrough, for a client and an upstream of the same protocol. Bodies pass byte for byte, spliced only where a rule
 * says so (ARCHITECTURE.md promise 6), and are watched for the charge.
 */

import { isRefusal } from "../../values/errors.ts";
import { type JsonObject, objectOf, parseObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { billedUsage, type Usage } from "../../values/tokens/usage.ts";
import { spliceNested } from "../../wire/json.ts";
import { SSE_EVENT_BYTES_MAX, type SseEvent, SseReader } from "../../wire/sse.ts";
import { asBuffer } from "../../wire/utf8.ts";
import { AnsweredModel } from "../answered-model.ts";
import { countChoices } from "../chat/produced.ts";
import { failureWordOf } from "../chat/reply-decode.ts";
import { readWholeUsage as readChatUsage, writeUsage as writeChatUsage } from "../chat/usage.ts";
import { ChatWatcher } from "../chat/watch.ts";
import { withCount } from "../counted-fault.ts";
import { DeltaTemplate, TEMPLATE_MISSES_MAX } from "../delta-template.ts";
import type {
  AttemptCounts,
  ClientFrames,
  ClientRequest,
  ConvertContext,
  EncodedRequest,
  Exchange,
  OpenExchange,
  Permitted,
  RouteFacts,
  StreamConverter,
  UpstreamFault,
  WholeReply,
} from "../exchange.ts";
import { countContent } from "../messages/produced.ts";
import { readUsage as readMessagesUsage, writeUsage as writeMessagesUsage } from "../messages/usage.ts";
import { MessagesWatcher } from "../messages/watch.ts";
import { outlineOf } from "../reply/outline.ts";
import { hasTooManyNames, parseReply } from "../reply/parse.ts";
import { countOutput } from "../responses/produced.ts";
import { type Keeping, keptNative, mayBeReferredTo, withSealedIds } from "../responses/references/sealing.ts";
import { faultOf } from "../responses/reply-decode.ts";
import { responseBegun } from "../responses/response.ts";
import { withWrappedContainers } from "../responses/stored/containers.ts";
import { RewritingWatcher, withWrappedIds, wrappingContainers, wrappingStored } from "../responses/stored/reply.ts";
import { WrappedIds } from "../responses/stored/stored.ts";
import { readUsage as readResponsesUsage, writeUsage as writeResponsesUsage } from "../responses/usage.ts";
import { ResponsesWatcher } from "../responses/watch.ts";
import { finishOf } from "../rules/finish-words.ts";
import { translationHeader } from "../rules/losses.ts";
import {
  brokenOff,
  errorIn,
  invalid,
  type MissingUsage,
  OVERSIZED,
  reported,
  type SeenEvent,
  TOO_MANY_NAMES,
  type Watcher,
} from "../watch.ts";
import { withOwnEnd } from "./own-end.ts";
import { spliceRequest } from "./request.ts";

/** Opens an exchange on a route of the client's protocol. */
export const openPassthrough: OpenExchange = (request, route, permitted, context) => {
  const spliced = spliceRequest(request, route, permitted, context);
  return isRefusal(spliced) ? spliced : new Passthrough(request, { route, context }, permitted, spliced);
};

class Passthrough implements Exchange {
  readonly request: Exchange["request"];
  readonly translation: string | undefined;
  readonly #request: ClientRequest;
  /** The client's model name, if the upstream has another name for the model. */
  readonly #rename: string | undefined;
  readonly #openEnded: boolean;
  readonly #missingUsage: MissingUsage;
  readonly #answered: AnsweredModel;
  readonly #context: ConvertContext;
  /** Responses: how the items of the reply are sealed into their ids. Undefined: they are not. */
  readonly #keeping: Keeping | undefined;
  /** Responses: the client's ids for what the server keeps. */
  readonly #wrapped: WrappedIds | undefined;
  /** Whether the server keeps more than containers. */
  readonly #isStateful: boolean;

  constructor(
    request: ClientRequest,
    { route, context }: { readonly route: RouteFacts; readonly context: ConvertContext },
    permitted: Permitted,
    encoded: EncodedRequest,
  ) {
    this.#request = request;
    this.#context = context;
    const isResponses = request.protocol === "responses";
    const kept = { upstream: route.upstream, model: request.model };
    this.#wrapped = isResponses ? new WrappedIds(kept, context, request.stored) : undefined;
    this.#isStateful = route.stateful === true;
    const isReferable = isResponses && !route.stateful && mayBeReferredTo(request.json);
    this.#keeping = isReferable ? { keep: (item) => keptNative(item, route, context), context } : undefined;
    this.#openEnded = permitted.openEnded === true;
    this.#missingUsage = missingUsageFor(permitted.inputEstimate);
    this.#answered = new AnsweredModel(route.upstreamModel, route.answersAs);
    this.#rename = route.upstreamModel === request.model ? undefined : request.model;
    const { dropped } = encoded;
    this.request = encoded;
    this.translation = dropped.length === 0 ? undefined : translationHeader(dropped);
  }

  whole(received: Uint8Array): WholeReply | UpstreamFault {
    const body = this.#wrapped ? withWrappedContainers(received, this.#wrapped) : received;
    const { json, fault } = parseReply(body, this.#request.protocol, parseObject);
    if (fault) return fault;
    const read = READ_WHOLE[this.#request.protocol](json, this.#request);
    if ("reason" in read) return withCount(read, this.#request.protocol, json);
    const renamed = this.#rename === undefined ? body : spliceNested(body, ["model"], JSON.stringify(this.#rename));
    const missingUsage = this.#missingUsage(read);
    const written = missingUsage && { ...objectOf(json.usage), ...WRITE_USAGE[this.#request.protocol](missingUsage) };
    const counted = written ? spliceNested(renamed, ["usage"], JSON.stringify(written)) : renamed;
    this.#answered.see(json);
    const sealed = this.#keeping ? withSealedIds(counted, json, this.#keeping) : counted;
    const named = this.#wrapped && this.#isStateful ? withWrappedIds(sealed, this.#wrapped) : sealed;
    const { other } = this.#answered;
    const counts = other === undefined ? read : { ...read, answeredBy: other };
    return { body: withOwnEnd(named, this.#request.protocol, json), counts };
  }

  stream(): StreamConverter {
    const facts = {
      rename: this.#rename,
      openEnded: this.#openEnded,
      answered: this.#answered,
      missingUsage: this.#missingUsage,
      context: this.#context,
      keeping: this.#keeping,
    };
    const watcher = WATCHERS[this.#request.protocol](this.#request, facts);
    const rewriting = this.#isStateful ? wrappingStored : wrappingContainers;
    const shown = this.#wrapped ? new RewritingWatcher(watcher, rewriting(this.#wrapped)) : watcher;
    return new PassthroughStream(shown, this.#answered, this.#isStateful ? this.#wrapped : undefined);
  }
}

/** The usage of a bill that is estimated (ARCHITECTURE.md promise 3), so that it is also what the client reads. */
function missingUsageFor(inputEstimate: number | undefined): MissingUsage {
  return (counts) => {
    if (inputEstimate === undefined) return undefined;
    const final = counts.final && counts.usage !== undefined;
    const beside = { final, inputEstimate, outputEstimate: counts.produced.tokens };
    const { usage, estimated } = billedUsage(counts.usage, beside);
    return estimated ? usage : undefined;
  };
}

const WRITE_USAGE: Readonly<Record<Protocol, (usage: Usage) => JsonObject>> = {
  chat: writeChatUsage,
  messages: writeMessagesUsage,
  responses: writeResponsesUsage,
};

interface WatchFacts {
  readonly missingUsage: MissingUsage;
  readonly rename: string | undefined;
  readonly openEnded: boolean;
  readonly answered: AnsweredModel;
  readonly context: ConvertContext;
  readonly keeping: Keeping | undefined;
}

type OpenWatcher = (request: ClientRequest, facts: WatchFacts) => Watcher;

const WATCHERS: Readonly<Record<Protocol, OpenWatcher>> = {
  chat: (request, { rename, answered, missingUsage }) =>
    new ChatWatcher({
      includeUsage: objectOf(request.json.stream_options)?.include_usage === true,
      rename,
      choices: typeof request.json.n === "number" ? request.json.n : 1,
      answered,
      missingUsage,
    }),
  messages: (_request, { rename, answered, missingUsage }) => new MessagesWatcher({ rename, answered, missingUsage }),
  responses: ({ model }, { rename, openEnded, answered, missingUsage, context, keeping }) =>
    new ResponsesWatcher({
      rename,
      openEnded,
      answered,
      missingUsage,
      keeping,
      opening: () => responseBegun(model, context),
    }),
};

/** Counts of a whole reply, after a check that it has the structure that its protocol requires. */
const READ_WHOLE: Readonly<
  Record<Protocol, (json: JsonObject, asked: Pick<ClientRequest, "json">) => AttemptCounts | UpstreamFault>
> = {
  chat(json, asked) {
    const error = errorIn(json);
    if (error) return reported(error.type, error.code, error.message, error.param);
    if (!Array.isArray(json.choices) || !objectOf(objectOf(json.choices[0])?.message)) {
      const usage = asksOnlyToCache(asked) ? readChatUsage(json) : undefined;
      return usage ? { usage, final: true, produced: countChoices([]) } : invalid("a chat completion without a choice");
    }
    const word = failureWordOf(objectOf(json.choices[0]) ?? {});
    if (word !== undefined) return brokenOff(word);
    return { usage: readChatUsage(json), final: true, produced: countChoices(json.choices) };
  },
  messages(json) {
    const error = errorIn(json);
    if (json.type === "error" || error)
      return reported(error?.type, error?.code, error?.message, undefined, error?.details);
    if (!Array.isArray(json.content)) return invalid("a message without content");
    if (finishOf(json.stop_reason) === "failure") return brokenOff(json.stop_reason);
    return { usage: readMessagesUsage(json.usage), final: true, produced: countContent(json.content) };
  },
  responses(json) {
    const fault = faultOf(json);
    if (fault) return fault;
    return { usage: readResponsesUsage(json), final: true, produced: countOutput(json.output) };
  },
};

/** Whether a request only prepares the prompt cache: its answer has no choice, and is complete with its count. */
function asksOnlyToCache({ json }: Pick<ClientRequest, "json">): boolean {
  return objectOf(json.prompt_cache_options)?.prewarm === true;
}

class PassthroughStream implements StreamConverter {
  readonly #reader = new SseReader();
  readonly #watcher: Watcher;
  readonly #answered: AnsweredModel;
  /** The ids of what the upstream keeps; undefined if it keeps nothing. */
  readonly #kept: WrappedIds | undefined;
  /** Made from the last frame, if frames like it can be recognized by it. */
  #template: DeltaTemplate | undefined;
  /** Templates in a row that no frame has matched. */
  #misses = 0;
  #isOverNamed = false;
  #ended = false;
  #opened = false;

  constructor(watcher: Watcher, answered: AnsweredModel, kept: WrappedIds | undefined) {
    this.#watcher = watcher;
    this.#answered = answered;
    this.#kept = kept;
  }

  get fault(): UpstreamFault | undefined {
    if (this.#isOverNamed) return TOO_MANY_NAMES;
    return this.#watcher.fault ?? (this.#reader.overflowed ? OVERSIZED : undefined);
  }

  get ended(): boolean {
    return this.#ended;
  }

  get opened(): boolean {
    return this.#opened;
  }

  get keptId(): string | undefined {
    return this.#kept?.responseId;
  }

  readonly draining = false;

  push(chunk: Uint8Array): readonly ClientFrames[] {
    if (this.#ended || this.fault) return [];
    this.#reader.feed(chunk);
    return this.#collect(undefined);
  }

  end(): readonly ClientFrames[] {
    if (this.#ended || this.fault) return [];
    const frames = this.#collect(this.#reader.end().flatMap(completed));
    if (this.#ended || this.fault) return frames;
    const added = this.#watcher.finish();
    if (added === undefined) return frames;
    this.#ended = true;
    return [...frames, { bytes: added, semantic: false, terminal: true }];
  }

  /**
   * Joins the frames that a chunk completed: one piece up to the terminal frame, and one for the terminal frame.
   * @param rest the events that the end of the body completed; undefined: the body continues.
   */
  #collect(rest: SseEvent[] | undefined): readonly ClientFrames[] {
    const first = this.#takeRun();
    const pieces: Uint8Array[] = first ? [first] : [];
    let semantic = first !== undefined;
    let terminal: SeenEvent | undefined;
    for (let event = this.#next(rest); event; event = this.#next(rest)) {
      if (event.data !== undefined && hasTooManyNames(event.data)) {
        this.#refuse(event, event.data);
        break;
      }
      const seen: SeenEvent = this.#watcher.see(event);
      if (this.#watcher.fault) break;
      if (seen.terminal) {
        this.#ended = true;
        terminal = seen;
        break; // A stream is not read after its terminal frame (docs/translation-rules.md rule 48).
      }
      if (seen.bytes) pieces.push(seen.bytes);
      semantic ||= seen.semantic;
      // A comment before the first event does not open the stream, so the status line can still be chosen.
      if (event.data !== undefined && seen.bytes) this.#opened = true;
      this.#learn(event, seen);
      const run = this.#takeRun();
      if (run) pieces.push(run);
      semantic ||= run !== undefined;
    }
    const frames: ClientFrames[] = [];
    if (pieces.length > 0) frames.push({ bytes: join(pieces), semantic, terminal: false });
    if (terminal?.bytes) frames.push({ bytes: terminal.bytes, semantic: terminal.semantic, terminal: true });
    return frames;
  }

  /** Ends the stream because of an event that is not parsed. Its usage is recorded; the client does not get it. */
  #refuse(event: SseEvent, data: Uint8Array): void {
    this.#isOverNamed = true;
    const outline = outlineOf(data);
    if (outline) this.#watcher.see({ ...event, data: Buffer.from(JSON.stringify(outline)) });
  }

  #next(rest: SseEvent[] | undefined): SseEvent | undefined {
    return rest ? rest.shift() : this.#reader.next();
  }

  /** Takes the next frames that differ from the last one by their text only. @returns what the client gets of them. */
  #takeRun(): Uint8Array | undefined {
    const template = this.#template;
    const bytes = this.#reader.between;
    if (!template || !bytes) return undefined;
    const from = this.#reader.at;
    // A frame that may be too large must go through the reader.
    const run = bytes.length - from > SSE_EVENT_BYTES_MAX ? undefined : template.run(bytes, from, false);
    if (!run) return undefined;
    this.#misses = 0;
    this.#watcher.again(bytes, run);
    this.#reader.skipTo(run.end);
    if (template.isRewritten) return template.written(bytes, run);
    return run.end - from === bytes.length ? bytes : bytes.subarray(from, run.end);
  }

  /** Makes the parsed frame the template for the frames after it. */
  #learn({ raw }: SseEvent, { bytes }: SeenEvent): void {
    const varying = bytes && this.#misses < TEMPLATE_MISSES_MAX ? this.#watcher.varying : undefined;
    if (!bytes || varying === undefined) {
      this.#template = undefined;
      return;
    }
    const frame = asBuffer(raw);
    if (this.#template?.fits(frame, false)) return;
    this.#misses++;
    this.#template = DeltaTemplate.of(frame, bytes === raw ? frame : asBuffer(bytes), varying);
  }

  counts(): AttemptCounts {
    const counts = this.#watcher.counts();
    // Called for each chunk: no copy if there is nothing to add.
    const { other } = this.#answered;
    return other === undefined ? counts : { ...counts, answeredBy: other };
  }

  fail(...args: Parameters<StreamConverter["fail"]>): Uint8Array {
    return this.#watcher.fail(...args);
  }

  truncate(usage: Usage): readonly ClientFrames[] {
    if (this.#ended || this.fault) return [];
    this.#ended = true;
    return [{ bytes: this.#watcher.truncate(usage), semantic: false, terminal: true }];
  }

  heartbeat(): Uint8Array | undefined {
    return this.#watcher.heartbeat();
  }
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}

/**
 * Added to a frame that ends with its stream: the end of its line and a blank line. If a part of it is already there, a
 * superfluous blank line follows.
 */
const FRAME_END = Buffer.from("\n\n");

/**
 * Completes the last frame of a stream that may have been cut inside it: adds its blank line, so that what is written
 * next does not continue it. A cut comment is dropped. A frame that ends in two line ends is complete, whichever
 * characters they are. A reader holds it back if they are carriage returns, because a line feed may follow.
 */
function completed(event: SseEvent): SseEvent[] {
  const tail = asBuffer(event.raw).toString("latin1", Math.max(0, event.raw.length - 4));
  const line = tail.replace(/(?:\r\n|[\r\n])$/, "");
  if (line !== tail && /[\r\n]$/.test(line)) return [event];
  return event.data === undefined ? [] : [{ ...event, raw: Buffer.concat([event.raw, FRAME_END]) }];
}
