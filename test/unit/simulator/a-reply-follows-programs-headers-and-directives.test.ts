import assert from "node:assert/strict";
import test from "node:test";
import { anthropicOf, openaiOf, PROTOCOL_NAMES, post, withSimulator } from "./clients.ts";

interface ChatReply {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
}

function asking(content: string): object {
  return { messages: [{ role: "user", content }] };
}

async function chatText(response: Response): Promise<string | undefined> {
  assert.equal(response.status, 200);
  return ((await response.json()) as ChatReply).choices[0]?.message.content;
}

test("the default reply says that it is a simulation, names the model and does not repeat the prompt", () =>
  withSimulator(async (simulator) => {
    for (const protocol of PROTOCOL_NAMES) {
      const field = protocol === "responses" ? { input: "my-secret-7531" } : asking("my-secret-7531");
      const response = await post(simulator, protocol, { ...field, model: "some-model" });
      assert.equal(response.headers.get("x-simulation"), "true");
      const text = await response.text();
      assert.match(text, /simulation/);
      assert.match(text, /some-model/);
      assert.match(text, new RegExp(`${protocol} protocol with 1 message`));
      assert.doesNotMatch(text, /my-secret-7531/);
    }
  }));

test("a directive in the last user text sets the reply, in each protocol", () =>
  withSimulator(async (simulator) => {
    const content = 'Be kind.\n  simulate: {"text":"as directed"}\nThank you.';
    const openai = openaiOf(simulator);
    const user = [{ role: "user" as const, content }];
    const chat = await openai.chat.completions.create({ model: "m", messages: user });
    assert.equal(chat.choices[0]?.message.content, "as directed");
    const blocks = [{ role: "user" as const, content: [{ type: "text" as const, text: content }] }];
    const message = await anthropicOf(simulator).messages.create({ model: "m", max_tokens: 99, messages: blocks });
    assert.ok(message.content[0]?.type === "text" && message.content[0].text === "as directed");
    assert.equal((await openai.responses.create({ model: "m", input: content })).output_text, "as directed");
  }));

test("a directive may have several lines, and the last directive is used", () =>
  withSimulator(async (simulator) => {
    const content = 'simulate: {"text":"first"}\nsimulate: {\n  "text": "second"\n}';
    assert.equal(await chatText(await post(simulator, "chat", asking(content))), "second");
  }));

test("a program takes precedence over a header, a header over a directive, and a directive over a permanent program", () =>
  withSimulator(async (simulator) => {
    const line = asking('simulate: {"text":"line"}');
    const header = { "x-simulate": '{"text":"header"}' };
    simulator.program({ text: "always" }, { times: Infinity });
    simulator.program({ text: "program" });
    assert.equal(await chatText(await post(simulator, "chat", line, header)), "program");
    assert.equal(await chatText(await post(simulator, "chat", line, header)), "header");
    assert.equal(await chatText(await post(simulator, "chat", line)), "line");
    assert.equal(await chatText(await post(simulator, "chat")), "always");
    simulator.clearPrograms();
    assert.match(String(await chatText(await post(simulator, "chat"))), /simulation/);
  }));

test("a program for certain requests is kept until one of them arrives", () =>
  withSimulator(async (simulator) => {
    simulator.program({ text: "b" }, { when: ({ json }) => (json as { model?: string }).model === "b" });
    assert.notEqual(await chatText(await post(simulator, "chat", { model: "a" })), "b");
    assert.equal(await chatText(await post(simulator, "chat", { model: "b" })), "b");
  }));

test("an invalid directive is refused with its error", () =>
  withSimulator(async (simulator) => {
    for (const [directive, expected] of [
      ["nonsense", /not JSON/],
      ["[1]", /object is expected/],
      ['{"txet":"x"}', /no field .{2}txet/],
      ['{"text":1}', /text.{2} is not a string/],
    ] as const) {
      const response = await post(simulator, "chat", asking(`simulate: ${directive}`));
      assert.equal(response.status, 400);
      assert.match(await response.text(), expected);
    }
  }));

test("given frames and bodies replace the reply", () =>
  withSimulator(async (simulator) => {
    simulator.program({ frames: [{ event: "x", data: { a: 1 } }, { data: "[DONE]" }], body: { b: 2 } }, { times: 2 });
    const stream = await post(simulator, "chat", { stream: true });
    assert.equal(await stream.text(), 'event: x\ndata: {"a":1}\n\ndata: [DONE]\n\n');
    assert.deepEqual(await (await post(simulator, "chat")).json(), { b: 2 });
  }));

test("a request for JSON gets an example of its schema", () =>
  withSimulator(async (simulator) => {
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, kind: { enum: ["a", "b"] }, parts: { items: { $ref: "#/$defs/part" } } },
      required: ["name", "kind", "parts"],
      $defs: { part: { type: "object", properties: { n: { type: "integer", minimum: 3 } } } },
    };
    (schema.properties.parts as Record<string, unknown>).type = "array";
    const format = { type: "json_schema", json_schema: { name: "x", schema } };
    const text = await chatText(await post(simulator, "chat", { response_format: format }));
    assert.deepEqual(JSON.parse(String(text)), { name: "simulated", kind: "a", parts: [{ n: 3 }] });
  }));

test("a request for thinking gets thinking", () =>
  withSimulator(async (simulator) => {
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const message = (await (await post(simulator, "messages", { thinking })).json()) as { content: { type: string }[] };
    assert.deepEqual(
      message.content.map(({ type }) => type),
      ["thinking", "text"],
    );
  }));

test("usage can be left out, or sent with every chunk", () =>
  withSimulator(async (simulator) => {
    const asked = { stream: true, stream_options: { include_usage: true } };
    const chunksWith = async (count: RegExp) =>
      (await (await post(simulator, "chat", asked)).text()).match(count)?.length;
    simulator.program({ noUsage: true });
    assert.equal(await chunksWith(/"usage"/g), undefined);
    simulator.program({ text: "a", usageOnEveryChunk: true });
    assert.equal(await chunksWith(/"usage":\{/g), 4);
    simulator.program({ text: "a" });
    assert.equal(await chunksWith(/"usage":null/g), 3);
  }));
