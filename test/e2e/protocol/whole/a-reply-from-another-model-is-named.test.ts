/**
 * A reply that names another model than the requested one is charged as the requested one, because that is the price
 * that the client was shown. The ledger line, the log and a metric name the other model.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, memoOf, PROTOCOL_LIST, recomputed, usageLines } from "./asking.ts";

function config(places: ConfigPlaces): string {
  return testConfig(places, {
    models: {
      "chat-elsewhere": {
        plans: ["free"],
        price: { input: "1", output: "10" },
        context_tokens: 200000,
        routes: [{ upstream: "up-chat", model: "deployment-7", answers_as: ["o1-pro"] }],
      },
    },
  });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

async function counted(model: string): Promise<number> {
  const headers = { authorization: "Bearer test-admin-token" };
  const page = await (await fetch(`${here.adminUrl}/metrics`, { headers })).text();
  const line = new RegExp(`^tollgate_other_model_answers_total\\{upstream="[^"]*",model="${model}"\\} (\\d+)`, "m");
  return Number(line.exec(page)?.[1] ?? 0);
}

for (const protocol of PROTOCOL_LIST) {
  for (const upstream of PROTOCOL_LIST) {
    for (const stream of [false, true]) {
      test(`${protocol} from ${upstream}${stream ? ", streamed" : ""}: the other model is named, the charge is that of the requested one`, async () => {
        const account = await here.account();
        const model = `${upstream}-1`;
        const before = await counted(model);
        here.simulator.program({ text: "some words", model: "o1-pro" });
        const reply = await ask(here, protocol, account.key, { model, stream });
        assert.equal(reply.status, 200, await reply.clone().text());
        await reply.text();
        await assertAtRest(here, account);
        const [line] = await usageLines(here, account);
        assert.equal(memoOf(line).answered_by, "o1-pro");
        assert.equal(line?.model, model);
        assert.equal(line?.amount, line && recomputed(line));
        assert.equal((await counted(model)) - before, 1);
        const logged = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
        assert.equal(logged.answered_by, "o1-pro");
      });
    }
  }
}

test("the model's own name, a dated one and a configured one do not count as another model", async () => {
  const account = await here.account();
  for (const [model, answered] of [
    ["chat-1", undefined],
    ["chat-1", "chat-1-2026-08-14"],
    ["chat-alias", "vendor/chat-1-2026-08"],
    ["chat-elsewhere", "o1-pro"],
  ] as const) {
    here.simulator.program({ text: "some words", ...(answered ? { model: answered } : {}) });
    await (await ask(here, "chat", account.key, { model })).text();
  }
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.deepEqual(
    lines.map((line) => memoOf(line).answered_by),
    [undefined, undefined, undefined, undefined],
  );
});
