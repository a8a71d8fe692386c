/**
 * Tools that the upstream runs and bills by itself (ARCHITECTURE.md promise 14). The types that a client runs are
 * listed; every other type counts as one that is billed.
 */
import { isObject, type JsonObject } from "../json-object.ts";
import type { Protocol } from "../protocol.ts";

/** The remedy for users whose client adds such a tool by itself (docs/clients.md). */
export const HOSTED_TOOL_REMEDY =
  'Remove the tool, or switch it off in the client: web_search = "disabled" in Codex, WebSearch under permissions.deny in Claude Code.';

/** Types of tools that the client runs, or that cost nothing except tokens. */
const OWN_TYPES: Readonly<Record<Protocol, RegExp>> = {
  chat: /^(?:function|custom)$/,
  messages:
    /^(?:custom|(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}|tool_search_tool_(?:bm25|regex)(?:_\d{8})?)$/,
  responses: /^(?:function|custom|namespace|local_shell|apply_patch)$/,
};

/** The type of a tool that the upstream would run; undefined if the client runs it. */
export function hostedType(protocol: Protocol, tool: JsonObject): string | undefined {
  // A tool without a type is a function of the client.
  if (tool.type === undefined || tool.type === null) return undefined;
  const type = typeof tool.type === "string" ? tool.type : "unknown";
  return isOwn(protocol, type, tool) ? undefined : type;
}

function isOwn(protocol: Protocol, type: string, tool: JsonObject): boolean {
  if (OWN_TYPES[protocol].test(type)) return true;
  if (protocol !== "responses") return false;
  if (type === "tool_search") return tool.execution === "client";
  // A container belongs to the upstream. A local environment, or none, means the client's own shell.
  if (type !== "shell") return false;
  const { environment } = tool;
  return environment === undefined || environment === null || (isObject(environment) && environment.type === "local");
}

/**
 * At most this many bytes are added to a tool that a protocol defines by its type, and to a freeform tool: by a
 * translation, or by the server itself (245 to 700 tokens at Anthropic's).
 */
const TYPED_FORM_BYTES = 600;
const FREEFORM_BYTES = 200;

const TYPED_OF_MESSAGES = /^(?:bash|text_editor|memory)_/;

/**
 * Bytes that the model reads of a tool in addition to its definition in the body. A tool of 30 bytes may be described to
 * the model in 550. The typed tools of responses have fixed names, so that a body can offer each of them only once.
 */
export function formBytes(protocol: Protocol, { type }: JsonObject): number {
  if (typeof type !== "string") return 0;
  if (protocol === "messages") return TYPED_OF_MESSAGES.test(type) ? TYPED_FORM_BYTES : 0;
  return type === "custom" ? FREEFORM_BYTES : 0;
}

/** The tools of a list, including those in namespaces, in any other tool and in nested lists. */
export function toolsIn(root: unknown): JsonObject[] {
  const tools: JsonObject[] = [];
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const next = pending.pop();
    if (Array.isArray(next)) for (let i = next.length - 1; i >= 0; i--) pending.push(next[i]);
    else if (isObject(next)) {
      tools.push(next);
      pending.push(next.tools);
    }
  }
  return tools;
}

/** A list of tools without the given hosted types, also inside other tools; the list itself if it has none of them. */
export function withoutHosted(protocol: Protocol, tools: unknown, types: ReadonlySet<string>): unknown {
  if (Array.isArray(tools)) {
    const left = tools.map((tool) => withoutHosted(protocol, tool, types));
    return left.every((tool, index) => tool === tools[index]) ? tools : left.filter((tool) => tool !== undefined);
  }
  if (!isObject(tools)) return tools;
  const type = hostedType(protocol, tools);
  if (type !== undefined && types.has(type)) return undefined;
  const left = withoutHosted(protocol, tools.tools, types);
  if (left === tools.tools) return tools;
  const isEmpty = left === undefined || (Array.isArray(left) && left.length === 0);
  return isEmpty && tools.type === "namespace" ? undefined : { ...tools, tools: left };
}
