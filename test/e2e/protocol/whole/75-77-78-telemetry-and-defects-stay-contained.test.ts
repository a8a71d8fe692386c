/**
 * docs/failure-model.md rows 75 (the number of series is bounded), 77 (one JSON object per line) and 78 (a defect
 * affects only one request).
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Settings } from "../../../../src/values/settings.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST } from "./asking.ts";

/** A model whose lookup throws, as a defect of the gateway would. */
const DEFECT = "a-defect";

class DefectiveMap<V> extends Map<string, V> {
  override get(name: string): V | undefined {
    if (name === DEFECT) throw new TypeError("a canary of a defect");
    return super.get(name);
  }
}

function withDefect(was: Settings): Settings {
  const models = new DefectiveMap(was.catalog.models);
  // Behind a front that sends no client address, so that no limit for bad keys ends the flood early.
  return { ...was, trustProxy: ["127.0.0.1/32"], catalog: { ...was.catalog, models } };
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ settings: withDefect });
});
after(() => here.close());

/** Names and labels of all series, without their values. */
async function series(): Promise<string[]> {
  const { body } = await here.gateway.metrics.page();
  const lines = body.split("\n").filter((line) => line.startsWith("tollgate_"));
  return lines.map((line) => line.slice(0, line.lastIndexOf(" "))).sort();
}

test("row 75: ten thousand models, paths, methods, agents and keys add no series", async () => {
  const { key } = await here.account();
  const strange = async (i: number) => {
    const headers = { "user-agent": `agent-${i}` };
    const options = i % 4 === 0 ? { headers, path: `/v1/p${i}` } : { headers };
    const presented = i % 4 === 1 ? `sk-${String(i).padStart(48, "q")}` : key;
    const reply = await ask(
      here,
      PROTOCOL_LIST[i % 3] ?? "chat",
      presented,
      { model: `m-${i}`, stream: i % 8 > 3 },
      options,
    );
    await reply.arrayBuffer();
  };
  // The first of each kind may add a series; after those there are no more.
  const methods = async () => {
    for (const method of ["PATCH", "PROPFIND", "PURGE", "SEARCH"]) {
      await (await fetch(`${here.url}/v1/messages`, { method })).arrayBuffer();
    }
  };
  for (let i = 0; i < 48; i++) await strange(i);
  await methods();
  const settled = await series();
  for (let from = 48; from < 10_048; from += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, i) => strange(from + i)));
  }
  assert.deepEqual(await series(), settled);
  assert.ok(settled.length < 2_000);
  await methods();
  assert.deepEqual(await series(), settled);
});

test("row 77: every log line is one JSON object, whatever a client writes", async () => {
  const { key } = await here.account();
  const evil = 'x\n{"level":"fatal"}\r\n\u001b[2J"},{"';
  const reply = await ask(here, "chat", key, { model: evil }, { path: "/v1/chat/completions?a=%0a%0d" });
  await reply.arrayBuffer();
  // The test helper parses each write as one JSON object and would have thrown; the model is there, escaped.
  const line = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  for (const character of ["\n", "\r", "\u001b"]) assert.ok(!String(line.model).includes(character));
});

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: row 78, a defect is a 500 in the protocol's form, without a stack, and the next request is served`, async () => {
    const account = await here.account();
    const reply = await ask(here, protocol, account.key, { model: DEFECT });
    const text = await reply.clone().text();
    const error = await errorOf(reply);
    assert.equal(reply.status, 500);
    assert.deepEqual([error.type, error.cause], [protocol === "messages" ? "api_error" : "server_error", "internal"]);
    assert.ok(error.message.endsWith(` Model: "${DEFECT}".`), error.message);
    assert.ok(text.includes(reply.headers.get("x-request-id") ?? "nothing"));
    assert.ok(!text.includes("canary") && !text.includes(".ts"));
    assert.ok(JSON.stringify(here.log).includes("a canary of a defect"), "the defect is logged");
    assert.equal((await ask(here, protocol, account.key)).status, 200);
    await assertAtRest(here, account);
  });
}
