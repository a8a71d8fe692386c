/**
 * ARCHITECTURE.md promise 14 and docs/translation-rules.md rule 33: a hosted tool without a price that is offered with
 * other tools is left out and named, on every route. If the request demands it, or offers only this tool, and it could
 * run, the request is refused.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields } from "./asking.ts";

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, ({ models }) => ({
        models: { "responses-alias": { price: { ...models["responses-alias"].price, tools: { web_search: "0.01" } } } },
      })),
  });
  account = await here.account();
});
after(() => here.close());

const OWN = { type: "function", name: "shell", parameters: { type: "object", properties: {} }, strict: false };
const SEARCH = { type: "web_search", external_web_access: false };
/** Tools as Codex offers them in every request. */
const TOOLS = [OWN, SEARCH];

const sent = () => JSON.parse(here.simulator.requests.at(-1)?.body.toString() ?? "") as Record<string, unknown>;

for (const model of ["responses-1", "chat-1", "messages-1"]) {
  test(`offered with other tools, on ${model}: 200, the loss is named, and no server gets it`, async () => {
    const reply = await ask(here, "responses", account.key, { model, tools: TOOLS });
    assert.equal(reply.status, 200, await reply.clone().text());
    assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=tools.web_search");
    assert.ok(!here.simulator.requests.at(-1)?.body.toString().includes("web_search"));
    await assertAtRest(here, account);
  });
}

test("with a price it is carried, and no loss is named", async () => {
  const reply = await ask(here, "responses", account.key, { model: "responses-alias", tools: TOOLS });
  assert.equal(reply.status, 200, await reply.clone().text());
  assert.equal(reply.headers.get("x-tollgate-translation"), null);
  assert.deepEqual(sent().tools, TOOLS);
});

test("Codex's default tools work on a responses model without tool prices; other bytes stay", async () => {
  const golden = new URL("../../../golden/clients/codex-exec.responses.json", import.meta.url);
  const body = JSON.parse(readFileSync(golden, "utf8")) as Fields & { tools: { type: string }[] };
  assert.ok(body.tools.some(({ type }) => type === "web_search"));
  const raw = JSON.stringify({ ...body, model: "responses-1", max_output_tokens: 500 });
  const reply = await ask(here, "responses", account.key, {}, { raw });
  assert.equal(reply.status, 200, await reply.clone().text());
  assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=tools.web_search");
  await reply.text();
  const search = JSON.stringify(body.tools.find(({ type }) => type === "web_search"));
  const expected = raw.includes(`,${search}`) ? raw.replace(`,${search}`, "") : raw.replace(`${search},`, "");
  assert.equal(here.simulator.requests.at(-1)?.body.toString(), expected);
});

/** The fields of a request, and what of them goes upstream. */
const LEFT_OUT: readonly (readonly [string, Protocol, Fields, Fields])[] = [
  [
    "in a namespace, which keeps its other tools",
    "responses",
    { tools: [{ type: "namespace", name: "n", description: "d", tools: [SEARCH, OWN] }] },
    { tools: [{ type: "namespace", name: "n", description: "d", tools: [OWN] }] },
  ],
  [
    "alone in a namespace, which is left out too",
    "responses",
    { tools: [OWN, { type: "namespace", name: "n", description: "d", tools: [SEARCH] }] },
    { tools: [OWN] },
  ],
  [
    "in an item that adds tools",
    "responses",
    {
      input: [
        { type: "additional_tools", role: "developer", tools: [SEARCH, OWN] },
        { role: "user", content: "1.50" },
      ],
    },
    {
      input: [
        { type: "additional_tools", role: "developer", tools: [OWN] },
        { role: "user", content: "1.50" },
      ],
    },
  ],
  [
    "alone in an item that adds tools, which is left out too",
    "responses",
    {
      tools: [OWN],
      input: [
        { type: "additional_tools", role: "developer", tools: [SEARCH] },
        { role: "user", content: "x" },
      ],
    },
    { tools: [OWN], input: [{ role: "user", content: "x" }] },
  ],
  [
    "among allowed tools",
    "responses",
    {
      tools: TOOLS,
      tool_choice: {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "shell" }, { type: "web_search" }],
      },
    },
    {
      tools: [OWN],
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "shell" }] },
    },
  ],
  [
    "of a server's own memory",
    "responses",
    { tools: [OWN, { type: "file_search", vector_store_ids: ["vs_1"] }] },
    { tools: [OWN] },
  ],
  [
    "on messages, while another tool is demanded",
    "messages",
    {
      tools: [
        { name: "f", input_schema: { type: "object" } },
        { type: "web_search_20250305", name: "web_search" },
      ],
      tool_choice: { type: "tool", name: "f" },
    },
    { tools: [{ name: "f", input_schema: { type: "object" } }], tool_choice: { type: "tool", name: "f" } },
  ],
  [
    "on chat",
    "chat",
    { tools: [{ type: "function", function: { name: "f" } }, { type: "web_search" }] },
    { tools: [{ type: "function", function: { name: "f" } }] },
  ],
];

for (const [name, protocol, fields, upstream] of LEFT_OUT) {
  test(`left out: ${name}`, async () => {
    const reply = await ask(here, protocol, account.key, fields);
    assert.equal(reply.status, 200, await reply.clone().text());
    assert.match(reply.headers.get("x-tollgate-translation") ?? "", /^lossy; dropped=tools\.(web|file)_search$/);
    const body = sent();
    for (const member of ["tools", "tool_choice", ...("input" in fields ? ["input"] : [])]) {
      assert.deepEqual(body[member], upstream[member], member);
    }
    await assertAtRest(here, account);
  });
}

/** A container of the server; without it, the client runs the commands. */
const HOSTED_SHELL = { type: "shell", environment: { type: "container_auto" } };
const SHELL_CHOSEN = { tools: [OWN, HOSTED_SHELL], tool_choice: { type: "shell" } };

const DEMANDED: readonly (readonly [string, Protocol, Fields])[] = [
  ["the choice is its type", "responses", { tools: TOOLS, tool_choice: { type: "web_search" } }],
  ["the choice is another version of it", "responses", { tools: TOOLS, tool_choice: { type: "web_search_preview" } }],
  [
    "it is the only one that is allowed",
    "responses",
    { tools: TOOLS, tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] } },
  ],
  ["no other tool is offered", "responses", { tools: [SEARCH] }],
  ["the choice is the type of a tool that the client could run", "responses", SHELL_CHOSEN],
  [
    "a tool that the client could run is the only one that is allowed",
    "responses",
    { ...SHELL_CHOSEN, tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "shell" }] } },
  ],
  [
    "the choice is the type of a tool in an item",
    "responses",
    {
      tools: [OWN],
      tool_choice: { type: "shell" },
      input: [
        { type: "additional_tools", role: "developer", tools: [HOSTED_SHELL] },
        { role: "user", content: "x" },
      ],
    },
  ],
  [
    "an MCP server has listed others earlier",
    "responses",
    {
      tools: [SEARCH],
      tool_choice: "required",
      input: [
        { role: "user", content: "x" },
        { type: "mcp_list_tools", server_label: "m", tools: [{ name: "f", input_schema: {} }] },
      ],
    },
  ],
  [
    "an MCP server has listed others earlier",
    "messages",
    {
      tools: [{ type: "web_search_20250305", name: "web_search" }],
      tool_choice: { type: "any" },
      messages: [
        { role: "user", content: "x" },
        {
          role: "assistant",
          content: [{ type: "mcp_tool_listing", mcp_server_name: "m", tools: [{ name: "f", input_schema: {} }] }],
        },
        { role: "user", content: "x" },
      ],
    },
  ],
  [
    "the choice is its name",
    "messages",
    {
      tools: [
        { name: "f", input_schema: { type: "object" } },
        { type: "web_search_20250305", name: "web_search" },
      ],
      tool_choice: { type: "tool", name: "web_search" },
    },
  ],
  [
    "it is in a part from which nothing is left out",
    "responses",
    { tools: [OWN], input: [{ role: "user", content: [{ type: "input_text", text: "x", tools: [SEARCH] }] }] },
  ],
];

for (const [name, protocol, fields] of DEMANDED) {
  test(`${protocol}: refused: ${name}`, async () => {
    const before = here.simulator.count;
    const reply = await ask(here, protocol, account.key, fields);
    const error = await errorOf(reply);
    assert.deepEqual([reply.status, error.cause], [400, "unsupported_parameter"]);
    assert.match(error.message, /The hosted tool "(web_search[^"]*|shell)" is not offered for this model\./);
    assert.match(error.remedy, /web_search = "disabled" in Codex/, "the remedy names the setting of the client");
    assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
    await assertAtRest(here, account);
  });
}

test("an entry of the allowed tools is left out with its hosted tool, and a client's own shell can be demanded", async () => {
  const allowed = (...tools: readonly Fields[]) => ({ type: "allowed_tools", mode: "required", tools });
  const own = { type: "function", name: "shell" };
  const among = { ...SHELL_CHOSEN, tool_choice: allowed(own, { type: "shell" }) };
  const reply = await ask(here, "responses", account.key, among);
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  assert.deepEqual([sent().tools, sent().tool_choice], [[OWN], allowed(own)]);
  const clients = { tools: [OWN, { type: "shell" }], tool_choice: { type: "shell" } };
  const passed = await ask(here, "responses", account.key, clients);
  assert.equal(passed.status, 200, await passed.clone().text());
  await passed.text();
  assert.deepEqual([sent().tools, sent().tool_choice], [clients.tools, clients.tool_choice]);
  await assertAtRest(here, account);
});

test("a strict request gets a 400 instead of a loss", async () => {
  const before = here.simulator.count;
  const reply = await ask(here, "responses", account.key, { tools: TOOLS }, { headers: { "x-tollgate-strict": "1" } });
  assert.deepEqual([reply.status, (await errorOf(reply)).param], [400, "tools"]);
  assert.equal(here.simulator.count, before);
  await assertAtRest(here, account);
});

test("explain says what is left out", async () => {
  const reply = await fetch(`${here.url}/v1/explain?protocol=responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "responses-1", input: "hi", tools: TOOLS, max_output_tokens: 50 }),
  });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.match(text, /tools\.web_search/);
});
