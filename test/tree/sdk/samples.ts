/** Values for members of the SDKs' types: as short as servers would accept them, and recognizable in what is sent. */
import type { Protocol } from "../../../src/values/protocol.ts";
import type { Form, Member, ObjectForm } from "./walk.ts";

export type Json = Record<string, unknown>;

/** Stands for reasoning that is sealed for the route. The judge replaces it. */
export const SEALED = "@sealed";

const SCHEMA = (word: string) => ({
  type: "object",
  properties: { [word]: { type: "string" } },
  required: [word],
  additionalProperties: false,
});

/**
 * Values of members that do not accept just any, by the end of their path. The first match is used. There are two if
 * one may be the default.
 */
const SPECIAL: readonly (readonly [end: RegExp, values: readonly unknown[]])[] = [
  [/^model$/, ["another-model", "a-third-model"]],
  [/(^|\.)(temperature|top_p)$/, [0.5, 0.6]],
  [/(frequency|presence)_penalty$/, [0.5, 0.6]],
  [/^(max_tokens|max_completion_tokens|max_output_tokens)$/, [5000, 6000]],
  [/budget_tokens$/, [2048, 20_000]],
  [/^n$/, [2]],
  [/top_logprobs$/, [3, 4]],
  [/\bimage_url(\.url)?$/, ["https://pictures.example/a.png", "https://pictures.example/b.png"]],
  [/file_data$/, ["data:application/pdf;base64,QUFB", "data:application/pdf;base64,QkJC"]],
  [/source\((url|:.*URL.*)\)\.url$|file_url$/, ["https://files.example/a.pdf", "https://files.example/b.pdf"]],
  [/source\(text\)\.data$/, ["text one", "text two"]],
  [/\[(thinking|reasoning|redacted_thinking)[^\]]*\]\.(signature|encrypted_content|data)$/, [SEALED]],
  [/\.data$/, ["QUFB", "QkJC"]],
  [/(^|\.)arguments$/, ['{"zqa":1}', '{"zqb":2}']],
  [/(^|\.)(parameters|input_schema|schema|output_schema)$/, [SCHEMA("zqa"), SCHEMA("zqb")]],
  [/\[tool_search_call[^\]]*\]\.arguments$/, [{ query: "zqa" }, { query: "zqb" }]],
  [/logit_bias$/, [{ "50256": 5 }]],
  [/\.execution$/, ["client"]],
  [/\[tool_addition\]\.tool\(\w+_reference\)\.(server_)?name$/, ["zqa", "zqc"]],
  [/\[tool_removal\]\.tool\(\w+_reference\)\.(server_)?name$/, ["zqb", "zqd"]],
  [/allowed_tools\.tools$/, ["lookup", "search"].map((name) => [{ type: "function", function: { name } }])],
];

/** The values with which a member is tried; empty if only its objects are tried. */
export function valuesOf(path: string, member: Member): readonly unknown[] {
  const special = SPECIAL.find(([end]) => end.test(path));
  if (special) return special[1];
  const values = member.forms.flatMap((form) => plainValues(form));
  // If several roles are possible, the user's is the simplest.
  return values.includes("user") ? ["user", ...values.filter((value) => value !== "user")] : values;
}

function plainValues(form: Form): readonly unknown[] {
  if (form.kind === "literal") return [form.value];
  if (form.kind === "text") return ["zqa", "zqb"];
  if (form.kind === "number") return [7, 9];
  if (form.kind === "data") return [{ zqa: "zqa" }, { zqb: "zqb" }];
  if (form.kind === "object") return [];
  const inner = form.of.filter((one) => one.kind !== "object");
  return inner.flatMap((one) => plainValues(one).map((value) => [value]));
}

/** Members that objects need in addition to those that their types require, by the end of their path. */
const DEMANDED: readonly (readonly [end: RegExp, members: Json])[] = [
  // Without its schema the format is any object, for which messages has no form.
  [/\.json_schema$/, { schema: SCHEMA("q") }],
  [/\[file\]\.file$/, { file_data: "data:application/pdf;base64,QUFB", filename: "a.pdf" }],
  [/\[input_file[^\]]*\]$/, { file_data: "data:application/pdf;base64,QUFB", filename: "a.pdf" }],
  [/\[input_image[^\]]*\]$/, { image_url: "https://pictures.example/a.png" }],
  [/messages\[system\]$/, { content: "a note" }],
  [/\[function_call_output[^\]]*\]$/, { call_id: "call_1" }],
  [/\[tool_addition\]$/, { tool: { type: "tool_reference", name: "zqa" } }],
  [/\(tool_definition\)$/, { definition: { name: "zqa", input_schema: SCHEMA("zqa") } }],
  [/\[tool_removal\]$/, { tool: { type: "tool_reference", name: "zqb" } }],
  [/\[(computer_screenshot)[^\]]*\]$/, { image_url: "https://pictures.example/a.png" }],
];

/** The required members of an object. @param path the path of the object. */
export function least(form: ObjectForm, path: string): Json {
  const demanded = DEMANDED.find(([end]) => end.test(path))?.[1];
  return { ...leastMembers(form, path), ...demanded };
}

function leastMembers(form: ObjectForm, path: string): Json {
  const required = form.members.filter((member) => !member.isOptional || member.name === "type");
  return Object.fromEntries(required.map((member) => [member.name, leastValue(member, `${path}.${member.name}`)]));
}

/** Content of a message, and other lists that a server would refuse if empty. */
const FILLED = /\b(content|output|summary|parts|queries|commands|command|tools|tool_calls)$/;

function leastValue(member: Member, path: string): unknown {
  if (member.isNullable && !SPECIAL.some(([end]) => end.test(path))) return null;
  const [value] = valuesOf(path, member);
  if (value !== undefined) return value;
  const forms = member.forms;
  const object = forms.find((form) => form.kind === "object");
  if (object) return least(object, path);
  const list = forms.find((form) => form.kind === "list");
  if (!list) return null;
  const inner = list.of.filter((one) => one.kind === "object");
  const simple =
    inner.find((one) => /text/.test(one.tag ?? "")) ?? inner.find((one) => one.tag === "function") ?? inner[0];
  return simple && FILLED.test(member.name) ? [least(simple, `${path}[${simple.tag ?? ""}]`)] : [];
}

type Message = Json & { role?: unknown; content?: unknown };

/** Completes a sample to a request: a user who begins, results for calls, calls for results. */
export const COMPLETE: Readonly<Record<Protocol, (body: Json) => Json>> = {
  chat(body) {
    const given = list(body.messages) as Message[];
    const messages: Message[] = given.some((one) => one.role === "system" || one.role === "developer")
      ? []
      : [{ role: "user", content: "hello" }];
    for (const message of given) {
      if (message.role === "tool") messages.push(calling([String(message.tool_call_id)]));
      if (message.role === "function") {
        messages.push({ role: "assistant", function_call: { name: String(message.name), arguments: "{}" } });
      }
      messages.push(message);
      if (message.role !== "assistant") continue;
      for (const call of list(message.tool_calls) as Json[]) {
        messages.push({ role: "tool", tool_call_id: call.id, content: "done" });
      }
      if (message.function_call) messages.push({ role: "function", name: "lookup", content: "done" });
    }
    if (messages.at(-1)?.role !== "user") messages.push({ role: "user", content: "go on" });
    const tool = { type: "function", function: { name: "lookup", parameters: SCHEMA("q") } };
    const { function_call: call, functions = [] } = body;
    const named = typeof call === "object" && call !== null && "name" in call ? [tool.function, call] : [tool.function];
    return {
      ...body,
      messages,
      ...(call === undefined ? offered(body, tool) : { functions: [...list(functions), ...named] }),
      ...(body.stream_options === undefined ? {} : { stream: true }),
    };
  },
  messages(body) {
    const messages: Message[] = [{ role: "user", content: "hello" }];
    const changes = (list(body.messages) as Message[]).some((message) => message.role === "system");
    if (changes) messages.push(WITHDRAWN);
    for (const message of list(body.messages) as Message[]) {
      const blocks = list(message.content) as Json[];
      const answered = message.role === "user" ? blocks.filter((block) => block.type === "tool_result") : [];
      if (answered.length > 0) {
        const content = answered.map(({ tool_use_id: id }) => ({ type: "tool_use", id, name: "lookup", input: {} }));
        messages.push({ role: "assistant", content });
      }
      // Thinking with nothing after it is left out.
      const isThought = message.role === "assistant" && blocks.every(({ type }) => /thinking$/.test(String(type)));
      const said = isThought && blocks.length > 0 ? [{ type: "text", text: "so" }] : [];
      messages.push(said.length > 0 ? { ...message, content: [...blocks, ...said] } : message);
      const calls = message.role === "assistant" ? blocks.filter((block) => block.type === "tool_use") : [];
      if (calls.length > 0) {
        const content = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
        messages.push({ role: "user", content });
      }
    }
    if (messages.at(-1)?.role !== "user") messages.push({ role: "user", content: "go on" });
    const tool = { name: "lookup", input_schema: SCHEMA("q") };
    if (!changes) return { ...body, messages, ...offered(body, tool) };
    const servers = JSON.stringify(messages).includes('"mcp_') ? SERVERS : [];
    return { ...body, messages, tools: [...list(body.tools), ...CHANGEABLE, ...servers, tool] };
  },
  responses(body) {
    if (!Array.isArray(body.input)) {
      return {
        input: "hello",
        ...body,
        ...offered(body, { type: "function", name: "lookup", parameters: SCHEMA("q") }),
      };
    }
    const input: Json[] = [{ type: "message", role: "user", content: "hello" }];
    for (const item of body.input as Json[]) {
      const type = String(item.type);
      const call = CALL_OF[type];
      if (call) input.push({ ...call, id: item.id, call_id: item.call_id ?? item.id });
      input.push(item);
      const output = OUTPUT_OF[type];
      if (output) input.push({ ...output, call_id: item.call_id });
      if (type === "reasoning") input.push({ type: "message", role: "assistant", content: "so" });
    }
    input.push({ type: "message", role: "user", content: "go on" });
    const tool = { type: "function", name: "lookup", parameters: SCHEMA("q") };
    return { ...body, input, ...offered(body, tool) };
  },
};

/** What changes of tools refer to. */
const CHANGEABLE = ["zqa", "zqb", "zqc", "zqd"].map((name) => ({ name, input_schema: SCHEMA("q") }));
const SERVERS = CHANGEABLE.map(({ name }) => ({ type: "mcp_toolset", mcp_server_name: name }));

/** Withdraws tools, so that adding them makes a difference. */
const WITHDRAWN = {
  role: "system",
  content: ["zqa", "zqc"].map((name) => ({ type: "tool_removal", tool: { type: "tool_reference", name } })),
};

const CALL_OF: Readonly<Record<string, Json>> = {
  function_call_output: { type: "function_call", name: "lookup", arguments: "{}" },
  custom_tool_call_output: { type: "custom_tool_call", name: "lookup", input: "x" },
  local_shell_call_output: { type: "local_shell_call", action: { type: "exec", command: ["ls"], env: {} } },
  shell_call_output: { type: "shell_call", action: { commands: ["ls"] } },
  apply_patch_call_output: { type: "apply_patch_call", operation: { type: "delete_file", path: "a" } },
  tool_search_output: { type: "tool_search_call", execution: "client", arguments: { query: "q" } },
};

const OUTPUT_OF: Readonly<Record<string, Json>> = {
  function_call: { type: "function_call_output", output: "done" },
  custom_tool_call: { type: "custom_tool_call_output", output: "done" },
  local_shell_call: { type: "local_shell_call_output", output: "done" },
  shell_call: { type: "shell_call_output", output: "done" },
  apply_patch_call: { type: "apply_patch_call_output", status: "completed" },
  tool_search_call: { type: "tool_search_output", execution: "client", tools: [] },
};

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function calling(ids: readonly string[]): Message {
  const calls = ids.map((id) => ({ id, type: "function", function: { name: "lookup", arguments: "{}" } }));
  return { role: "assistant", content: null, tool_calls: calls };
}

/** A tool of the client in addition to the sample, so that a hosted one can be left out and a choice has a tool. */
function offered({ tools, tool_choice: choice, parallel_tool_calls: parallel }: Json, own: Json): Json {
  const extra = choice === undefined ? [] : namedBy(choice).map((name) => renamed(own, name));
  if (tools !== undefined) return { tools: [...list(tools), ...extra, own] };
  return choice === undefined && parallel === undefined ? {} : { tools: [...extra, own] };
}

function namedBy(choice: unknown): readonly string[] {
  const names: string[] = [];
  JSON.stringify(choice, (key, value) => {
    if (key === "name" && typeof value === "string" && value !== "lookup") names.push(value);
    return value;
  });
  return [...new Set(names)];
}

function renamed(own: Json, name: string): Json {
  return "function" in own ? { ...own, function: { ...(own.function as Json), name } } : { ...own, name };
}
