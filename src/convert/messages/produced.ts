/** Counts the model output in messages events and content blocks. */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import { isToolName, TOOLS_MAX } from "../../values/tokens/tool-calls.ts";
import type { ProducedCounts } from "../../values/tokens/usage.ts";
import { countUnknown, Produced, Served, StreamOutput } from "../produced.ts";

/** Members without output, or with output that is handled by name. */
const DELTA_KNOWN: ReadonlySet<string> = new Set(["text", "thinking", "partial_json", "signature", "citation", "data"]);
const ENDING_KNOWN: ReadonlySet<string> = new Set(["stop_reason", "stop_sequence", "stop_details", "container"]);
const BLOCK_KNOWN: ReadonlySet<string> = new Set(["text", "thinking", "signature", "data", "input", "citations"]);
const SILENT: ReadonlySet<unknown> = new Set(["content_block_stop", "message_stop", "ping", "error"]);

/** Counts a stream. */
export class MessagesOutput extends StreamOutput {
  readonly #calls = new ServerCalls(this.served);

  protected override look(type: unknown, payload: JsonObject): boolean {
    if (type === "content_block_start") this.#calls.see(objectOf(payload.content_block));
    return countEvent(this.produced, type, payload);
  }
}

/** Counts the blocks of a whole message. */
export function countContent(content: unknown): ProducedCounts {
  const produced = new Produced();
  const served = new Served();
  const calls = new ServerCalls(served);
  for (const block of arrayOf(content)) calls.see(objectOf(block));
  countBlocks(produced, content);
  return served.beside(produced.counts());
}

const RESULT = "_tool_result";
const MCP_RESULT = `mcp${RESULT}`;
/** A search among the client's own tools costs nothing (values/members/hosted-tools.ts). */
const SEARCHES_TOOLS = /^tool_search_tool_/;

/** Counts calls of tools that the server has run, from its content blocks. */
class ServerCalls {
  readonly #served: Served;
  readonly #calls = new Map<string, number>();
  readonly #ended = new Map<string, number>();

  constructor(served: Served) {
    this.#served = served;
  }

  see(block: JsonObject | undefined): void {
    const { type, name, content } = block ?? {};
    if (type === "server_tool_use" && !SEARCHES_TOOLS.test(textOf(name) ?? "")) this.#add(this.#calls, toolOf(name), 1);
    if (type === "mcp_tool_use") this.#add(this.#calls, "mcp", 1);
    if (typeof type !== "string" || !type.endsWith(RESULT)) return;
    const tool = type === MCP_RESULT ? "mcp" : toolOf(type.slice(0, -RESULT.length));
    const error = objectOf(content)?.type;
    // A failed call is not billed.
    if (typeof error === "string" && error.endsWith("_error")) {
      this.#add(this.#calls, tool, -1);
      return;
    }
    if (this.#calls.has(tool)) this.#add(this.#ended, tool, 1);
    this.#served.found(content);
  }

  #add(counts: Map<string, number>, tool: string, more: number): void {
    const before = counts.get(tool);
    const isNew = before === undefined && more > 0 && isToolName(tool) && counts.size < TOOLS_MAX;
    if (before === undefined && !isNew) return;
    counts.set(tool, Math.max(0, (before ?? 0) + more));
    this.#served.know(Object.fromEntries(this.#calls), Object.fromEntries(this.#ended));
  }
}

/** The name under which calls are counted; newer servers add the kind of code to it. */
function toolOf(name: unknown): string {
  return (textOf(name) ?? "").replace(/^(?:bash|text_editor)_(?=code_execution$)/, "");
}

function countEvent(produced: Produced, type: unknown, payload: JsonObject): boolean {
  if (SILENT.has(type)) return false;
  if (type === "message_start") return countBlocks(produced, objectOf(payload.message)?.content);
  const delta = objectOf(payload.delta);
  if (type === "message_delta") return delta !== undefined && countUnknown(produced, delta, ENDING_KNOWN);
  if (type === "content_block_start") return countBlock(produced, objectOf(payload.content_block));
  // Deltas, including those of unknown events and unknown kinds.
  return delta ? countDelta(produced, delta) : produced.unknown(payload.delta);
}

function countDelta(produced: Produced, delta: JsonObject): boolean {
  let found = produced.text(delta.text);
  found = produced.text(delta.thinking) || found;
  found = produced.text(delta.partial_json) || found;
  found = produced.opaque(delta.data) || found;
  produced.signature(delta.signature);
  // A citation is delivered, but its text comes from the search and not from the model.
  found ||= delta.citation !== undefined && delta.citation !== null;
  return countUnknown(produced, delta, DELTA_KNOWN) || found;
}

/** @returns whether the blocks contain output. */
function countBlocks(produced: Produced, content: unknown): boolean {
  let found = false;
  for (const block of arrayOf(content)) found = countBlock(produced, objectOf(block)) || found;
  return found;
}

/** Counts a content block of a whole message, or the start of a streamed one; false if it is still empty. */
function countBlock(produced: Produced, block: JsonObject | undefined): boolean {
  if (!block) return false;
  const { type } = block;
  if (typeof type === "string" && type.endsWith("_tool_result")) return true; // It comes from the server's tool: it is input.
  if (typeof type === "string" && type.endsWith("tool_use")) return countCall(produced, block);
  let found = produced.text(block.text);
  found = produced.text(block.thinking) || found;
  found = produced.opaque(block.data) || found;
  produced.signature(block.signature);
  return countUnknown(produced, block, BLOCK_KNOWN) || found;
}

function countCall(produced: Produced, block: JsonObject): boolean {
  produced.text(block.name);
  const input = objectOf(block.input);
  if (input && Object.keys(input).length > 0) produced.text(JSON.stringify(input));
  return true;
}
