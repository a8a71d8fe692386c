/**
 * A model with routes of two protocols: reasoning that was sealed for one must not reach the other, where it would be a
 * broken signature and a 400. All other bytes of the conversation stay as the client sent them.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { type Json, listOf, modelLine, post, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;

const mixed = (first: Protocol, second: Protocol) =>
  modelLine(
    `${first}-then-${second}`,
    `{upstream: up-${first}}, {upstream: up-${second}, priority: 1}`,
    "{thinking: adaptive, efforts: [low, high], reasoning_content: roundtrip}",
  );

before(async () => {
  here = await startDirections([mixed("responses", "messages"), mixed("messages", "responses")].join("\n"));
  account = await here.account();
});

afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** Makes the first upstream fail for the next request. */
function breakFirst(protocol: Protocol): void {
  const first = `canary-of-up-${protocol}`;
  here.simulator.program(
    { fault: { status: 401 } },
    { when: ({ headers }) => headers.some((value) => value.includes(first)) },
  );
}

const CALL = { name: "f", arguments: { n: 1 } };

test("messages client: a tool loop begun on responses continues on messages without the sealed thinking", async () => {
  const model = "responses-then-messages";
  const sdk = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
  const thinking = { type: "adaptive" as const };
  const tools = [{ name: "f", input_schema: { type: "object" as const } }];
  const opening = { role: "user" as const, content: "go" };
  here.simulator.program({ thinking: "deep", text: "said", tools: [CALL] });
  const { content } = await sdk.messages.create({ model, max_tokens: 900, tools, thinking, messages: [opening] });
  const [thought, ...rest] = content;
  assert.ok(thought?.type === "thinking" && thought.signature.startsWith("gw1."));
  const use = content.find((block) => block.type === "tool_use");
  const result = { type: "tool_result" as const, tool_use_id: use?.id ?? "", content: "1" };
  breakFirst("responses");
  here.simulator.program({ text: "done" });
  const final = await sdk.messages.create({
    model,
    max_tokens: 900,
    tools,
    thinking,
    messages: [opening, { role: "assistant", content }, { role: "user", content: [result] }],
  });
  assert.deepEqual(
    final.content.map((block) => block.type === "text" && block.text),
    ["done"],
  );
  const seen = seenBody(here.simulator.requests.at(-1));
  assert.ok(!JSON.stringify(seen).includes("gw1."));
  assert.deepEqual(listOf(seen.messages)[1], { role: "assistant", content: rest });
});

test("responses client: a tool loop begun on messages continues on responses without the sealed item", async () => {
  const model = "messages-then-responses";
  const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
  const tools = [{ type: "function" as const, name: "f", parameters: { type: "object" }, strict: false }];
  const shared = { model, tools, store: false, include: ["reasoning.encrypted_content" as const] };
  here.simulator.program({ thinking: "deep", tools: [CALL] });
  const { output } = await sdk.responses.create({ ...shared, input: "go" });
  const [thought, call] = output;
  assert.ok(thought?.type === "reasoning" && thought.encrypted_content?.startsWith("gw1."));
  assert.ok(call?.type === "function_call");
  breakFirst("messages");
  here.simulator.program({ text: "done" });
  const answer = { type: "function_call_output" as const, call_id: call.call_id, output: "1" };
  const input = [{ role: "user", content: "go" }, ...output, answer] as OpenAI.Responses.ResponseInput;
  const final = await sdk.responses.create({ ...shared, input });
  assert.equal(final.output_text, "done");
  const seen = seenBody(here.simulator.requests.at(-1));
  assert.ok(!JSON.stringify(seen).includes("gw1."));
  assert.deepEqual(listOf(seen.input).slice(1), [call, answer] as unknown as Json[]);
});

test("sealed thinking is removed from the bytes, and a thinking budget that would need it is switched off", async () => {
  const sealed = '{"type":"thinking", "thinking":"deep", "signature":"gw1.AAAA"}';
  const kept = '{ "type":"tool_use","id":"t1","name":"f","input":{"n":12345678901234567890,"u":"\\u00fc"} }';
  const before = `{"role":"user","content":[{"type":"text","text":"say \\"gw1.x\\" or gw1."}]}`;
  const after = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}';
  const only = `{"role":"assistant","content":[${sealed}]}`;
  const body = (assistants: string, thinking: string) =>
    `{"model":"on-messages","max_tokens":4000,"tools":[{"name":"f","input_schema":{"type":"object"}}],"thinking":${thinking},"messages":[${before}, ${assistants},${after}]}`;
  const budget = '{"type":"enabled","budget_tokens":2000}';
  const reply = await fetch(`${here.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${account.key}` },
    body: body(`${only},{"role":"assistant","content":[${sealed},${kept}]}`, budget),
  });
  await reply.text();
  assert.equal(reply.status, 200);
  const expected = body(`{"role":"assistant","content":[${kept}]}`, '{"type":"disabled"}').replace(", {", ",{");
  assert.equal(here.simulator.requests.at(-1)?.body.toString(), expected);
});

test("a turn loses all or none of its thinking, and the beginning and the last calls of the last loop decide whether thinking stays on", async () => {
  const sealed = '{"type":"thinking","thinking":"deep","signature":"gw1.AAAA"}';
  const own = '{"type":"thinking","thinking":"mine","signature":"c2lnbmVk"}';
  const loop = (id: string, ...thoughts: readonly string[]) =>
    `{"role":"assistant","content":[${[...thoughts, `{"type":"tool_use","id":"${id}","name":"f","input":{}}`].join(",")}]},` +
    `{"role":"user","content":[{"type":"tool_result","tool_use_id":"${id}","content":"1"}]}`;
  const budget = '{"type":"enabled","budget_tokens":2000}';
  const body = (thinking: string, first: string, last: string) =>
    `{"model":"on-messages","max_tokens":4000,"tools":[{"name":"f","input_schema":{"type":"object"}}],"thinking":${thinking},` +
    `"messages":[{"role":"user","content":"go"},${first},${last}]}`;
  for (const [first, last, expected] of [
    [[sealed], [own], body('{"type":"disabled"}', loop("t1"), loop("t2", own))],
    [[own], [sealed], body('{"type":"disabled"}', loop("t1", own), loop("t2"))],
    [[own], [own, sealed], body('{"type":"disabled"}', loop("t1", own), loop("t2"))],
  ] as const) {
    const reply = await postText("/v1/messages", body(budget, loop("t1", ...first), loop("t2", ...last)));
    assert.equal(reply.status, 200, reply.text);
    assert.equal(here.simulator.requests.at(-1)?.body.toString(), expected);
  }
});

test("text that only looks like an envelope stays byte for byte", async () => {
  const turn = { role: "user", content: "gw1.AAAA" };
  for (const [client, ask] of [
    ["messages", { model: "on-messages", max_tokens: 100, messages: [turn] }],
    ["responses", { model: "on-responses", store: false, input: [turn], max_output_tokens: 100 }],
  ] as const) {
    const reply = await post(here, client, account.key, ask);
    await reply.text();
    assert.equal(here.simulator.requests.at(-1)?.body.toString(), JSON.stringify(ask));
  }
});

test("a token count is also requested without envelopes", async () => {
  const thought = { type: "thinking", thinking: "deep", signature: "gw1.AAAA" };
  const said = { type: "text", text: "said" };
  const body = (...content: Json[]) => ({
    model: "on-messages",
    messages: [
      { role: "user", content: "one" },
      { role: "assistant", content },
      { role: "user", content: "two" },
    ],
  });
  const reply = await fetch(`${here.url}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${account.key}` },
    body: JSON.stringify(body(thought, said)),
  });
  await reply.text();
  assert.deepEqual([reply.status, reply.headers.get("x-tollgate-origin")], [200, "upstream"]);
  assert.deepEqual(seenBody(here.simulator.requests.at(-1)), body(said));
});

/** Posts a body as it is written. */
async function postText(path: string, body: string): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${account.key}` };
  const reply = await fetch(`${here.url}${path}`, { method: "POST", headers, body });
  return { status: reply.status, text: await reply.text() };
}

/** The text with each letter of the prefix written as an escape. */
const escaped = (text: string) => text.replaceAll("gw1.", "\\u0067\\u00771\\u002E");

const question = '{"role":"user","content":"go on"}';
const ofMessages = (...blocks: readonly string[]) =>
  `{"model":"on-messages","max_tokens":900,"messages":[${question},{"role":"assistant","content":[${blocks}]},${question}]}`;
const ofResponses = (...items: readonly string[]) =>
  `{"model":"on-responses","store":false,"max_output_tokens":90,"input":[${[...items, question]}]}`;

test("an envelope written with escapes is removed as well", async () => {
  const said = '{"type":"text","text":"said"}';
  const message = '{"id":"msg_gw1.AAAA","type":"message","role":"assistant","content":"said"}';
  for (const [path, body, left] of [
    ["/v1/messages", ofMessages('{"type":"thinking","thinking":"","signature":"gw1.AAAA"}', said), ofMessages(said)],
    ["/v1/messages", ofMessages('{"type":"redacted_thinking","data":"gw1.AAAA"}', said), ofMessages(said)],
    ["/v1/responses", ofResponses('{"type":"reasoning","summary":[],"encrypted_content":"gw1.AAAA"}'), ofResponses()],
    ["/v1/responses", ofResponses('{"id":"rs_gw1.AAAA","type":"reasoning","summary":[]}'), ofResponses()],
    ["/v1/responses", ofResponses(message), ofResponses(message.replace('"id":"msg_gw1.AAAA",', ""))],
    [
      "/v1/responses",
      ofResponses(message.replace("gw1.", "gw1.u.")),
      ofResponses(message.replace('"id":"msg_gw1.AAAA",', "")),
    ],
  ] as const) {
    for (const written of [body, escaped(body)]) {
      const reply = await postText(path, written);
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(here.simulator.requests.at(-1)?.json, JSON.parse(left), written);
    }
  }
});

test("a reference written with escapes is opened", async () => {
  const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
  here.simulator.program({ text: "said before" });
  const { output } = await sdk.responses.create({ model: "on-responses", input: "go" });
  const written = `{"type":"\\u0069tem_reference","id":${escaped(JSON.stringify(output[0]?.id))}}`;
  assert.ok(!written.includes("gw1."));
  const reply = await postText("/v1/responses", ofResponses(written));
  assert.equal(reply.status, 200, reply.text);
  const seen = here.simulator.requests.at(-1)?.body.toString() ?? "";
  assert.ok(seen.includes("said before") && !seen.includes("reference"), seen);
});

test("a member that appears twice beside an envelope is refused by name", async () => {
  const sealed = '{"type":"thinking","thinking":"","signature":"gw1.AAAA"}';
  const other = '"signature":"c2lnbmVk"}';
  const before = here.simulator.count;
  for (const [path, body, param] of [
    ["/v1/messages", ofMessages(sealed.replace("}", `,${other}`)), "messages[1].signature"],
    [
      "/v1/messages",
      ofMessages(sealed.replace('"type":"thinking"', '$&,"type":"text","text":"x"')),
      "messages[1].type",
    ],
    ["/v1/messages", ofMessages(sealed).replace("]},", '],"content":"said"},'), "messages[1].content"],
    [
      "/v1/responses",
      ofResponses('{"id":"rs_gw1.AAAA","id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2U"}'),
      "input[0].id",
    ],
    [
      "/v1/responses",
      ofResponses('{"type":"reasoning","summary":[],"encrypted_content":"c2U","encrypted_content":"gw1.AAAA"}'),
      "input[0].encrypted_content",
    ],
  ] as const) {
    for (const written of [body, escaped(body)]) {
      const reply = await postText(path, written);
      assert.equal(reply.status, 400, written);
      // With escapes it is also found where the check of references is in doubt, and is named without its number.
      const named = written === body ? param : (param.split(".").at(-1) ?? "");
      assert.ok(reply.text.includes(`${named}\\" occurs twice`), reply.text);
    }
  }
  const counted = await postText("/v1/messages/count_tokens", ofMessages(sealed.replace("}", `,${other}`)));
  assert.equal(counted.status, 200, "the gateway counts the tokens itself");
  assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
});

test("escapes alone change nothing: a member may appear twice where there is no envelope", async () => {
  const body = ofMessages('{"type":"text","text":"\\u00fc \\u0067","text":"twice"}');
  const reply = await postText("/v1/messages", body);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(here.simulator.requests.at(-1)?.body.toString(), body);
});
