/**
 * Tools that the upstream would run, and bill, by itself (DESIGN.md promise 14). Tools that the client runs are free to
 * have any name; only types that the protocols give to hosted tools are found here.
 */
import type { Protocol } from "../values/protocol.ts";

type Json = Readonly<Record<string, unknown>>;

/** Types whose versions differ in a suffix, by their beginning. */
const HOSTED_PREFIXES: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [],
  messages: ["web_search", "web_fetch", "code_execution"],
  responses: ["web_search", "computer"],
};

const HOSTED_TYPES: Readonly<Record<Protocol, ReadonlySet<string>>> = {
  chat: new Set(),
  messages: new Set(["mcp_toolset"]),
  responses: new Set(["file_search", "code_interpreter", "image_generation", "mcp", "programmatic_tool_calling"]),
};

/** Top-level members that switch a hosted tool on by their presence. */
const SWITCHES: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["web_search_options"],
  messages: ["mcp_servers"],
  responses: [],
};

/**
 * Names the hosted tools that a body asks for, without repetition: tool types, and the members that switch one on.
 * Looks into `tools` and, on responses, into the tools that `additional_tools` items and namespaces carry.
 */
export function hostedTools(protocol: Protocol, json: Json): readonly string[] {
  const found = new Set(SWITCHES[protocol].filter((name) => isAsked(json[name])));
  const pending: unknown[] = [json.tools];
  if (protocol === "responses" && Array.isArray(json.input)) {
    for (const item of json.input) if (isObject(item) && item.type === "additional_tools") pending.push(item.tools);
  }
  while (pending.length > 0) {
    const tools = pending.pop();
    if (!Array.isArray(tools)) continue;
    for (const tool of tools) {
      if (!isObject(tool)) continue;
      if (typeof tool.type === "string" && isHosted(protocol, tool)) found.add(tool.type);
      if (tool.type === "namespace") pending.push(tool.tools);
    }
  }
  return [...found];
}

function isHosted(protocol: Protocol, tool: Json): boolean {
  const type = tool.type as string;
  if (HOSTED_TYPES[protocol].has(type)) return true;
  if (protocol === "responses" && type === "tool_search") return tool.execution !== "client";
  // A container that the upstream provides; `local` and absent environments are the client's own shell.
  if (protocol === "responses" && type === "shell")
    return String(member(tool.environment, "type")).startsWith("container");
  return HOSTED_PREFIXES[protocol].some((prefix) => type.startsWith(prefix));
}

function isAsked(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
