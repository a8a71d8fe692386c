/**
 * Typed tools that the client runs and whose shape its protocol defines by their type (docs/translation-rules.md rule
 * 33): their description for an upstream that has only functions, and the conversion of their calls between the typed
 * form and function arguments.
 */

import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { ToolKind } from "../hub.ts";

interface TypedForm {
  readonly description: string;
  readonly schema: JsonObject;
}

const TEXT = { type: "string" };
const TEXTS = { type: "array", items: TEXT };
const COUNT = { type: "integer" };

function form(description: string, properties: JsonObject, required: readonly string[]): TypedForm {
  return { description, schema: { type: "object", properties, required } };
}

/** The typed tools of responses, by type; a client's `tool_search` has its own schema. */
export const RESPONSES_TYPED: Readonly<Record<Exclude<ToolKind, "function" | "custom">, TypedForm>> = {
  local_shell: form(
    "Runs a command on the user's machine and gives its output.",
    { command: TEXTS, workdir: TEXT, timeout_ms: COUNT },
    ["command"],
  ),
  shell: form("Runs shell commands and gives their output.", { commands: TEXTS, timeout_ms: COUNT }, ["commands"]),
  apply_patch: form(
    "Creates, updates or deletes one file by a patch in V4A diff form.",
    { type: { type: "string", enum: ["create_file", "update_file", "delete_file"] }, path: TEXT, diff: TEXT },
    ["type", "path"],
  ),
  tool_search: form("Searches for tools that are not loaded yet.", { query: TEXT }, ["query"]),
};

/** The client-run tools of messages, by the prefix of their type. */
const MESSAGES_TYPED: readonly (readonly [string, TypedForm])[] = [
  ["bash_", form("Runs a command in a bash shell.", { command: TEXT, restart: { type: "boolean" } }, [])],
  [
    "text_editor_",
    form(
      "Views, creates and edits files.",
      {
        command: { type: "string", enum: ["view", "create", "str_replace", "insert", "undo_edit"] },
        path: TEXT,
        view_range: { type: "array", items: COUNT },
        file_text: TEXT,
        old_str: TEXT,
        new_str: TEXT,
        insert_line: COUNT,
        insert_text: TEXT,
      },
      ["command", "path"],
    ),
  ],
  [
    "memory_",
    form(
      "Reads and writes files in the memory folder.",
      {
        command: { type: "string", enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
        path: TEXT,
        view_range: { type: "array", items: COUNT },
        file_text: TEXT,
        old_str: TEXT,
        new_str: TEXT,
        insert_line: COUNT,
        insert_text: TEXT,
        old_path: TEXT,
        new_path: TEXT,
      },
      ["command"],
    ),
  ],
];

/** The function form of a client-run messages tool; undefined for every other type. */
export function messagesTyped(type: string): TypedForm | undefined {
  return MESSAGES_TYPED.find(([prefix]) => type.startsWith(prefix))?.[1];
}

/** Function arguments for a typed call of responses (`action` of shells, `operation` of patches). */
function argumentsOfTyped(kind: ToolKind, native: JsonObject): JsonObject {
  if (kind === "local_shell") {
    const { command, working_directory: workdir, timeout_ms, user, env } = native;
    const isSet = isObject(env) && Object.keys(env).length > 0;
    return without({ command, workdir, timeout_ms, user, env: isSet ? env : undefined });
  }
  if (kind === "shell") {
    const { commands, timeout_ms, max_output_length } = native;
    return without({ commands, timeout_ms, max_output_length });
  }
  if (kind === "apply_patch") return without({ type: native.type, path: native.path, diff: native.diff });
  return native;
}

/** The typed form (`action`, `operation`, or tool search `arguments`) of function arguments written by a model. */
export function typedOfArguments(kind: ToolKind, args: JsonObject): JsonObject {
  if (kind === "local_shell") {
    const command = typeof args.command === "string" ? ["bash", "-lc", args.command] : texts(args.command);
    return {
      type: "exec",
      command,
      env: {},
      ...without({ working_directory: args.workdir, timeout_ms: args.timeout_ms }),
    };
  }
  if (kind === "shell") {
    const commands = typeof args.commands === "string" ? [args.commands] : texts(args.commands);
    return { commands, timeout_ms: args.timeout_ms ?? null, max_output_length: null };
  }
  return args;
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function without(members: Record<string, unknown>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
}

/** Function arguments of a typed call whose native part may be missing or malformed. */
export function typedInput(kind: ToolKind, native: unknown): string {
  return JSON.stringify(isObject(native) ? argumentsOfTyped(kind, native) : {});
}
