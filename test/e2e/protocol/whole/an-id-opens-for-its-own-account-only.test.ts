/**
 * ARCHITECTURE.md promise 14 and docs/decisions/references-carry-what-they-name.md: an account may refer to items that
 * it was given, which are held for and translated as if it had sent them; it learns nothing about items of another
 * account.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, framesOf } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

const LONG = "many words ".repeat(8_000);
const SECRET = "the canary sings in the cellar";

interface Item {
  readonly id: string;
  readonly type: string;
}

/** The items of a reply whose client may refer to them. */
async function given(key: string, model: string, text = SECRET): Promise<readonly Item[]> {
  here.simulator.program({ text });
  const reply = await ask(here, "responses", key, { store: undefined, model, max_output_tokens: 30_000 });
  assert.equal(reply.status, 200);
  return ((await reply.json()) as { output: Item[] }).output;
}

const question = { role: "user", content: "Go on." };
const referring = (id: unknown) => ({ store: undefined, input: [{ type: "item_reference", id }, question] });

for (const model of ["responses-1", "chat-1", "messages-1"]) {
  test(`${model}: another account's id gets the same refusal as an invented id`, async () => {
    const [own, stranger] = [await here.account(), await here.account()];
    const [message] = await given(own.key, model);
    const id = message?.id ?? "";
    assert.match(id, /^msg_gw1\./);
    const before = here.simulator.count;
    const answers = [];
    for (const asked of [id, `msg_gw1.${"A".repeat(id.length - 8)}`]) {
      const reply = await ask(here, "responses", stranger.key, { ...referring(asked), model });
      const { request_id: _, ...error } = (await errorOf(reply)) as { request_id?: string } & Awaited<
        ReturnType<typeof errorOf>
      >;
      answers.push([reply.status, error]);
      assert.ok(!JSON.stringify(error).includes("canary"));
      assert.match(String(error.remedy), /store: false/);
    }
    assert.deepEqual(answers[0], answers[1]);
    assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
    await assertAtRest(here, stranger);

    const reply = await ask(here, "responses", own.key, { ...referring(id), model });
    assert.equal(reply.status, 200);
    const sent = JSON.stringify(here.simulator.requests.at(-1)?.json);
    assert.ok(sent.includes(SECRET) && !sent.includes("gw1."), "its server gets the item itself");
    const log = JSON.stringify(here.log);
    assert.ok(!log.includes("canary sings") && !log.includes("gw1."), "neither is in the log");
  });
}

test("a reference is held for, explained and counted as the item that it names", async () => {
  const { key } = await here.account();
  const [message] = await given(key, "responses-1", LONG);
  const whole = { ...message, id: "msg_1" };
  const figures = [];
  for (const named of [{ type: "item_reference", id: message?.id }, whole]) {
    const fields = { store: undefined, input: [named, question] };
    const explained = await ask(here, "responses", key, fields, { path: "/v1/explain?protocol=responses" });
    const counted = await ask(
      here,
      "responses",
      key,
      { ...fields, store: undefined, max_output_tokens: undefined },
      { path: "/v1/responses/input_tokens" },
    );
    const { hold } = (await explained.json()) as { hold: { usd: string } };
    const { input_tokens: tokens } = (await counted.json()) as { input_tokens: number };
    figures.push({ held: Number(hold.usd), tokens });
  }
  const [referred, sent] = figures;
  assert.ok(referred && sent && sent.held > 0.02 && sent.tokens > 10_000, JSON.stringify(figures));
  assert.ok(Math.abs(referred.held / sent.held - 1) < 0.001, JSON.stringify(figures));
  assert.ok(Math.abs(referred.tokens / sent.tokens - 1) < 0.001, JSON.stringify(figures));
});

test("references may expand to at most a megabyte or eight times the body", async () => {
  const { key } = await here.account();
  const [message] = await given(key, "responses-1", LONG);
  const id = message?.id ?? "";
  assert.ok(id.length < 5_000, "the sealed id is far shorter than the item");
  const many = (count: number) => Array.from({ length: count }, () => ({ type: "item_reference", id }));
  const fits = Math.floor((1024 * 1024) / JSON.stringify({ ...message, id: "msg_1" }).length) - 1;
  const long = { role: "user", content: "x".repeat(400_000) };
  for (const [input, status] of [
    [[...many(fits), question], 200],
    [[...many(fits + 3), question], 413],
    [[...many(fits + 3), long], 200],
  ] as const) {
    const fields = { store: undefined, input };
    const reply = await ask(here, "responses", key, fields, { path: "/v1/responses/input_tokens" });
    assert.equal(reply.status, status, `${input.length} items`);
    const text = await reply.text();
    if (status === 413) assert.match(text, /body_too_large|more than 1048576 bytes/);
  }
});

test("if the funds cover the reference but not its item, the output limit is lowered", async () => {
  const account = await here.account({ usd: "0.31" });
  const limit = { max_output_tokens: 30_000 };
  here.simulator.program({ text: LONG, usage: { input: 1, output: 1 } });
  const reply = await ask(here, "responses", account.key, { store: undefined, ...limit });
  const [message] = ((await reply.json()) as { output: Item[] }).output;
  assert.ok(message && message.id.length < 10_000);
  await assertAtRest(here, account);
  for (const [input, clamped] of [
    [[question], false],
    [referring(message.id).input, true],
  ] as const) {
    here.simulator.program({ text: "ok", usage: { input: 1, output: 1 } });
    const second = await ask(here, "responses", account.key, { store: undefined, input, ...limit });
    assert.equal(second.status, 200);
    const lowered = /^max_output_tokens=(\d+)$/.exec(second.headers.get("x-tollgate-clamped") ?? "")?.[1];
    assert.equal(lowered !== undefined && Number(lowered) < 29_000, clamped);
    await second.text();
    await assertAtRest(here, account);
  }
});

for (const model of ["responses-1", "chat-1", "messages-1"]) {
  for (const stream of [false, true]) {
    test(`${model}: an official SDK sends back what it got${stream ? " of a stream" : ""}, and its server sees no id of ours`, async () => {
      const { key } = await here.account();
      const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: key, maxRetries: 0 });
      const turn = (input: OpenAI.Responses.ResponseInputItem[]) =>
        stream
          ? sdk.responses.stream({ model, input, max_output_tokens: 400 }).finalResponse()
          : sdk.responses.create({ model, input, max_output_tokens: 400 });
      here.simulator.program({ text: SECRET, tools: [{ name: "look", arguments: { part: "roof" } }] });
      const first = { role: "user" as const, content: "Look." };
      const { output } = await turn([first]);
      assert.deepEqual(
        output.map(({ type }) => type),
        ["message", "function_call"],
      );
      assert.equal(JSON.stringify(output).includes("gw1."), !stream);
      const [call] = output.flatMap((item) => (item.type === "function_call" ? [item.call_id] : []));
      here.simulator.program({ text: "All is well." });
      const result = { type: "function_call_output" as const, call_id: call ?? "", output: "fine" };
      const final = await turn([first, ...(output as OpenAI.Responses.ResponseInputItem[]), result]);
      assert.equal(final.output_text, "All is well.");
      const sent = JSON.stringify(here.simulator.requests.at(-1)?.json);
      assert.ok(sent.includes(SECRET) && sent.includes("roof") && !sent.includes("gw1."));
    });
  }

  test(`${model}: a stream has short ids, and one item at its end that opens them`, async () => {
    const { key } = await here.account();
    here.simulator.program({ text: SECRET, tools: [{ name: "look", arguments: { part: "roof" } }] });
    const reply = await ask(here, "responses", key, {
      store: undefined,
      stream: true,
      model,
      tools: [{ type: "function", name: "look", parameters: { type: "object" } }],
    });
    const events = framesOf(await reply.text()).map(({ data }) => JSON.parse(data));
    const numbers = events.map(({ sequence_number }) => sequence_number);
    assert.deepEqual(numbers, [...numbers.keys()], "numbered from 0 without a gap");
    const added = events.filter(({ type }) => type === "response.output_item.added");
    const done = events.filter(({ type }) => type === "response.output_item.done");
    assert.deepEqual(
      added.map(({ item, output_index }) => [output_index, item.id]),
      done.map(({ item, output_index }) => [output_index, item.id]),
      "an item has one id",
    );
    const last = events.at(-1);
    assert.equal(last.type, "response.completed");
    const carrier = done.at(-1).item;
    assert.match(carrier.id, /^rs_gw1\./);
    assert.deepEqual(
      last.response.output.map(({ id }: Item) => id),
      done.slice(0, -1).map(({ item }) => item.id),
      "the reply has the items of the model only",
    );
    assert.ok(last.response.output.every(({ id }: Item) => id.length < 80));
    const output = last.response.output.map(({ id }: Item) => ({ type: "item_reference", id }));
    const call = last.response.output.find(({ type }: Item) => type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "fine" };
    const ask2 = (input: unknown[]) => ask(here, "responses", key, { store: undefined, model, input });
    const next = await ask2([question, ...output, { type: "item_reference", id: carrier.id }, result]);
    assert.equal(next.status, 200);
    const sent = JSON.stringify(here.simulator.requests.at(-1)?.json);
    assert.ok(sent.includes(SECRET) && sent.includes("roof") && !sent.includes("gw1."));
    assert.equal(
      (await ask2([question, ...output, result])).status,
      400,
      "without the carrier the ids cannot be resolved",
    );
  });
}
