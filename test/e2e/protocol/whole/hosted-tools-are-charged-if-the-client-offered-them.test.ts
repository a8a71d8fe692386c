/**
 * Calls of hosted tools are charged to the client that offered the tool, up to a maximum per tool. What a server counts
 * above that, or without an offer, costs no client anything and leaves no hold.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, afterEach, before } from "node:test";
import { runCli } from "../../../../src/cli/cli.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, usageLines } from "./asking.ts";

/** The ledger as the operator reads it. */
async function shownLedger(account: string): Promise<string> {
  let out = "";
  const write = (text: string) => (out += text);
  const unexpected = () => Promise.reject(new Error("not expected to run"));
  const status = await runCli(["ledger", "show", "--account", account], {
    ...{ stdout: { write }, stderr: { write }, fetch, serve: unexpected, check: unexpected },
    env: { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: here.gateway.adminToken },
  });
  assert.equal(status, 0, out);
  return out;
}

const TOKENS = 400n * 1_000n + 50n * 10_000n;
const SEARCH = 10_000_000n;

function config({ upstreamUrl, dir }: ConfigPlaces): string {
  const price =
    '{input: "1", output: "10", tools: {web_search: "0.01", web_search_options: "0.01", code_interpreter: "0.03"}}';
  const cost =
    '{input: "1", output: "10", tools: {web_search: "0.008", web_search_options: "0.008", code_interpreter: "0"}}';
  const model = (protocol: Protocol) =>
    `  ${protocol}-1: {plans: [free], price: ${price}, context_tokens: 200000, tool_calls: {held: 3, max: 20}, routes: [{upstream: up-${protocol}, cost: ${cost}}]}`;
  const upstream = (protocol: Protocol) =>
    `  up-${protocol}: {protocol: ${protocol}, base_url: ${JSON.stringify(upstreamUrl)}, api_key: k}`;
  const protocols = ["chat", "messages", "responses"] as const;
  return `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
admin_token: test-admin-token
store: ${JSON.stringify(`embedded:${join(dir, "data")}`)}
sealing_keys: [test-sealing-key-of-32-characters-or-more]
plans: {free: {}}
upstreams:
${protocols.map(upstream).join("\n")}
models:
${protocols.map(model).join("\n")}
  searching: {plans: [free], price: {input: "1", output: "10", tools: {web_search: "0.01"}}, context_tokens: 200000, routes: [{upstream: up-responses}]}
  by-request: {plans: [free], price: {input: "1", output: "10", options: {web_search_options: "0.02"}}, context_tokens: 200000, routes: [{upstream: up-responses}]}
groups:
  money: {kind: pay_per_use, models: ["*"]}
`;
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const OFFER: Readonly<Record<Protocol, Fields>> = {
  chat: { web_search_options: {} },
  messages: { tools: [{ type: "web_search_20250305", name: "web_search" }] },
  responses: { tools: [{ type: "web_search" }] },
};

/** A whole reply whose server has made this many searches. */
function replyWith(protocol: Protocol, searches: number): object {
  if (protocol === "chat") {
    const choices = [{ index: 0, message: { role: "assistant", content: "found" }, finish_reason: "stop" }];
    const usage = { prompt_tokens: 400, completion_tokens: 50, total_tokens: 450 };
    return { id: "c", object: "chat.completion", choices, usage: { ...usage, num_search_queries: searches } };
  }
  if (protocol === "messages") {
    const usage = { input_tokens: 400, output_tokens: 50, server_tool_use: { web_search_requests: searches } };
    const content = [{ type: "text", text: "found" }];
    return { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "end_turn", usage };
  }
  const usage = { input_tokens: 400, output_tokens: 50, total_tokens: 450 };
  const counted = { ...usage, server_side_tool_usage_details: { web_search_calls: searches } };
  const content = [{ type: "output_text", text: "found", annotations: [] }];
  const output = [{ type: "message", id: "m", role: "assistant", status: "completed", content }];
  return { id: "r", object: "response", status: "completed", output, usage: counted };
}

async function metric(name: string): Promise<string[]> {
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  return page.split("\n").filter((line) => line.startsWith(name));
}

for (const model of ["responses-1", "searching"]) {
  test(`chat to responses: a search is charged at its price, by either of its names (${model})`, async () => {
    const account = await here.account({ usd: "1" });
    here.simulator.program({ body: replyWith("responses", 4) });
    await (await ask(here, "chat", account.key, { model, ...OFFER.chat })).text();
    await assertAtRest(here, account);
    const [line, ...more] = await usageLines(here, account);
    assert.equal(line?.amount, TOKENS + 4n * SEARCH);
    assert.equal(memoOf(line).unpaid_tool_calls, undefined);
    assert.deepEqual(more, []);
  });
}

test("chat to responses: a search with a price per request is charged that price", async () => {
  const account = await here.account({ usd: "1" });
  here.simulator.program({ body: replyWith("responses", 0) });
  await (await ask(here, "chat", account.key, { model: "by-request", ...OFFER.chat })).text();
  await assertAtRest(here, account);
  const [line, ...more] = await usageLines(here, account);
  assert.equal(line?.amount, TOKENS + 2n * SEARCH);
  assert.deepEqual(more, []);
});

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: calls of a tool that the request offers are charged at their price`, async () => {
    const account = await here.account({ usd: "1" });
    here.simulator.program({ body: replyWith(protocol, 4) });
    await (await ask(here, protocol, account.key, OFFER[protocol])).text();
    await assertAtRest(here, account);
    const [line, ...more] = await usageLines(here, account);
    assert.equal(line?.amount, TOKENS + 4n * SEARCH);
    assert.equal(memoOf(line).unpaid_tool_calls, undefined);
    assert.deepEqual(more, []);
  });

  test(`${protocol}: above the maximum the client is charged the maximum, and the rest is absorbed and named`, async () => {
    const account = await here.account({ usd: "1" });
    here.simulator.program({ body: replyWith(protocol, 500) });
    await (await ask(here, protocol, account.key, OFFER[protocol])).text();
    await assertAtRest(here, account);
    const [line, rest, ...more] = await usageLines(here, account);
    assert.equal(line?.amount, TOKENS + 20n * SEARCH);
    assert.deepEqual(memoOf(line).unpaid_tool_calls, [{ tool: "web_search", calls: 480, reason: "over_maximum" }]);
    assert.deepEqual(
      [rest?.kind, rest?.amount, rest?.debit],
      ["absorbed", 480n * 8_000_000n, "absorbed:unpaid_tool_calls"],
    );
    assert.deepEqual(more, []);
  });

  for (const [searches, absorbed] of [
    [500, 500n],
    [900_000_000, 10_000n],
  ] as const) {
    test(`${protocol}: ${searches} searches that the request did not offer cost the client nothing, and no hold is left`, async () => {
      const account = await here.account({ usd: "1" });
      here.simulator.program({ body: replyWith(protocol, searches) });
      const reply = await ask(here, protocol, account.key);
      assert.equal(reply.status, 200);
      await reply.text();
      await assertAtRest(here, account);
      const [line, rest] = await usageLines(here, account);
      assert.equal(line?.amount, TOKENS);
      assert.equal(rest?.amount, absorbed * 8_000_000n);
      assert.match(await shownLedger(account.name), / absorbed .* unpaid_tool_calls *$/m);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 1_000_000_000n - TOKENS);
      assert.deepEqual(await metric("tollgate_dead_letters"), ["tollgate_dead_letters 0"]);
    });
  }
}

test("calls within the hold are charged from it, the rest from free funds, and what is left is absorbed", async () => {
  // 400 output tokens at 10 USD and three searches, and half a cent in addition.
  const account = await here.account({ usd: "0.04" });
  here.simulator.program({ body: replyWith("messages", 20) });
  await (await ask(here, "messages", account.key, OFFER.messages)).text();
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.deepEqual(
    lines.map(({ kind, amount }) => [kind, amount]),
    [
      ["usage", 40_000_000n],
      ["absorbed", TOKENS + 20n * SEARCH - 40_000_000n],
    ],
  );
  assert.equal((await here.store.getAccount(account.tag))?.balance, 0n);
});

test("streamed: searches among a response's items are counted if the last event leaves them out", async () => {
  const account = await here.account({ usd: "1" });
  const response = { id: "r", object: "response", status: "in_progress", output: [] };
  const search = (id: string, type: string) => ({ type: "web_search_call", id, status: "completed", action: { type } });
  const event = (type: string, members: object) => ({ event: type, data: { type, ...members } });
  const usage = { input_tokens: 400, output_tokens: 50, total_tokens: 450 };
  here.simulator.program({
    frames: [
      event("response.created", { response }),
      event("response.output_item.done", { output_index: 0, item: search("a", "search") }),
      event("response.output_item.done", { output_index: 1, item: search("b", "open_page") }),
      event("response.output_item.done", { output_index: 2, item: search("c", "search") }),
      event("response.output_text.delta", { item_id: "m", output_index: 3, content_index: 0, delta: "found" }),
      event("response.completed", { response: { ...response, status: "completed", usage } }),
    ],
  });
  await (await ask(here, "responses", account.key, { ...OFFER.responses, stream: true })).text();
  await assertAtRest(here, account);
  const [line] = await usageLines(here, account);
  assert.equal(line?.amount, TOKENS + 2n * SEARCH, "a page that is opened is not a search");
});

test("chat: sources without a count are one search", async () => {
  const account = await here.account({ usd: "1" });
  const annotations = [{ type: "url_citation", url_citation: { url: "https://a.test", title: "A" } }];
  const body = replyWith("chat", 0) as { choices: { message: object }[] };
  const [choice] = body.choices;
  here.simulator.program({ body: { ...body, choices: [{ ...choice, message: { content: "found", annotations } }] } });
  await (await ask(here, "chat", account.key, OFFER.chat)).text();
  await assertAtRest(here, account);
  const [line] = await usageLines(here, account);
  assert.equal(line?.amount, TOKENS + SEARCH);
});

test("a container is charged once, however often it is called", async () => {
  const account = await here.account({ usd: "1" });
  const body = replyWith("responses", 0) as { output: object[]; usage: object };
  const run = (id: string, container_id: string) => ({ type: "code_interpreter_call", id, container_id });
  const usage = { input_tokens: 400, output_tokens: 50, total_tokens: 450 };
  const output = [run("1", "a"), run("2", "a"), run("3", "b"), ...body.output];
  here.simulator.program({ body: { ...body, output, usage } });
  const tools = [{ type: "code_interpreter", container: { type: "auto" } }];
  await (await ask(here, "responses", account.key, { tools })).text();
  await assertAtRest(here, account);
  const [line] = await usageLines(here, account);
  assert.equal(line?.amount, TOKENS + 2n * 30_000_000n);
});

test("the metric names model, upstream and reason", async () => {
  // What the tests above have left of each model.
  const lines = await metric("tollgate_unpaid_tool_calls_total");
  const labels = (model: string, reason: string) =>
    `{model="${model}",upstream="up-${model.replace("-1", "")}",reason="${reason}"}`;
  for (const model of ["chat-1", "messages-1", "responses-1"]) {
    assert.ok(lines.includes(`tollgate_unpaid_tool_calls_total${labels(model, "over_maximum")} 480`), lines.join("\n"));
    assert.ok(
      lines.includes(`tollgate_unpaid_tool_calls_total${labels(model, "not_offered")} 10500`),
      lines.join("\n"),
    );
  }
});

for (const stream of [false, true]) {
  test(`messages, stream ${stream}: searches that a message shows are counted if its usage leaves them out`, async () => {
    const account = await here.account({ usd: "1" });
    const call = (id: string) => ({ type: "server_tool_use", id, name: "web_search", input: { query: "q" } });
    const found = (tool_use_id: string, content: unknown) => ({ type: "web_search_tool_result", tool_use_id, content });
    const failed = { type: "web_search_tool_result_error", error_code: "unavailable" };
    // Tools that a server runs in addition to those offered, as newer searches do, are not charged to the client.
    const unasked = { ...call("d"), name: "code_execution" };
    const done = [call("a"), found("a", []), call("b"), found("b", []), call("c"), found("c", failed)];
    // The last search continues in the message that resumes the turn, which counts it.
    const content = [...done, unasked, { ...found("d", []), type: "code_execution_tool_result" }, call("e")];
    const message = { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "pause_turn" };
    const usage = { input_tokens: 400, output_tokens: 50 };
    const event = (type: string, members: object) => ({ event: type, data: { type, ...members } });
    const frames = [
      event("message_start", { message: { ...message, content: [], usage: { ...usage, output_tokens: 1 } } }),
      ...content.map((block, index) => event("content_block_start", { index, content_block: block })),
      event("message_delta", { delta: { stop_reason: "pause_turn" }, usage }),
      event("message_stop", {}),
    ];
    here.simulator.program(stream ? { frames } : { body: { ...message, usage } });
    await (await ask(here, "messages", account.key, { ...OFFER.messages, stream })).text();
    await assertAtRest(here, account);
    const [line, ...more] = await usageLines(here, account);
    assert.equal(line?.amount, TOKENS + 2n * SEARCH);
    assert.equal(memoOf(line).unpaid_tool_calls, undefined);
    assert.deepEqual(more, []);
  });
}
