/**
 * docs/failure-model.md row B7: `kill -9` of one primary of a cluster under load. Requests of its accounts get 503 in
 * time, all others are served and the gateway stays ready; when it is back, everything is settled exactly once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { slotOf } from "../../../../src/store/redis/connection/slots.ts";
import { startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedisCluster, type TestRedis } from "../../../rig/redis.ts";
import { stopwatch } from "../../../rig/stopwatch.ts";
import { ask, errorOf } from "../../protocol/whole/asking.ts";
import { REFUSED_WITHIN_MS, settledState } from "./rig.ts";

const ARGS = ["--cluster-node-timeout", "2000", "--appendonly", "yes", "--appendfsync", "always"];
/** Longer than the other nodes take to consider the lost one failed. */
const OUTAGE_MS = 3_500;
const LOST_FROM_SLOT = 10_922;
const ACCOUNTS = 9;
/**
 * A quarter of the time that the gateway gives a primary to answer. If one that is not lost takes longer to answer somebody else, the machine
 * is too busy for it to answer the gateway in time, too.
 */
const MACHINE_MS = 100;

interface Client {
  readonly account: TestAccount;
  readonly lost: boolean;
  readonly answers: Map<string, number>;
  slowestRefusalMs: number;
}

test("if one primary of three is killed and restarted, only its own accounts are refused, and all settle once", async (t) => {
  const cluster = await startRedisCluster(ARGS);
  t.after(() => cluster.stop());
  const names = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  const here = await startGatewayHere({ store: `redis-cluster://${names.join(",")}` });
  t.after(() => here.close());
  const clients: Client[] = [];
  const enough = () => [true, false].every((lost) => clients.filter((client) => client.lost === lost).length >= 3);
  while (clients.length < ACCOUNTS || !enough()) {
    const account = await here.account({ usd: "1000" });
    const lost = slotOf(`{a:${account.tag}}`) >= LOST_FROM_SLOT;
    clients.push({ account, lost, answers: new Map(), slowestRefusalMs: 0 });
  }

  async function once({ account, answers }: Client): Promise<string> {
    const reply = await ask(here, "chat", account.key);
    const answer = reply.status === 200 ? "200" : `${reply.status} ${(await errorOf(reply)).cause}`;
    if (reply.status === 200) await reply.arrayBuffer();
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
    return answer;
  }
  let running = true;
  async function load(client: Client): Promise<void> {
    while (running) {
      const timed = stopwatch();
      if ((await once(client)) !== "200") {
        client.slowestRefusalMs = Math.max(client.slowestRefusalMs, timed());
      }
    }
  }

  let othersMs = 0;
  async function askOther(server: TestRedis, at: number): Promise<void> {
    // A key of this primary: it answers when the write is on its disk.
    let key = 0;
    while (Math.floor((slotOf(`key ${key}`) * 3) / 16_384) !== at) key++;
    while (running) {
      const startMs = performance.now();
      assert.equal(await server.command("SET", `key ${key}`, ""), "+OK\r\n");
      othersMs = Math.max(othersMs, performance.now() - startMs);
    }
  }

  for (const client of clients) assert.equal(await once(client), "200");
  const all = Promise.all([...clients.map(load), ...cluster.servers.slice(0, 2).map(askOther)]);
  const lost = cluster.servers[2] as TestRedis;
  await lost.kill();
  await here.logged(
    ({ msg, server }) =>
      String(msg).startsWith("the store does not answer in time") && server === `127.0.0.1:${lost.port}`,
  );
  const endMs = performance.now() + OUTAGE_MS;
  while (performance.now() < endMs) {
    const ready = await fetch(`${here.adminUrl}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
  }
  await lost.restart();
  await here.logged(
    ({ msg, server }) => msg === "the store answers in time again" && server === `127.0.0.1:${lost.port}`,
  );
  running = false;
  await all;

  t.diagnostic(`the others answered within ${Math.round(othersMs)} ms`);
  for (const { answers, lost, slowestRefusalMs } of clients) {
    const seen = JSON.stringify([...answers]);
    if (lost) assert.deepEqual([...answers.keys()].sort(), ["200", "503 store_unavailable"], seen);
    else if (othersMs < MACHINE_MS) assert.deepEqual([...answers.keys()], ["200"], seen);
    assert.ok(slowestRefusalMs < 3 * REFUSED_WITHIN_MS, `refused after ${slowestRefusalMs} ms under load`);
  }
  for (const client of clients) {
    let answer = "";
    while (answer !== "200") answer = await once(client);
    await settledState({ here, account: client.account }, client.answers.get("200") ?? 0);
  }
});
