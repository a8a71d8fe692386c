import assert from "node:assert/strict";
import test from "node:test";
import { anthropicOf, openaiOf, PROTOCOL_NAMES, post, withSimulator } from "./clients.ts";

test("both SDKs get token counts and models", () =>
  withSimulator(async (simulator) => {
    const anthropic = anthropicOf(simulator);
    const openai = openaiOf(simulator);
    const counted = await anthropic.messages.countTokens({ model: "m", messages: [{ role: "user", content: "hi" }] });
    assert.ok(counted.input_tokens > 0);
    simulator.program({ usage: { input: 77 } }, { when: ({ path }) => path.endsWith("/input_tokens") });
    const { input_tokens } = await openai.responses.inputTokens.count({ model: "m", input: "hi" });
    assert.equal(input_tokens, 77);
    const names: string[] = [];
    for await (const model of openai.models.list()) names.push(model.id);
    const others: string[] = [];
    for await (const model of anthropic.models.list()) others.push(model.id);
    assert.deepEqual(names, ["simulated-large", "simulated-small"]);
    assert.deepEqual(others, names);
    assert.equal((await openai.models.retrieve("simulated-small")).owned_by, "simulation");
    await assert.rejects(anthropic.models.retrieve("nobody"), { status: 404 });
  }));

test("the start page says that this is a simulation, and other paths are 404", () =>
  withSimulator(async (simulator) => {
    const root = simulator.url.replace(/v1$/, "");
    assert.match(await (await fetch(root)).text(), /SIMULATION/);
    assert.equal((await fetch(`${simulator.url}/embeddings`, { method: "POST", body: "{}" })).status, 404);
    assert.equal((await fetch(`${simulator.url}/models/%zz`)).headers.get("x-simulation"), "true");
  }));

test("a wrong key is 401 in the protocol's form, and both headers are accepted", () =>
  withSimulator(
    async (simulator) => {
      for (const protocol of PROTOCOL_NAMES) {
        const refused = await post(simulator, protocol, {}, { authorization: "Bearer wrong" });
        assert.equal(refused.status, 401);
        const body = (await refused.json()) as { error: { type: string } };
        const expected = protocol === "messages" ? "authentication_error" : "invalid_request_error";
        assert.equal(body.error.type, expected);
        for (const headers of [{ authorization: "Bearer right" }, { "x-api-key": "right" }] as Record<
          string,
          string
        >[]) {
          const accepted = await post(simulator, protocol, {}, headers);
          assert.equal(accepted.status, 200);
          await accepted.body?.cancel();
        }
      }
    },
    { apiKey: "right" },
  ));

test("a body that the vendor would refuse is 400, and the field is named", () =>
  withSimulator(async (simulator) => {
    for (const [protocol, fields, name] of [
      ["chat", { messages: undefined }, /messages/],
      ["messages", { max_tokens: undefined }, /max_tokens/],
      ["responses", { input: 5 }, /input/],
    ] as const) {
      const response = await post(simulator, protocol, fields);
      assert.equal(response.status, 400);
      assert.match(await response.text(), name);
    }
    const broken = await fetch(`${simulator.url}/messages`, { method: "POST", body: "{" });
    assert.equal(broken.status, 400);
    await broken.body?.cancel();
  }));
