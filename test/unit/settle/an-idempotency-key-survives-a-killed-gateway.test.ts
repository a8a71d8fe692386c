/**
 * docs/failure-model.md rows A2, A3, B1 and B6 for idempotency keys: what a killed gateway charged stays under its key, what it
 * did not charge leaves the key free, and what a store lost is restored with the charge.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";
import { openStore } from "../../../src/store/open.ts";
import { idempotentRequest } from "../../../src/values/idempotency.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import {
  type GatewayProcess,
  makeAccount,
  settingsOf,
  spawnGateway,
  startGatewayHere,
  testConfig,
} from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, hashOf, terms } from "../store/asks.ts";

const SETTLED = "what the last process left is settled";
const FOLLOWED = "the journal follows this store";

function ask(url: string, key: string, more: object = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "idempotency-key": "order-1" },
    body: bodyOf(more),
  });
}

function bodyOf(more: object): string {
  return JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hello" }], max_tokens: 500, ...more });
}

/** Status and error cause. */
async function outcomeOf(reply: Response): Promise<readonly unknown[]> {
  const { error } = (await reply.json()) as { error?: { cause: string } };
  return [reply.status, error?.cause];
}

async function scene(t: TestContext, kind: "embedded" | "redis") {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-key-"));
  const simulator = await startSimulator();
  const redis = kind === "redis" ? await startRedis() : undefined;
  const config = testConfig({ upstreamUrl: simulator.url, dir, store: redis?.url });
  const text = `${config}\nidempotency: {enabled: true}\n`;
  const processes: GatewayProcess[] = [];
  t.after(async () => {
    await Promise.all(processes.map((process) => process.stop("SIGKILL")));
    await redis?.stop();
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const open = () => openStore(settingsOf(text).store);
  const store = await open();
  const account = await makeAccount(store);
  await store.close();
  const start = async () => {
    const process = await spawnGateway(text);
    processes.push(process);
    return process;
  };
  return { account, simulator, start, open };
}

for (const kind of ["embedded", "redis"] as const) {
  test(`${kind}: after a kill in the middle of a stream, a retry is refused as already delivered, with the id of that request`, async (t) => {
    const { account, simulator, start } = await scene(t, kind);
    simulator.program({
      text: "one two three four five six seven",
      pace: { betweenMs: 2 },
      fault: { stallAfterEvents: 5 },
    });
    const first = await start();
    const reply = await ask(first.url, account.key, { stream: true });
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
    for (let seen = ""; !/"content":"[^"]/.test(seen); ) {
      const { value } = await reader.read();
      assert.ok(value);
      seen += Buffer.from(value).toString();
    }
    // Waits for a later turn of the gateway, since it records what a client has received in the turn in which it was sent.
    await (await fetch(`${first.adminUrl}/healthz`)).text();
    await first.stop("SIGKILL");
    await reader.cancel().catch(() => undefined);
    const second = await start();
    await second.line(SETTLED);
    const retried = await ask(second.url, account.key, { stream: true });
    const message = await retried.text();
    assert.equal(retried.status, 409);
    assert.match(message, /idempotency_streamed/);
    assert.ok(message.includes(reply.headers.get("x-request-id") as string), message);
    assert.equal(simulator.count, 1);
  });

  test(`${kind}: after a kill before the first output, a retry is a new request`, async (t) => {
    const { account, simulator, start } = await scene(t, kind);
    simulator.hold();
    const first = await start();
    const failed = assert.rejects(ask(first.url, account.key));
    await simulator.waitFor(1);
    await first.stop("SIGKILL");
    await failed;
    simulator.release();
    const second = await start();
    await second.line(SETTLED);
    assert.equal((await ask(second.url, account.key)).status, 200);
    assert.deepEqual(await outcomeOf(await ask(second.url, account.key)), [409, "idempotency_finished"]);
  });
}

test("embedded: after a kill between the admission and its record in the journal, a retry is a new request", async (t) => {
  const { account, simulator, start, open } = await scene(t, "embedded");
  // What such a kill leaves: the store has the request, the journal does not.
  const store = await open();
  const body = Buffer.from(bodyOf({}));
  const { tag } = account;
  const admission = admitAsk({ tag, requestId: newRequestId(Date.now(), randomBytes), keyHash: hashOf(account.key) });
  const idempotency = idempotentRequest("order-1", "/v1/chat/completions", body);
  const left = await store.admit({
    ...admission,
    plans: ["free"],
    groups: [terms({ group: "money" })],
    idempotency,
    holdTtlMs: 600_000,
  });
  assert.equal(left.outcome, "admitted");
  await store.close();
  const gateway = await start();
  await gateway.line(FOLLOWED);
  assert.equal((await ask(gateway.url, account.key)).status, 200);
  assert.deepEqual(await outcomeOf(await ask(gateway.url, account.key)), [409, "idempotency_finished"]);
  assert.equal(simulator.count, 1);
});

test("a Redis that lost the charge gets it back together with its idempotency key", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({
    store: redis.url,
    settings: (settings) => ({ ...settings, idempotency: { enabled: true, keepMs: 86_400_000 } }),
  });
  t.after(() => here.close());
  await here.logged((line) => line.msg === FOLLOWED);
  const account = await here.account();
  assert.match(await redis.command("SAVE"), /^\+OK/);
  const reply = await ask(here.url, account.key);
  assert.equal(reply.status, 200);
  await here.requestEnd(reply.headers.get("x-request-id") as string);
  const before = await here.store.inspect(account.tag);
  assert.equal(before?.idempotency[0]?.state, "finished");
  const followed = () => here.log.filter((line) => line.msg === FOLLOWED).length;
  const count = followed();
  await redis.crash();
  await here.logged(() => followed() > count);
  const after = await here.store.inspect(account.tag);
  assert.deepEqual(after?.idempotency, before?.idempotency);
  assert.deepEqual(await outcomeOf(await ask(here.url, account.key)), [409, "idempotency_finished"]);
  assert.equal(here.simulator.count, 1);
});
