/**
 * The id of a response depends only on the sealing keys: another replica continues with it, and so does a restarted
 * one. A key that is no longer the first still opens what it has sealed.
 */
import assert from "node:assert/strict";
import test, { after, before, type TestContext } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { ask } from "../whole/asking.ts";
import { at, startKeeping } from "./rig.ts";

const [OLD, NEW] = ["an-older-sealing-key-of-32-characters", "a-newer-sealing-key-of-32-characters"];

let redis: TestRedis;
let server: Awaited<ReturnType<typeof startSimulator>>;
before(async () => {
  redis = await startRedis();
  server = await startSimulator({ stateful: true, uniqueIds: true });
});
after(async () => {
  await server.close();
  await redis.stop();
});

/** Starts a gateway; it is closed at the end of the test, unless the test closed it before. */
async function start(t: TestContext, options: Parameters<typeof startKeeping>[0]) {
  const store = `redis://127.0.0.1:${redis.port}/0`;
  const here = await startKeeping({ upstreamUrl: server.url, store, ...options });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= here.close();
    return closing;
  };
  t.after(close);
  return { ...here, close };
}

async function made(here: Pick<GatewayHere, "url">, key: string, previous?: string): Promise<string> {
  const reply = await ask(here, "responses", key, { store: undefined, previous_response_id: previous });
  assert.equal(reply.status, 200, await reply.clone().text());
  const { id, previous_response_id: named } = (await reply.json()) as { id: string; previous_response_id: unknown };
  assert.equal(named, previous ?? null);
  return id;
}

test("ids work at other replicas, after restarts and after a change of keys", async (t) => {
  const withKeys = (...sealingKeys: string[]) => start(t, { sealingKeys });
  const [one, two] = [await withKeys(OLD), await withKeys(OLD)];
  const { key } = await one.account();
  const first = await made(one, key);
  const second = await made(two, key, first);
  const [here, there] = [await at(one, key, "GET", second), await at(two, key, "GET", second)];
  assert.deepEqual(await here.json(), await there.json(), "each replica gives the same ids");
  await one.close();
  await two.close();

  const restarted = await withKeys(NEW, OLD);
  const third = await made(restarted, key, second);
  assert.equal((await at(restarted, key, "GET", first)).status, 200);
  const read = (await (await at(restarted, key, "GET", second)).json()) as { id: string };
  assert.equal(read.id, second, "the id is returned as requested, although a newer key would give another");
  await restarted.close();

  const rotated = await withKeys(NEW);
  assert.equal((await at(rotated, key, "GET", third)).status, 200);
  for (const id of [first, second]) assert.equal((await at(rotated, key, "GET", id)).status, 404);
  const gone = await ask(rotated, "responses", key, { store: undefined, previous_response_id: first });
  assert.equal(gone.status, 400);
  await rotated.close();
});

test("the id of an upstream that is no longer configured is refused", async (t) => {
  const keeping = await start(t, { sealingKeys: [OLD] });
  const { key } = await keeping.account();
  const reply = await ask(keeping, "responses", key, { store: undefined, model: "elsewhere-1" });
  const { id } = (await reply.json()) as { id: string };
  await keeping.close();
  const without = await start(t, { sealingKeys: [OLD], elsewhere: "up-responses" });
  const read = await at(without, key, "GET", id);
  const { error } = (await read.json()) as { error: { remedy: string } };
  assert.equal(read.status, 404);
  assert.match(error.remedy, /no longer/);
  const next = await ask(without, "responses", key, {
    store: undefined,
    model: "elsewhere-1",
    previous_response_id: id,
  });
  assert.equal(next.status, 400);
  assert.match(((await next.json()) as { error: { message: string } }).error.message, /no longer/);
  await without.close();
});
