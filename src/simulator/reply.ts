/** Makes one neutral reply from a behavior and a request; each protocol then writes it in its own form. */

import type { Protocol } from "../values/protocol.ts";
import type { Behavior, SimulatedUsage, StopCause, ToolPlan } from "./behavior.ts";
import { object, type ReceivedRequest } from "./conversation.ts";
import { idFrom } from "./ids.ts";

/** One tool call with its id and its arguments as text. */
export interface ToolCall {
  readonly kind: "tool";
  readonly id: string;
  readonly name: string;
  readonly custom: boolean;
  /** JSON text of a function's arguments, or a custom tool's input. */
  readonly text: string;
  readonly namespace?: string;
}

export interface Prose {
  readonly kind: "thinking" | "redacted" | "text" | "refusal";
  readonly text: string;
}

export type Part = Prose | ToolCall;

export interface SimulatedReply {
  readonly seed: string;
  readonly model: string;
  readonly createdS: number;
  /** In the order thinking, redacted, text, refusal, tools. */
  readonly parts: readonly Part[];
  readonly stop: StopCause;
  readonly stopSequence: string | null;
  readonly usage: SimulatedUsage;
  readonly behavior: Behavior;
  readonly conversation: ReceivedRequest;
  readonly request: Readonly<Record<string, unknown>>;
}

/** A fixed time (2026-09-21), because the same request must give the same reply. */
export const CREATED_S = 1_790_000_000;

const DELTA_CHARS = 12;
/** Bytes per token if the behavior gives no count. */
const BYTES_PER_TOKEN = 4;

/**
 * The value of each protocol for a neutral reason (docs/translation-rules.md rule 43). A reason that is not listed is
 * sent unchanged.
 */
const STOP_WORDS: Readonly<Record<string, { chat: string; messages: string; responses: string }>> = {
  end: { chat: "stop", messages: "end_turn", responses: "completed" },
  tools: { chat: "tool_calls", messages: "tool_use", responses: "completed" },
  length: { chat: "length", messages: "max_tokens", responses: "max_output_tokens" },
  refusal: { chat: "stop", messages: "refusal", responses: "completed" },
  content_filter: { chat: "content_filter", messages: "refusal", responses: "content_filter" },
  stop_sequence: { chat: "stop", messages: "stop_sequence", responses: "completed" },
  context_window: { chat: "length", messages: "model_context_window_exceeded", responses: "max_output_tokens" },
  pause: { chat: "stop", messages: "pause_turn", responses: "completed" },
};

/** The reason as the protocol's value; for responses `completed`, or the reason of an incomplete reply. */
export function stopWord(stop: StopCause, protocol: Protocol): string {
  return STOP_WORDS[stop]?.[protocol] ?? stop;
}

interface ReplyInput {
  readonly protocol: Protocol;
  readonly behavior: Behavior;
  readonly conversation: ReceivedRequest;
  readonly request: Readonly<Record<string, unknown>>;
  readonly seed: string;
  readonly bodyBytes: number;
}

/** Decides the content of the reply, where a stop sequence or the output limit cuts it, and its usage. */
export function buildReply(input: ReplyInput): SimulatedReply {
  const { behavior, conversation, seed } = input;
  const full = stopAt(planParts(input), conversation.stopSequences);
  const counted = countTokens(full.parts, input);
  const limit = behavior.ignoreLimit ? undefined : conversation.outputLimit;
  const isCut = limit !== undefined && counted.output > limit;
  const parts = isCut ? cutParts(full.parts, limit / counted.output) : full.parts;
  const usage = isCut ? { ...counted, output: limit, reasoning: Math.min(counted.reasoning, limit) } : counted;
  return {
    seed,
    model: behavior.model ?? conversation.model,
    createdS: CREATED_S,
    parts,
    stop: isCut ? "length" : (behavior.stop ?? (full.sequence === null ? reasonOf(parts) : "stop_sequence")),
    stopSequence: isCut ? null : (behavior.stopSequence ?? full.sequence),
    usage: { ...usage, output: usage.output * conversation.choices },
    behavior,
    conversation,
    request: input.request,
  };
}

/** Splits a text into deltas of the reply's size, never inside a character. */
export function deltas(text: string, behavior: Behavior): string[] {
  const size = Math.max(1, behavior.deltaChars ?? DELTA_CHARS);
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let i = 0; i < characters.length; i += size) pieces.push(characters.slice(i, i + size).join(""));
  return pieces;
}

/** All input tokens including cached ones, as chat and responses count them. */
export function inputWithCache(usage: SimulatedUsage): number {
  return usage.input + usage.cached + usage.cacheWrite + usage.cacheWrite1h;
}

/** Takes the elements of several lists in turns: a1 b1 c1 a2 b2 ... */
export function takeTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map((one) => one.length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((one) => one.slice(i, i + 1))).flat();
}

/** Deterministic padding for `obfuscation` members, which evens out the lengths of deltas as the vendors do. */
export function paddingFor(delta: string): string {
  return "simulatedpadding".slice(0, 16 - (delta.length % 16));
}

function planParts(input: ReplyInput): Part[] {
  const { behavior, conversation } = input;
  const tools = planTools(input);
  const isSilent = tools.length > 0 || behavior.refusal !== undefined;
  const fallback = isSilent ? [] : [defaultText(input)];
  const texts = behavior.texts ?? (behavior.text === undefined ? fallback : [behavior.text]);
  const wantsThought = conversation.wantsThinking && texts === fallback && !isSilent;
  const thought =
    behavior.thinking ?? (wantsThought ? "A simulation does not think; this is its thinking." : undefined);
  return [
    ...prose("thinking", thought),
    ...prose("redacted", behavior.redacted),
    ...texts.flatMap((text) => prose("text", text)),
    ...prose("refusal", behavior.refusal),
    ...tools,
  ];
}

function prose(kind: Prose["kind"], text: string | undefined): Prose[] {
  return text === undefined ? [] : [{ kind, text }];
}

function planTools({ behavior, conversation, protocol, seed }: ReplyInput): ToolCall[] {
  const plans = behavior.tools ?? offeredPlan(behavior, conversation);
  return plans.map((plan, i) => ({
    kind: "tool",
    id: plan.id ?? idFrom(seed, protocol === "messages" ? "toolu_" : "call_", i),
    name: plan.name,
    custom: plan.kind === "custom",
    text: typeof plan.arguments === "string" ? plan.arguments : JSON.stringify(plan.arguments ?? {}),
    ...(plan.namespace === undefined ? {} : { namespace: plan.namespace }),
  }));
}

/** If the user writes "use the tool", the request's own tool is called once. Helps people who try the simulator. */
function offeredPlan(behavior: Behavior, conversation: ReceivedRequest): ToolPlan[] {
  const isAsked = behavior.useTool ?? /\buse the tool\b/i.test(conversation.lastUserText);
  if (!isAsked || conversation.endsWithToolResult) return [];
  const name = typeof behavior.useTool === "string" ? behavior.useTool : undefined;
  const tool = conversation.tools.find((one) => name === undefined || one.name === name);
  if (!tool) return [];
  const value = tool.kind === "custom" ? "simulated input" : exampleValue(tool.schema);
  return [{ ...tool, arguments: value }];
}

function defaultText({ conversation, protocol }: ReplyInput): string {
  if (conversation.jsonSchema !== undefined) {
    const value = exampleValue(conversation.jsonSchema);
    return JSON.stringify(Object.keys(object(value)).length === 0 ? { simulation: true } : value);
  }
  const turn = conversation.endsWithToolResult ? "The result of your tool arrived. " : "";
  const messages = conversation.messageCount === 1 ? "1 message" : `${conversation.messageCount} messages`;
  const tools = conversation.tools.length === 1 ? "1 tool" : `${conversation.tools.length} tools`;
  return (
    `${turn}Hello! This is a simulation: no model has read your words, and these were written before you asked. ` +
    `You called the model "${conversation.model}" over the ${protocol} protocol with ${messages} and ${tools}, ` +
    "and everything on the way here worked. Point the configuration at a real upstream, and the next reply to the " +
    "same request will come from a real model."
  );
}

function reasonOf(parts: readonly Part[]): StopCause {
  if (parts.some((part) => part.kind === "tool")) return "tools";
  return parts.some((part) => part.kind === "refusal") ? "refusal" : "end";
}

/** A stop sequence in the visible text ends the reply before it. */
function stopAt(
  parts: readonly Part[],
  sequences: readonly string[],
): { parts: readonly Part[]; sequence: string | null } {
  for (const [i, part] of parts.entries()) {
    if (part.kind !== "text") continue;
    const hits = sequences
      .map((sequence) => ({ sequence, at: part.text.indexOf(sequence) }))
      .filter(({ at }) => at >= 0);
    const first = hits.sort((a, b) => a.at - b.at)[0];
    if (!first) continue;
    const kept = { ...part, text: part.text.slice(0, first.at) };
    return { parts: [...parts.slice(0, i), ...(kept.text === "" ? [] : [kept])], sequence: first.sequence };
  }
  return { parts, sequence: null };
}

function countTokens(parts: readonly Part[], { behavior, bodyBytes }: ReplyInput): SimulatedUsage {
  const tokens = (bytes: number) => Math.ceil(bytes / BYTES_PER_TOKEN);
  const bytesOf = (some: readonly Part[]) => some.reduce((sum, part) => sum + Buffer.byteLength(part.text), 0);
  const reasoning = tokens(bytesOf(parts.filter((part) => part.kind === "thinking" || part.kind === "redacted")));
  const rest = tokens(bytesOf(parts.filter((part) => part.kind !== "thinking" && part.kind !== "redacted")));
  return {
    input: tokens(bodyBytes),
    cached: 0,
    cacheWrite: 0,
    cacheWrite1h: 0,
    output: reasoning + rest,
    reasoning,
    ...behavior.usage,
  };
}

/** Keeps the given share of all characters, in order; a tool call that does not fit completely is left out. */
function cutParts(parts: readonly Part[], share: number): Part[] {
  const total = parts.reduce((sum, part) => sum + part.text.length, 0);
  let left = Math.floor(total * share);
  const kept: Part[] = [];
  for (const part of parts) {
    if (left <= 0) break;
    if (part.text.length <= left) kept.push(part);
    else if (part.kind !== "tool" && part.kind !== "redacted")
      kept.push({ ...part, text: wellFormed(part.text, left) });
    left -= part.text.length;
  }
  return kept;
}

/** The first `length` units of a text, without half a surrogate pair at the end. */
function wellFormed(text: string, length: number): string {
  const kept = text.slice(0, length);
  return kept.isWellFormed() ? kept : kept.slice(0, -1);
}

/* The smallest plausible value for a JSON schema: the arguments of a simulated tool call, or a structured reply. */

/** The depth at which recursive schemas end. */
const DEPTH_MAX = 8;

/** A value that fits the schema in common cases (types, required members, enum, const, defaults, anyOf, $ref). */
function exampleValue(schema: unknown, root: unknown = schema, depth = 0): unknown {
  const rules = object(schema);
  if (depth > DEPTH_MAX) return null;
  if (typeof rules.$ref === "string") return exampleValue(resolve(root, rules.$ref), root, depth + 1);
  if ("const" in rules) return rules.const;
  if ("default" in rules) return rules.default;
  if (Array.isArray(rules.enum)) return rules.enum[0];
  const choices = rules.anyOf ?? rules.oneOf ?? rules.allOf;
  if (Array.isArray(choices)) return exampleValue(choices[0], root, depth + 1);
  const type = Array.isArray(rules.type) ? rules.type[0] : rules.type;
  if (type === "string") return "simulated";
  if (type === "integer" || type === "number") return typeof rules.minimum === "number" ? rules.minimum : 1;
  if (type === "boolean") return true;
  if (type === "null") return null;
  if (type === "array") return rules.items === undefined ? [] : [exampleValue(rules.items, root, depth + 1)];
  return exampleObject(rules, root, depth);
}

function exampleObject(rules: Readonly<Record<string, unknown>>, root: unknown, depth: number): object {
  const members = object(rules.properties);
  const names = Array.isArray(rules.required) ? rules.required.map(String) : Object.keys(members);
  return Object.fromEntries(names.map((name) => [name, exampleValue(members[name], root, depth + 1)]));
}

function resolve(root: unknown, reference: string): unknown {
  return reference
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((value, name) => object(value)[name], root);
}
