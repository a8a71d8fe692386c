// The log contains no key (src/telemetry/log.ts), even if a client has mixed up its settings and sends one as the
// model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";

test("a model of the catalog has its own name in the log, whatever form it has", async (t) => {
  const model = "sk-ant-tuned-1234567890abcdef";
  const here = await startGatewayHere({
    config: (places) =>
      testConfig(places, (base) => ({
        models: { [model]: base.models["chat-1"] },
        groups: { money: { models: ["*"] } },
      })),
  });
  t.after(() => here.close());
  const { key } = await here.account();
  const reply = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
  });
  await reply.text();
  assert.equal(reply.status, 200);
  assert.equal((await here.requestEnd(reply.headers.get("x-request-id") ?? "")).model, model);
});

test("a key, also of another service, in place of the model's name is masked with asterisks, and other names are shown in one line", async () => {
  const here = await startGatewayHere();
  try {
    const { key } = await here.account();
    const ask = async (model: string) => {
      const reply = await fetch(`${here.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
      });
      const { error } = (await reply.json()) as { error: { cause: string } };
      assert.equal(error.cause, "unknown_model");
      return here.requestEnd(reply.headers.get("x-request-id") ?? "");
    };
    const coded = Buffer.from(key).toString("base64");
    for (const model of [key, `openai/${key}`, `${"x".repeat(100)} ${key}`, coded]) {
      assert.equal((await ask(model)).model, "***");
    }
    const foreign = `sk-ant-api03-${"Zq7-_x".repeat(15)}AA`;
    for (const model of [foreign, `anthropic/${foreign}`, "AIzaSyA1234567890abcdefghijklmnop"]) {
      assert.equal((await ask(model)).model, "***");
    }
    assert.equal((await ask("sk-model")).model, "sk-model");
    assert.equal((await ask('a\n{"level":"error"}')).model, 'a\\u000a{"level":"error"}');
    const log = JSON.stringify(here.log);
    assert.ok(!log.includes(key.slice(13, 40)) && !log.includes(coded.slice(20, 50)));
    const metrics = await (await fetch(`${here.adminUrl}/metrics`)).text();
    assert.match(metrics, /tollgate_requests_total\{[^}]*model="unknown"/);
    for (const text of [log, metrics]) assert.ok(!text.includes("Zq7-_x") && !text.includes("AIzaSy"));
  } finally {
    await here.close();
  }
});
