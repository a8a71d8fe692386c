/**
 * Converts responses usage to token kinds and back (docs/translation-rules.md rule 44). `input_tokens` should include
 * everything cached, `output_tokens` all reasoning; docs/usage-forms.md lists what servers really send.
 */

import { type JsonObject, objectOf, objectsIn, textOf } from "../../values/json-object.ts";
import { mergedCalls, SHOWN_IN_RESPONSES } from "../../values/tokens/tool-calls.ts";
import { plausibleCount, type Usage } from "../../values/tokens/usage.ts";
import {
  cachedCount,
  largestCount,
  namedCount,
  plausibleTotal,
  toolCounts,
  usageOfIncluded,
  writtenCounts,
} from "../included-usage.ts";

/**
 * Reads the usage of a response object. Hosted tool calls are counted from its output items if the usage has no count.
 * @param seen calls of hosted tools among a stream's items; some servers leave them out of the last event.
 * @returns undefined if nothing is counted. A side that is not counted is 0; `billedUsage` fills it in.
 */
export function readUsage(response: JsonObject, seen?: HostedCalls): Usage | undefined {
  const usage = objectOf(response.usage);
  if (!usage) return undefined;
  const inputDetails = objectOf(usage.input_tokens_details) ?? objectOf(usage.prompt_tokens_details);
  const outputDetails = objectOf(usage.output_tokens_details) ?? objectOf(usage.completion_tokens_details);
  const { written, written1h } = writtenCounts(usage, inputDetails, writtenIn(objectsIn(usage.x_details)[0]));
  const counted = usageOfIncluded({
    // Relays in front of chat completions servers send chat's names, alone or next to zeros.
    input: namedCount(usage.input_tokens, usage.prompt_tokens),
    output: namedCount(usage.output_tokens, usage.completion_tokens),
    total: plausibleTotal(usage.total_tokens, usage.input_tokens, usage.output_tokens),
    cached: cachedCount(usage, inputDetails),
    written,
    written1h,
    reasoning: largestCount(outputDetails?.reasoning_tokens, usage.reasoning_tokens),
  });
  return counted && { ...counted, toolCalls: toolCalls(usage, response.output, seen) };
}

/** Model Studio counts cache writes in its own member, as its chat endpoint does. */
function writtenIn(details: JsonObject | undefined): unknown {
  return objectOf(details?.prompt_tokens_details)?.cache_creation_input_tokens;
}

function toolCalls(
  usage: JsonObject,
  output: unknown,
  seen: HostedCalls | undefined,
): Readonly<Record<string, number>> {
  const items = callsIn(output);
  const called = seen ? mergedCalls(items, seen.calls) : items;
  const details = objectOf(usage.server_side_tool_usage_details);
  if (!details) return called;
  // A server that counts its calls bills by that count, even if it is 0: failed calls are items too.
  const uncounted = Object.entries(called).filter(([tool]) => plausibleCount(details[`${tool}_calls`]) !== 0);
  return { ...Object.fromEntries(uncounted), ...toolCounts(details, "_calls") };
}

/** Calls of hosted tools among whole items. */
export function callsIn(output: unknown): Readonly<Record<string, number>> {
  const items = new HostedCalls();
  for (const item of objectsIn(output)) items.see(item);
  return items.calls;
}

const CALL = "_call";
/** The most containers that are counted separately. */
const CONTAINERS_MAX = 64;

/** Counts calls of tools that the server has run, from its output items. */
export class HostedCalls {
  readonly #calls = new Map<string, number>();
  readonly #containers = new Set<string>();
  /** Calls that have begun and not ended. */
  readonly #open = new Map<string, number>();

  /** Looks at an item that begins. @returns whether it is a call of a hosted tool. */
  begin(item: JsonObject): boolean {
    const tool = hostedTool(item);
    if (tool === undefined || this.#hasContainer(item)) return false;
    this.#open.set(tool, (this.#open.get(tool) ?? 0) + 1);
    return true;
  }

  /** Looks at an item in its final form. @returns whether it is a call of a hosted tool. */
  see(item: JsonObject | undefined): boolean {
    const tool = item && hostedTool(item);
    if (!item || tool === undefined) return false;
    const open = this.#open.get(tool) ?? 0;
    if (open > 0 && !this.#hasContainer(item)) this.#open.set(tool, open - 1);
    if (this.#isBilled(item)) this.#calls.set(tool, (this.#calls.get(tool) ?? 0) + 1);
    return true;
  }

  #hasContainer(item: JsonObject): boolean {
    return this.#containers.has(textOf(item.container_id) ?? "");
  }

  /** Whether a call costs: in tools that are priced per search, opening a page is free; a container is charged once. */
  #isBilled(item: JsonObject): boolean {
    const action = textOf(objectOf(item.action)?.type);
    if (item.type === "web_search_call") return action === undefined || action === "search";
    const container = item.type === "code_interpreter_call" ? textOf(item.container_id) : undefined;
    if (container === undefined) return true;
    if (this.#containers.has(container)) return false;
    if (this.#containers.size < CONTAINERS_MAX) this.#containers.add(container);
    return true;
  }

  /** Calls that have ended. */
  get calls(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#calls);
  }

  /** Calls that have ended or are still running; a running call counts even if its end is not waited for. */
  get begun(): Readonly<Record<string, number>> {
    const begun = new Map(this.#calls);
    for (const [tool, open] of this.#open) if (open > 0) begun.set(tool, (begun.get(tool) ?? 0) + open);
    return Object.fromEntries(begun);
  }
}

function hostedTool({ type }: JsonObject): string | undefined {
  if (typeof type !== "string" || !type.endsWith(CALL)) return undefined;
  const tool = type.slice(0, -CALL.length);
  return SHOWN_IN_RESPONSES.has(tool) ? tool : undefined;
}

/** Writes a `usage` object for a responses client; Codex needs all five members (rule 44). */
export function writeUsage(usage: Usage): JsonObject {
  const cacheWrite = usage.cacheWrite + usage.cacheWrite1h;
  const input = usage.input + usage.cachedInput + cacheWrite;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  };
}
