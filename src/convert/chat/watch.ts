/** Watches a chat completions stream. */
import type { ErrorAnswer } from "../../values/errors.ts";
import { arrayOf, isGiven, type JsonObject, objectOf, objectsIn, parseObject } from "../../values/json-object.ts";
import type { Usage } from "../../values/tokens/usage.ts";
import { spliceNested } from "../../wire/json.ts";
import { jsonFrame, type SseEvent, sseFrame } from "../../wire/sse.ts";
import type { DeltaRun, Varying } from "../delta-template.ts";
import type { AttemptCounts, UpstreamFault } from "../exchange.ts";
import { finishOf, withOwnFinish } from "../rules/finish-words.ts";
import {
  brokenOff,
  errorIn,
  invalid,
  NOTHING,
  passed,
  reported,
  type SeenEvent,
  TRUNCATED,
  type Watcher,
  type WatcherOptions,
} from "../watch.ts";
import { renderStreamFailure } from "./error.ts";
import { ChatOutput } from "./produced.ts";
import { failureWordOf } from "./reply-decode.ts";
import { isOwnFinish, ownFinish } from "./reply-encode.ts";
import { CHOICES_MAX, ChatStreamUsage, writeUsage } from "./usage.ts";

const DONE = "[DONE]";
/** Members of a chunk, of its choice and of its delta that can accompany the one text of a plain delta. */
const CHUNK_MEMBERS: ReadonlySet<string> = new Set([
  ...["id", "object", "created", "model", "choices", "usage"],
  ...["system_fingerprint", "service_tier", "provider", "obfuscation"],
]);
const CHOICE_MEMBERS: ReadonlySet<string> = new Set(["index", "delta", "finish_reason", "logprobs"]);
const DELTA_MEMBERS: ReadonlySet<string> = new Set(["role", "content", "reasoning_content", "reasoning"]);

interface ChatWatchOptions extends WatcherOptions {
  /** Whether the client asked for the usage chunk; otherwise it is removed, because only the gateway asked for it. */
  readonly includeUsage: boolean;
  /** Number of choices that the client asked for (`n`). */
  readonly choices: number;
}

export class ChatWatcher implements Watcher {
  readonly #options: ChatWatchOptions;
  #fault: UpstreamFault | undefined;
  readonly #usage: ChatStreamUsage;
  readonly #output = new ChatOutput();
  #finishSeen = false;
  /** The upstream's reason for its failure; its usage may still follow. */
  #failed: string | undefined;
  /** For each choice, by index, whether it has a finish reason. */
  readonly #finished = new Map<number, boolean>();
  #done = false;
  /** The last chunk, if it had output. */
  #last: JsonObject | undefined;
  /** Usage in the chunks so far; undefined: not computed since the last one. */
  #counted: Pick<AttemptCounts, "usage" | "final"> | undefined;
  /** Identity of the stream, for chunks that are added here. */
  #first: { id: unknown; created: unknown; model: unknown } | undefined;

  constructor(options: ChatWatchOptions) {
    this.#options = options;
    this.#usage = new ChatStreamUsage(options.choices);
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault;
  }

  get varying(): Varying | undefined {
    return this.#last && varyingOf(this.#last);
  }

  again(source: Buffer, run: DeltaRun): void {
    this.#output.again(source, run);
  }

  see(event: SseEvent): SeenEvent {
    this.#last = undefined;
    this.#counted = undefined;
    if (event.data === undefined) return passed(event, false);
    if (event.data.length === 0) return NOTHING; // SDKs fail on it.
    const text = Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength).toString();
    if (text.trim() === DONE) return this.#seeDone(event);
    const chunk = parseObject(text);
    if (!chunk) return this.#refuse(invalid("a chunk is not a JSON object"));
    this.#options.answered?.see(chunk);
    const error = errorIn(chunk);
    if (error) {
      // The usage is still needed for the charge.
      this.#usage.seeFailure(chunk, this.#look(chunk));
      return this.#refuse(reported(error.type, error.code, error.message, error.param));
    }
    const hasUsage = objectOf(chunk.usage) !== undefined;
    if (!Array.isArray(chunk.choices) && !hasUsage) {
      if (saysNothing(event.event, chunk)) return NOTHING;
      return this.#refuse(invalid("a chunk has no choices"));
    }
    this.#first ??= { id: chunk.id, created: chunk.created, model: this.#options.rename ?? chunk.model };
    const semantic = this.#look(chunk);
    this.#usage.see(chunk, semantic);
    if (semantic) this.#last = chunk;
    // Some servers leave `choices` out of the usage chunk.
    if (arrayOf(chunk.choices).length === 0 && hasUsage && !this.#options.includeUsage) return NOTHING;
    return { bytes: this.#withOwnFinish(this.#renamed(event, chunk), chunk), semantic, terminal: false };
  }

  /** Replaces an unknown finish reason by the protocol's own. One that means that the server broke off is no end. */
  #withOwnFinish(bytes: Uint8Array, chunk: JsonObject): Uint8Array {
    const choices = objectsIn(chunk.choices);
    const failed = choices.map(failureWordOf).find((word) => word !== undefined);
    this.#failed ??= failed;
    const isOwn = choices.every(({ finish_reason: word }) => typeof word !== "string" || isOwnFinish(word));
    if (isOwn && failed === undefined) return bytes;
    const own = failed === undefined ? ownFinish : () => "null";
    return Buffer.from(withOwnFinish(Buffer.from(bytes).toString(), "finish_reason", own));
  }

  #seeDone(event: SseEvent): SeenEvent {
    if (!this.#finishSeen && this.#first === undefined) return this.#refuse(invalid("[DONE] came first"));
    this.#usage.end();
    if (this.#failed !== undefined) return this.#refuse(brokenOff(this.#failed));
    this.#done = true;
    const usage = this.#usageChunk();
    return usage
      ? { bytes: Buffer.concat([usage, event.raw]), semantic: false, terminal: true }
      : passed(event, false, true);
  }

  /** The usage chunk, if the client asked for it and the upstream has not sent it or its usage is incomplete. */
  #usageChunk(): Uint8Array | undefined {
    const usage = this.#options.includeUsage ? this.#options.missingUsage?.(this.counts()) : undefined;
    return usage && this.#chunk({ choices: [], usage: writeUsage(usage) });
  }

  /** Whether this many choices have a finish reason; all that have begun, if those are more. */
  #haveFinished(choices: number): boolean {
    let finished = 0;
    for (const one of this.#finished.values()) if (one) finished++;
    return finished >= Math.max(Math.min(choices, CHOICES_MAX), this.#finished.size);
  }

  #refuse(fault: UpstreamFault): SeenEvent {
    this.#fault = fault;
    return NOTHING;
  }

  #look(chunk: JsonObject): boolean {
    for (const item of arrayOf(chunk.choices)) {
      const choice = objectOf(item);
      const finished = finishOf(choice?.finish_reason) !== undefined;
      this.#finishSeen ||= finished;
      this.#noteChoice(typeof choice?.index === "number" ? choice.index : 0, finished);
    }
    return this.#output.see(undefined, chunk);
  }

  #noteChoice(index: number, finished: boolean): void {
    if (this.#finished.has(index) ? finished : this.#finished.size < CHOICES_MAX) this.#finished.set(index, finished);
  }

  #renamed(event: SseEvent, chunk: JsonObject): Uint8Array {
    const { rename } = this.#options;
    if (rename === undefined || event.data === undefined || typeof chunk.model !== "string") return event.raw;
    return jsonFrame(spliceNested(event.data, ["model"], JSON.stringify(rename)));
  }

  finish(): Uint8Array | undefined {
    if (this.#done) return undefined;
    if (this.#failed !== undefined) {
      this.#fault = brokenOff(this.#failed);
      return undefined;
    }
    if (this.#finishSeen && this.#haveFinished(1)) {
      this.#done = true;
      return Buffer.concat([this.#usageChunk() ?? Buffer.alloc(0), sseFrame(DONE)]);
    }
    this.#fault = TRUNCATED;
    return undefined;
  }

  counts(): AttemptCounts {
    this.#counted ??= { usage: this.#usage.usage, final: this.#usage.final };
    const { usage, final } = this.#counted;
    return { usage, final, produced: this.#output.counts() };
  }

  fail(answer: ErrorAnswer, requestId: string): Uint8Array {
    return sseFrame(renderStreamFailure(answer, this.#fault?.code ?? "server_error", requestId));
  }

  truncate(usage: Usage): Uint8Array {
    const { includeUsage } = this.#options;
    if (this.#finished.size === 0) this.#finished.set(0, this.#finishSeen);
    const running = [...this.#finished].filter(([, finished]) => !finished);
    const frames = running.map(([index]) =>
      this.#chunk({
        choices: [{ index, delta: {}, logprobs: null, finish_reason: "length" }],
        usage: includeUsage ? null : undefined,
      }),
    );
    if (includeUsage) frames.push(this.#chunk({ choices: [], usage: writeUsage(usage) }));
    return Buffer.concat([...frames, sseFrame(DONE)]);
  }

  heartbeat(): Uint8Array | undefined {
    if (!this.#first) return undefined;
    return this.#chunk({ choices: [{ index: 0, delta: {}, finish_reason: null }] });
  }

  #chunk(members: JsonObject): Uint8Array {
    return sseFrame(JSON.stringify({ ...this.#first, object: "chat.completion.chunk", ...members }));
  }
}

/**
 * Whether a chunk has no meaning: a ping in another protocol's form, a chunk whose choices are `null`, or an event of
 * the server's own (docs/translation-rules.md rule 48). SDKs fail on all of them.
 */
export function saysNothing(name: string, chunk: JsonObject): boolean {
  return name === "ping" || chunk.type === "ping" || chunk.choices === null || isOfServer(name);
}

/** Names that are no server's own: none, errors, and the events of the other protocols, whose text would be lost. */
const COMMON_NAMES = /^(?:|message|error|message_.*|content_block_.*|response\..*)$/;

function isOfServer(name: string): boolean {
  return !COMMON_NAMES.test(name);
}

/** Defined only for a chunk with one text and nothing else: no end, usage, call or second choice. */
export function varyingOf(chunk: JsonObject): Varying | undefined {
  const [choice, further] = arrayOf(chunk.choices).map(objectOf);
  const delta = objectOf(choice?.delta);
  const isPlain =
    choice &&
    delta &&
    further === undefined &&
    hasOnly(chunk, CHUNK_MEMBERS) &&
    hasOnly(choice, CHOICE_MEMBERS) &&
    hasOnly(delta, DELTA_MEMBERS) &&
    !isGiven(chunk.usage) &&
    !isGiven(choice.finish_reason) &&
    !isGiven(choice.logprobs);
  if (!isPlain) return undefined;
  const texts = ["content", "reasoning_content", "reasoning"].filter((name) => isGiven(delta[name]));
  const [text] = texts;
  if (text === undefined || texts.length > 1 || typeof delta[text] !== "string") return undefined;
  return { text, noise: chunk.obfuscation === undefined ? undefined : "obfuscation" };
}

function hasOnly(object: JsonObject, members: ReadonlySet<string>): boolean {
  return Object.keys(object).every((name) => members.has(name));
}
