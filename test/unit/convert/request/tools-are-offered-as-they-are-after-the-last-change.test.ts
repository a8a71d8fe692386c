/**
 * docs/translation-rules.md rule 33: a messages client may change its tools in the middle of a conversation. Other
 * protocols have one list, so it has the tools that the model may call now.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, PERMITTED, routeTo, translate } from "./translate.ts";

const schema = (member: string) => ({ type: "object", properties: { [member]: { type: "string" } } });
const tool = (name: string, member = "q") => ({ name, description: `Does ${name}.`, input_schema: schema(member) });

const define = (definition: object) => ({
  type: "tool_addition",
  tool: { type: "tool_definition", definition },
});
const add = (name: string) => ({ type: "tool_addition", tool: { type: "tool_reference", name } });
const remove = (name: string) => ({ type: "tool_removal", tool: { type: "tool_reference", name } });

const changed = (...content: readonly object[]) => ({ role: "system", content });
const user = { role: "user", content: "hi" };
const called = [
  { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "first", input: { q: "x" } }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "done" }] },
];

function sent(to: "chat" | "responses", body: Body, strict = true) {
  const translated = translate("messages", { max_tokens: 9, ...body }, routeTo(to), { ...PERMITTED, strict });
  if (isRefusal(translated)) assert.fail(JSON.stringify(translated.facts));
  return { ...translated, json: JSON.parse(Buffer.from(translated.body).toString()) };
}

/** Names and the first members of the schemas of what is offered. */
function offered(to: "chat" | "responses", body: Body): string[] {
  const { json, dropped, ignored } = sent(to, body);
  assert.deepEqual([dropped, ignored], [[], []], "nothing is left out");
  return (json.tools ?? []).map((one: { function?: Body; [member: string]: unknown }) => {
    const { name, parameters } = (one.function ?? one) as { name: string; parameters: { properties: object } };
    return `${name} ${Object.keys(parameters.properties)}`;
  });
}

const tools = [tool("first"), tool("second")];

/** What is changed, the messages, and what is offered. */
const CASES: readonly (readonly [string, readonly object[], readonly string[]])[] = [
  ["a removed tool", [user, changed(remove("second"))], ["first q"]],
  ["an added tool", [user, changed(define(tool("third")))], ["first q", "second q", "third q"]],
  ["a tool of another schema", [user, changed(define(tool("first", "path")))], ["first path", "second q"]],
  ["the same definition again", [user, changed(define(tool("first")))], ["first q", "second q"]],
  ["a tool that returns", [user, changed(remove("first")), ...called, changed(add("first"))], ["first q", "second q"]],
  [
    "a removed tool that was added",
    [user, changed(define(tool("third"))), ...called, changed(remove("third"))],
    ["first q", "second q"],
  ],
  [
    "a removed tool that is defined anew",
    [user, changed(remove("first"), define(tool("first", "path")))],
    ["first path", "second q"],
  ],
  ["a tool that is removed twice", [user, changed(remove("first"), remove("first"))], ["second q"]],
  ["a tool that is offered already", [user, changed(add("first"))], ["first q", "second q"]],
  ["all tools, all removed", [user, changed(remove("first"), remove("second"))], []],
];

for (const [what, messages, expected] of CASES) {
  for (const to of ["chat", "responses"] as const) {
    test(`${what}, to ${to}`, () => {
      assert.deepEqual(offered(to, { tools, messages }), expected);
    });
  }
}

test("a tool is added to a request without tools", () => {
  assert.deepEqual(offered("chat", { messages: [user, changed(define(tool("third")))] }), ["third q"]);
});

test("calls of a removed tool stay in the history, and text beside a change stays where it is", () => {
  const note = { type: "text", text: "From now on, no first." };
  const { json } = sent("chat", { tools, messages: [user, ...called, changed(note, remove("first"))] });
  assert.deepEqual(
    json.messages.map((message: Body) => message.role),
    ["user", "assistant", "tool", "user"],
  );
  assert.equal(json.messages[1].tool_calls[0].function.name, "first");
  assert.match(json.messages[3].content, /From now on, no first\./);
});

test("a message that only changes tools adds no message", () => {
  const { json } = sent("chat", { tools, messages: [user, changed(remove("first"))] });
  assert.equal(json.messages.length, 1);
});

test("a typed tool of the client is removed by its name, and replaced by a newer version", () => {
  const bash = { type: "bash_20241022", name: "bash" };
  const newer = { type: "bash_20250124", name: "bash" };
  const names = (...changes: readonly object[]) =>
    sent("chat", { tools: [bash, tool("first")], messages: [user, changed(...changes)] }).json.tools.map(
      (one: { function: { name: string } }) => one.function.name,
    );
  assert.deepEqual(names(remove("bash")), ["first"]);
  assert.deepEqual(names(define(newer)), ["bash", "first"]);
});

test("a hosted tool that is removed is not missing", () => {
  const search = { type: "web_search_20250305", name: "web_search" };
  const kept = sent("chat", { tools: [search, tool("first")], messages: [user] }, false);
  assert.deepEqual(kept.dropped, ["tools.web_search"]);
  const { dropped } = sent("chat", { tools: [search, tool("first")], messages: [user, changed(remove("web_search"))] });
  assert.deepEqual(dropped, []);
  const browser = { type: "browser_toolset_20260801" };
  const none = sent("chat", { tools: [browser, tool("first")], messages: [user, changed(remove("browser"))] });
  assert.deepEqual(none.dropped, []);
});

test("a hosted tool that is added is left out and named, like one of the list", () => {
  const search = { type: "web_search_20250305", name: "web_search" };
  const { json, dropped } = sent("responses", { tools, messages: [user, changed(define(search))] }, false);
  assert.deepEqual([json.tools.length, dropped], [2, ["tools.web_search"]]);
});

test("tools of an MCP server are left out together, until all of them are removed", () => {
  const toolset = { type: "mcp_toolset", mcp_server_name: "calendar" };
  const one = { type: "mcp_tool_reference", server_name: "calendar", name: "list" };
  const all = { type: "mcp_toolset_reference", server_name: "calendar" };
  const left = (...changes: readonly object[]) =>
    sent("chat", { tools: [toolset, tool("first")], messages: [user, changed(...changes)] }, false).dropped;
  assert.deepEqual(left({ type: "tool_removal", tool: one }), ["tools.mcp"]);
  assert.deepEqual(left({ type: "tool_removal", tool: all }), []);
  assert.deepEqual(left({ type: "tool_removal", tool: all }, { type: "tool_addition", tool: one }), ["tools.mcp"]);
});

test("a cache mark on a change is ignored, and what a definition loses is named", () => {
  const mark = { type: "ephemeral" };
  const definition = { ...tool("third"), input_examples: [{ q: "x" }], cache_control: mark };
  const messages = [user, changed({ ...remove("first"), cache_control: mark }, define(definition))];
  const { dropped, ignored } = sent("chat", { tools, messages }, false);
  assert.deepEqual(dropped, ["messages.content.tool.definition.input_examples"]);
  assert.deepEqual(ignored, ["messages.content.cache_control", "messages.content.tool.definition.cache_control"]);
});

test("a choice among the tools counts those that are left", () => {
  const body = { tools, tool_choice: { type: "tool", name: "third" } };
  const { json } = sent("chat", { ...body, messages: [user, changed(define(tool("third")))] });
  assert.deepEqual(json.tool_choice, { type: "function", function: { name: "third" } });
});
