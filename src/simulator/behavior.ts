/**
 * What the simulated model server is asked to do, and the two ways to ask it from outside.
 *
 * 1. A header: `x-simulate: {"text":"hello"}`.
 * 2. A line in the last user text, for callers behind a gateway that filters headers:
 *
 *        simulate: {"text":"hello", "thinking":"hm", "tools":[{"name":"f","arguments":{"a":1}}]}
 *
 *    The JSON is the rest of that line, or continues to the end of the text.
 *
 * In process, `simulator.program(behavior)` does the same. If several apply, the order of precedence is: a program for
 * the next requests, the header, the line, a program that is always on. Every field is optional. A field that is not
 * listed here is refused with 400, so that a typing error cannot make a test pass.
 */

/** One tool call of the reply. */
export interface ToolPlan {
  readonly name: string;
  /** An object, or a string that is sent unchanged (to send broken JSON). For a custom tool: its input. */
  readonly arguments?: unknown;
  readonly id?: string;
  /** Default `function`. On messages, which has no custom tools, a custom one becomes `{"input": "..."}`. */
  readonly kind?: "function" | "custom";
  /** Responses only. */
  readonly namespace?: string;
}

/**
 * Why the reply ends, in neutral names; `reply.ts` maps them to each protocol. Any other text is sent unchanged.
 * Default: `tools` with tool calls, `refusal` with a refusal, `length` if the limit cut it, else `end`.
 */
export type StopCause =
  | "end"
  | "tools"
  | "length"
  | "refusal"
  | "content_filter"
  | "stop_sequence"
  | "context_window"
  | "pause"
  | (string & {});

/** Token counts that do not overlap; chat and responses add the cached ones to their input, messages does not. */
export interface SimulatedUsage {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  /** Reasoning included. */
  readonly output: number;
  readonly reasoning: number;
}

/** Delays of an answer. People should see it stream; tests should not wait. */
export interface ReplyDelays {
  readonly headersDelayMs: number;
  readonly firstDelayMs: number;
  readonly betweenMs: number;
}

/** What goes wrong. Event counts are frames of the stream; in a whole reply, each of them means half of the body. */
export interface Fault {
  /** Only this many requests with the same body meet the fault; default: all of them. */
  readonly times?: number;
  /** Answers with this status in the protocol's error form, or with `body`. */
  readonly status?: number;
  readonly type?: string;
  readonly code?: string;
  readonly message?: string;
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly retryAfter?: string | number;
  /** Informational answers (100, 102, 103) before the real one. */
  readonly informational?: readonly number[];
  readonly delayHeadersMs?: number;
  readonly stallBeforeHeaders?: boolean;
  readonly resetBeforeHeaders?: boolean;
  readonly stallAfterEvents?: number;
  readonly resetAfterEvents?: number;
  /** The body ends cleanly without the terminal event. */
  readonly endAfterEvents?: number;
  /** A frame that is not JSON after `n` events, or the bytes of `text` or `base64` unchanged. */
  readonly garbageAfterEvents?: number | { readonly n: number; readonly text?: string; readonly base64?: string };
  /** The protocol's own error event. `failed` sends `response.failed` instead of `error` on responses. */
  readonly errorEventAfter?: {
    readonly n: number;
    readonly type?: string;
    readonly code?: string;
    readonly message?: string;
    readonly failed?: boolean;
  };
  /** 200 with an HTML page. */
  readonly html?: boolean;
  /** 200 with a JSON error body. */
  readonly jsonErrorIn200?: boolean;
  /** Leaves out the last frame: `[DONE]`, `message_stop`, `response.completed`. */
  readonly noTerminal?: boolean;
  /** True sends `application/octet-stream`. */
  readonly wrongContentType?: boolean | string;
  readonly extraHeaders?: Readonly<Record<string, string | string[]>>;
  /** One valid event of at least this many bytes after the first (in a whole reply: a member `padding`). */
  readonly hugeEvent?: number;
  /** This many `data:` lines without data after the first event. */
  readonly emptyEvents?: number;
  /** Written to the socket instead of an HTTP answer; a string is base64. */
  readonly rawResponse?: string | Uint8Array;
  readonly compress?: "gzip" | "br" | "deflate" | "zstd";
}

/** One frame of a stream, given by a test. */
interface DictatedFrame {
  readonly event?: string;
  readonly data: unknown;
}

export interface Behavior {
  readonly text?: string;
  /** Several texts: text blocks on messages, message items on responses, one joined content on chat. */
  readonly texts?: readonly string[];
  /** Responses: all texts are parts of one message item. */
  readonly oneItem?: boolean;
  readonly thinking?: string;
  /** Responses: sends thinking as `reasoning_text` instead of a summary. */
  readonly rawReasoning?: boolean;
  /** Messages: a redacted_thinking block; responses: a reasoning item that has only its encrypted content. */
  readonly redacted?: string;
  readonly tools?: readonly ToolPlan[];
  /** Calls the named tool of the request, or its first one, with arguments made from its schema. */
  readonly useTool?: boolean | string;
  /** Chat and responses: deltas of several tool calls alternate. Messages never interleaves blocks. */
  readonly interleave?: boolean;
  readonly refusal?: string;
  /** Unknown members, after all others: on chat in a delta, elsewhere in a block or item of their own. */
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly stop?: StopCause;
  readonly stopSequence?: string;
  readonly usage?: Partial<SimulatedUsage>;
  /** The reply is not truncated at the request's output limit. */
  readonly ignoreLimit?: boolean;
  /** Characters per delta; default 12. */
  readonly deltaChars?: number;
  /** The body is written in pieces of this many bytes, which may split a character or an event. */
  readonly chunkBytes?: number;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
  /** A heartbeat of the protocol after every this many events. */
  readonly pings?: number;
  readonly obfuscation?: boolean;
  readonly noUsage?: boolean;
  readonly usageOnEveryChunk?: boolean;
  /** The model name in the reply, instead of the request's. */
  readonly model?: string;
  /** Replaces the whole stream; a `data` that is a string is sent unchanged. */
  readonly frames?: readonly DictatedFrame[];
  /** Replaces the whole reply's JSON. */
  readonly body?: unknown;
  readonly fault?: Fault;
  readonly pace?: Partial<ReplyDelays>;
}

/** An invalid directive; answered with 400 and this message. */
export class DirectiveError extends Error {}

type Kind = "string" | "number" | "boolean" | "object" | "array" | "any";

const FIELDS: Readonly<Record<keyof Behavior, Kind>> = {
  text: "string",
  texts: "array",
  oneItem: "boolean",
  thinking: "string",
  rawReasoning: "boolean",
  redacted: "string",
  tools: "array",
  useTool: "any",
  interleave: "boolean",
  refusal: "string",
  extra: "object",
  stop: "string",
  stopSequence: "string",
  usage: "object",
  ignoreLimit: "boolean",
  deltaChars: "number",
  chunkBytes: "number",
  lineEnd: "string",
  pings: "number",
  obfuscation: "boolean",
  noUsage: "boolean",
  usageOnEveryChunk: "boolean",
  model: "string",
  frames: "array",
  body: "any",
  fault: "object",
  pace: "object",
};

/**
 * Parses a behavior from JSON text.
 * @throws DirectiveError if it is not a JSON object, or has an unknown field or a value of the wrong type.
 */
export function parseBehavior(text: string): Behavior {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DirectiveError("simulate: what follows is not JSON");
  }
  if (kindOf(value) !== "object") throw new DirectiveError("simulate: a JSON object is expected");
  for (const [name, member] of Object.entries(value as object)) {
    const kind = (FIELDS as Readonly<Record<string, Kind>>)[name];
    if (!kind) throw new DirectiveError(`simulate: there is no field "${name}"`);
    if (kind !== "any" && kindOf(member) !== kind) throw new DirectiveError(`simulate: "${name}" is not a ${kind}`);
  }
  return value as Behavior;
}

/**
 * Finds the last `simulate:` line of a text.
 * @returns the behavior; undefined if there is no such line.
 * @throws DirectiveError if the line is invalid.
 */
export function parseDirective(text: string): Behavior | undefined {
  const lines = [...text.matchAll(/^[ \t]*simulate:[ \t]*/gm)];
  const last = lines.at(-1);
  if (!last) return undefined;
  const rest = text.slice(last.index + last[0].length);
  const line = rest.split("\n", 1)[0] as string;
  return parseBehavior(isJson(line) ? line : rest);
}

/**
 * Merges two behaviors; the fields of `above` replace those of `below`. `usage`, `fault` and `pace` are merged member
 * by member.
 */
export function overlay(below: Behavior, above: Behavior | undefined): Behavior {
  if (!above) return below;
  return {
    ...below,
    ...above,
    ...(below.usage && above.usage ? { usage: { ...below.usage, ...above.usage } } : {}),
    ...(below.fault && above.fault ? { fault: { ...below.fault, ...above.fault } } : {}),
    ...(below.pace && above.pace ? { pace: { ...below.pace, ...above.pace } } : {}),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}
