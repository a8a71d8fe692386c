/**
 * Changes of tools in the middle of a conversation, `tool_addition` and `tool_removal` (docs/translation-rules.md rule
 * 33). No other protocol has them in this form. So the upstream is offered the tools that are left after the last
 * change, and calls of earlier ones stay in the history.
 */
import type { JsonObject } from "../../../values/json-object.ts";
import type { HostedTool, ToolDefinition } from "../../hub.ts";
import { record, refuse, text } from "../../rules/read.ts";
import { decodeTool, decodeTools } from "../shape.ts";

/** The tools of one name: several only if `tools` has the name twice. */
interface ToolsOfName {
  readonly definitions: ToolDefinition[];
  isOffered: boolean;
}

/** Whether a block changes the tools. */
export function isToolChange({ type }: JsonObject): boolean {
  return type === "tool_addition" || type === "tool_removal";
}

/** The tools of a body, and what the messages change about them. */
export class OfferedTools {
  readonly #declared: readonly ToolDefinition[];
  /** In the order of their first definitions, so that a tool returns to its old place. Undefined: nothing is changed. */
  #named: Map<string, ToolsOfName> | undefined;

  constructor(json: JsonObject) {
    this.#declared = decodeTools(json.tools);
  }

  /** What is offered after the changes so far. */
  get offered(): readonly ToolDefinition[] {
    if (this.#named === undefined) return this.#declared;
    return [...this.#named.values()].flatMap(({ definitions, isOffered }) => (isOffered ? definitions : []));
  }

  /** Applies the change in a block. @param path the path of the block. */
  change(block: JsonObject, path: string): void {
    this.#named ??= byName(this.#declared);
    const at = `${path}.tool`;
    const tool = record(block.tool, at);
    const isAdded = block.type === "tool_addition";
    if (isAdded && tool.type === "tool_definition") {
      this.#define(decodeTool(record(tool.definition, `${at}.definition`), `${at}.definition`));
      return;
    }
    const name = referredTo(tool, at);
    const known = this.#named.get(name);
    if (!known) refuse("wrong_type", at, "No tool of that name is defined before it.", undefined, UNRESOLVED);
    // Of the tools of an MCP server, the others stay.
    else if (isAdded || tool.type !== "mcp_tool_reference") known.isOffered = isAdded;
  }

  /** A later definition replaces the one of the same name. */
  #define(definition: ToolDefinition): void {
    const name = nameOf(definition);
    const earlier = this.#named?.get(name);
    if (earlier?.isOffered && earlier.definitions.some((one) => familyOf(one) !== familyOf(definition))) {
      refuse("wrong_type", definition.param, "A tool of another type has the same name.", undefined, CONFLICT);
    }
    this.#named?.set(name, { definitions: [definition], isOffered: true });
  }
}

/** By these codes Anthropic's SDK chooses the classes of its errors. */
const UNRESOLVED = { error_code: "tool_reference_unresolved" };
const CONFLICT = { error_code: "tool_name_conflict" };

function byName(tools: readonly ToolDefinition[]): Map<string, ToolsOfName> {
  const named = new Map<string, ToolsOfName>();
  for (const tool of tools) {
    const name = nameOf(tool);
    const same = named.get(name);
    if (same) same.definitions.push(tool);
    else named.set(name, { definitions: [tool], isOffered: true });
  }
  return named;
}

/** Tools and MCP servers have separate names. */
const keyOf = (kind: "tool" | "server", name: string): string => `${kind}\0${name}`;

/** The key of the tool, or of the toolset of an MCP server, to which a change refers. */
function referredTo(tool: JsonObject, at: string): string {
  if (tool.type === "tool_reference") return keyOf("tool", text(tool.name, `${at}.name`));
  if (tool.type === "mcp_tool_reference" || tool.type === "mcp_toolset_reference") {
    return keyOf("server", text(tool.server_name, `${at}.server_name`));
  }
  return refuse("wrong_type", `${at}.type`, "Only tool_addition defines a tool; other changes refer to one.");
}

function nameOf(definition: ToolDefinition): string {
  if (definition.type !== "hosted") return keyOf("tool", definition.tool.name);
  const { name, mcp_server_name: server } = definition.native;
  if (definition.hosted === "mcp_toolset") return keyOf("server", typeof server === "string" ? server : "");
  return keyOf("tool", typeof name === "string" ? name : toolsetName(definition));
}

/** The name of a toolset is its type without the date: `browser` for `browser_toolset_20260801`. */
function toolsetName({ hosted }: HostedTool): string {
  return undated(hosted).replace(/_toolset$/, "");
}

/** Newer versions of a tool are of the same type. */
function familyOf(definition: ToolDefinition): string {
  if (definition.type === "hosted") return undated(definition.hosted);
  return definition.type === "typed" ? undated(String(definition.native.type)) : definition.type;
}

function undated(type: string): string {
  return type.replace(/_\d{8}$/, "");
}
