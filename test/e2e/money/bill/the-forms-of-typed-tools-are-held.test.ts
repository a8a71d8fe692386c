/**
 * A typed tool of 30 bytes has a description and a schema of up to 550 bytes for a server of another protocol, and a
 * freeform tool 150. The hold covers them. Before, many such tools ran on a tenth of what they cost, also for an account
 * whose holds are raised to the worst case.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, bodyOf, errorOf, type Fields, usageLines } from "../../protocol/whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: (places) => testConfig(places) });
});
after(() => here.close());

const typed = (type: string) => (name: string) => ({ type, name });
const defined = (name: string) => ({
  type: "tool_addition",
  tool: { type: "tool_definition", definition: { type: "memory_20250818", name } },
});

type Row = readonly [client: Protocol, upstream: Protocol, what: string, tool: (name: string) => Fields];
const ROWS: readonly Row[] = [
  ["messages", "chat", "memory", typed("memory_20250818")],
  ["messages", "responses", "text_editor", typed("text_editor_20250728")],
  ["messages", "chat", "bash", typed("bash_20250124")],
  ["chat", "messages", "custom", (name) => ({ type: "custom", custom: { name } })],
  ["responses", "chat", "custom", typed("custom")],
  ["messages", "chat", "tool_addition of memory", defined],
];

function bodyWith(client: Protocol, upstream: Protocol, tools: readonly Fields[]): Fields {
  const model = `${upstream}-1`;
  if (tools[0]?.type !== "tool_addition") return bodyOf(client, { model, tools });
  return bodyOf(client, {
    model,
    messages: [
      { role: "user", content: "hello" },
      { role: "system", content: tools },
    ],
  });
}

for (const [client, upstream, what, tool] of ROWS) {
  test(`${client} client, ${upstream} upstream: 300 tools (${what}) do not run on funds for their body`, async () => {
    const tools = Array.from({ length: 300 }, (_, at) => tool(`t${at}`));
    const body = bodyWith(client, upstream, tools);
    const payer = await here.account();
    const reply = await ask(here, client, payer.key, body);
    assert.equal(reply.status, 200, await reply.text());
    await assertAtRest(here, payer);
    const [line, ...more] = await usageLines(here, payer);
    assert.deepEqual(more, []);
    assert.ok(line);
    const poor = await here.account({ usd: (Number(line.amount - 1n) / 1e9).toFixed(9) });
    const refused = await ask(here, client, poor.key, body);
    assert.equal(refused.status, 403);
    assert.equal((await errorOf(refused)).cause, "insufficient_balance");
  });
}
