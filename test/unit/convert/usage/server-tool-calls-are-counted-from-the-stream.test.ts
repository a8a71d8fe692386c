/**
 * docs/decisions/what-a-disconnect-costs.md: calls of the server's own tools are items and blocks of the stream. A client
 * that disconnects before the last count, or whose stream a stop string ends, is charged for those that have passed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { countContent, MessagesOutput } from "../../../../src/convert/messages/produced.ts";
import { countOutput, ResponsesOutput } from "../../../../src/convert/responses/produced.ts";
import type { ServedCounts } from "../../../../src/values/tokens/usage.ts";

type Payload = Readonly<Record<string, unknown>>;

const search = (place: number, more: Payload = {}): Payload => ({
  output_index: place,
  item: { type: "web_search_call", id: `ws_${place}`, action: { type: "search", query: "q" }, ...more },
});
const added = (payload: Payload) => ["response.output_item.added", payload] as const;
const done = (payload: Payload) => ["response.output_item.done", payload] as const;

function servedBy(
  output: ResponsesOutput | MessagesOutput,
  events: readonly (readonly [type: string, payload: Payload])[],
): ServedCounts | undefined {
  for (const [type, payload] of events) output.see(type, payload);
  return output.counts().served;
}

test("calls of a response count from their first event, each once", () => {
  const output = new ResponsesOutput();
  const calls = (...events: readonly (readonly [string, Payload])[]) => servedBy(output, events)?.calls;
  assert.equal(calls(["response.output_text.delta", { output_index: 0, delta: "word" }]), undefined);
  assert.deepEqual(calls(added(search(1))), { web_search: 1 });
  assert.deepEqual(calls(done(search(1)), added(search(2)), added(search(3))), { web_search: 3 });
  // Opening a page is not a search. A call whose first event is missing counts at its end.
  assert.deepEqual(calls(done(search(2, { action: { type: "open_page" } })), done(search(3))), { web_search: 2 });
  assert.deepEqual(calls(done(search(4))), { web_search: 3 });
  assert.deepEqual(calls(["response.completed", { response: { output: [search(1).item] } }]), { web_search: 3 });
});

test("a container counts once, however many of its calls begin and end", () => {
  const output = new ResponsesOutput();
  const item = { type: "code_interpreter_call", container_id: "cntr_1" };
  const both = [added({ output_index: 0, item }), done({ output_index: 0, item })];
  assert.deepEqual(servedBy(output, [...both, ...both, added({ output_index: 2, item })])?.calls, {
    code_interpreter: 1,
  });
});

test("calls of a message count by their blocks, and failed ones are subtracted", () => {
  const output = new MessagesOutput();
  const block = (content_block: Payload) => ["content_block_start", { content_block }] as const;
  const use = (name: string) => block({ type: "server_tool_use", id: "srvtoolu_1", name, input: {} });
  const found = (content: unknown) => block({ type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content });
  assert.equal(
    servedBy(output, [block({ type: "tool_use", id: "toolu_1", name: "web_search", input: {} })]),
    undefined,
  );
  assert.deepEqual(servedBy(output, [use("web_search"), use("web_search"), use("bash_code_execution")])?.calls, {
    web_search: 2,
    code_execution: 1,
  });
  const failed = found({ type: "web_search_tool_result_error", error_code: "unavailable" });
  assert.deepEqual(servedBy(output, [failed])?.calls, { web_search: 1, code_execution: 1 });
  assert.deepEqual(servedBy(output, [use("../a path")])?.calls, { web_search: 1, code_execution: 1 });
  // A search among the client's own tools is free. Tools of another server count under one name, whatever they are
  // called.
  const others = [use("tool_search_tool_bm25"), block({ type: "mcp_tool_use", id: "mcptoolu_1", name: "own_name" })];
  assert.deepEqual(servedBy(output, others)?.calls, { web_search: 1, code_execution: 1, mcp: 1 });
  const results = [
    found([]),
    block({ type: "mcp_tool_result", tool_use_id: "mcptoolu_1", is_error: false, content: [] }),
  ];
  assert.deepEqual(servedBy(output, results)?.ended, { web_search: 1, mcp: 1 });
});

test("results of calls are estimated as they are shown: sealed text at four characters a token, a file as a file", () => {
  const block = (type: string, content: unknown) =>
    ["content_block_start", { content_block: { type, tool_use_id: "srvtoolu_1", content } }] as const;
  const tokens = (...events: Parameters<typeof servedBy>[1]) => servedBy(new MessagesOutput(), events)?.foundTokens;
  const result = { type: "web_search_result", encrypted_content: "x".repeat(4_000), page_age: null };
  assert.equal(tokens(block("web_search_tool_result", [result, result])), 2_000);
  const document = (source: Payload) => ({ type: "web_fetch_result", content: { type: "document", source } });
  assert.equal(tokens(block("web_fetch_tool_result", document({ type: "base64", data: "x".repeat(6_400) }))), 100);
  const text = tokens(block("web_fetch_tool_result", document({ type: "text", data: "word ".repeat(1_000) }))) ?? 0;
  assert.ok(text >= 1_000 && text <= 2_000, `${text}`);
  const results = [{ file_id: "f", text: "word ".repeat(1_000) }];
  const item = { type: "file_search_call", results };
  const ofFiles = servedBy(new ResponsesOutput(), [done({ output_index: 0, item })]);
  assert.ok(ofFiles && ofFiles.foundTokens >= 1_000 && ofFiles.foundTokens <= 2_000, `${ofFiles?.foundTokens}`);
});

test("the calls of a whole reply without a usage are counted from its content", () => {
  const use = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
  assert.deepEqual(countContent([use, use]).served?.calls, { web_search: 2 });
  assert.deepEqual(countOutput([search(0).item, search(1).item]).served?.calls, { web_search: 2 });
  assert.equal(countOutput([{ type: "message", content: [] }]).served, undefined);
});
