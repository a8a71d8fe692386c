/**
 * docs/failure-model.md row B7: slots move from node to node while requests run. MOVED, ASK and TRYAGAIN are ours to
 * follow, never CROSSSLOT.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { slotOf } from "../../../../src/store/redis/connection/slots.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedisCluster, type TestRedis } from "../../../rig/redis.ts";
import { ask, errorOf } from "../../protocol/whole/asking.ts";
import { settledState } from "./rig.ts";

const ACCOUNTS = 4;
const MOVES = 12;

async function idOf(server: TestRedis): Promise<string> {
  return (await server.command("CLUSTER", "MYID")).split("\r\n")[1] as string;
}

/** Bulk strings of an array reply. */
function textsOf(reply: string): string[] {
  return [...reply.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map((match) => match[1] as string);
}

/** As `redis-cli --cluster reshard` does it, a few keys at a time, so that commands meet a slot in two places. */
async function move(slot: number, from: TestRedis, to: TestRedis, servers: readonly TestRedis[]): Promise<number> {
  const [fromId, toId] = [await idOf(from), await idOf(to)];
  const text = String(slot);
  assert.match(await to.command("CLUSTER", "SETSLOT", text, "IMPORTING", fromId), /^\+OK/);
  assert.match(await from.command("CLUSTER", "SETSLOT", text, "MIGRATING", toId), /^\+OK/);
  let moved = 0;
  for (;;) {
    const keys = textsOf(await from.command("CLUSTER", "GETKEYSINSLOT", text, "10"));
    if (keys.length === 0) break;
    const done = await from.command("MIGRATE", "127.0.0.1", `${to.port}`, "", "0", "5000", "KEYS", ...keys);
    assert.match(done, /^\+(OK|NOKEY)/);
    moved += keys.length;
  }
  for (const server of [to, from, ...servers]) {
    assert.match(await server.command("CLUSTER", "SETSLOT", text, "NODE", toId), /^\+OK/);
  }
  return moved;
}

test("slots of busy accounts move around: clients do not notice, and all is charged once", async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const names = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  const here = await startGatewayHere({ store: `redis-cluster://${names.join(",")}` });
  t.after(() => here.close());
  const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => here.account({ usd: "1000" })));
  const served = new Map<string, number>();
  const others: string[] = [];
  let running = true;
  const load = Promise.all(
    accounts.map(async ({ tag, key }) => {
      while (running) {
        const reply = await ask(here, "chat", key);
        if (reply.status === 200) {
          await reply.arrayBuffer();
          served.set(tag, (served.get(tag) ?? 0) + 1);
        } else others.push(`${reply.status} ${(await errorOf(reply)).cause}`);
      }
    }),
  );
  const at = new Map<string, number>();
  let moved = 0;
  for (let i = 0; i < MOVES; i++) {
    const { tag } = accounts[i % ACCOUNTS] as (typeof accounts)[number];
    const slot = slotOf(`{a:${tag}}`);
    const known = await cluster.servers[0]?.command("CLUSTER", "KEYSLOT", `{a:${tag}}`);
    assert.equal(known, `:${slot}\r\n`, "the slot is computed as Redis computes it");
    const from =
      at.get(tag) ?? cluster.servers.findIndex((_, server) => slot < Math.floor(((server + 1) * 16_384) / 3));
    const to = (from + 1) % 3;
    moved += await move(slot, cluster.servers[from] as TestRedis, cluster.servers[to] as TestRedis, cluster.servers);
    at.set(tag, to);
  }
  running = false;
  await load;
  assert.ok(moved > MOVES * 3, `${moved} keys moved`);
  // A slot that stays in two places for longer than half a second makes its accounts wait for too long; no other answer.
  assert.ok(
    others.every((answer) => answer === "503 store_unavailable"),
    others.join(),
  );
  const all = [...served.values()].reduce((sum, count) => sum + count, 0);
  assert.ok(others.length <= all / 50, `${others.length} refused, ${all} served`);
  assert.ok(!JSON.stringify(here.log).includes("CROSSSLOT"));
  for (const account of accounts) await settledState({ here, account }, served.get(account.tag) ?? 0);
});
