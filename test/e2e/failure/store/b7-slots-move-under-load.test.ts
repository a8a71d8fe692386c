/**
 * docs/failure-model.md row B7: slots move from node to node while requests run. The gateway follows MOVED, ASK and
 * TRYAGAIN, and never causes CROSSSLOT.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { slotOf } from "../../../../src/store/redis/connection/slots.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedisCluster, type TestRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
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

/** Moves a slot as `redis-cli --cluster reshard` does. */
async function beginMove(slot: number, from: TestRedis, to: TestRedis) {
  const [fromId, toId] = [await idOf(from), await idOf(to)];
  const text = String(slot);
  assert.match(await to.command("CLUSTER", "SETSLOT", text, "IMPORTING", fromId), /^\+OK/);
  assert.match(await from.command("CLUSTER", "SETSLOT", text, "MIGRATING", toId), /^\+OK/);
  return {
    /** Moves some keys, so that the slot is on two nodes. @returns how many; 0 when all have been moved. */
    async some(count: number): Promise<number> {
      const keys = textsOf(await from.command("CLUSTER", "GETKEYSINSLOT", text, `${count}`));
      if (keys.length === 0) return 0;
      const done = await from.command("MIGRATE", "127.0.0.1", `${to.port}`, "", "0", "5000", "KEYS", ...keys);
      assert.match(done, /^\+(OK|NOKEY)/);
      return keys.length;
    },
    async end(servers: readonly TestRedis[]): Promise<void> {
      for (const server of [to, from, ...servers]) {
        assert.match(await server.command("CLUSTER", "SETSLOT", text, "NODE", toId), /^\+OK/);
      }
    },
  };
}

async function move(slot: number, from: TestRedis, to: TestRedis, servers: readonly TestRedis[]): Promise<number> {
  const moving = await beginMove(slot, from, to);
  let moved = 0;
  for (let some = await moving.some(10); some > 0; some = await moving.some(10)) moved += some;
  await moving.end(servers);
  return moved;
}

test("clients do not notice when slots of busy accounts move, and everything is charged once", async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const names = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  const here = await startGatewayHere({ store: `redis-cluster://${names.join(",")}`, storeTimes: PATIENT });
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
  // If a slot stays on two nodes for longer than that, requests of its accounts wait too long; no other error is
  // acceptable.
  assert.ok(
    others.every((answer) => answer === "503 store_unavailable"),
    others.join(),
  );
  const all = [...served.values()].reduce((sum, count) => sum + count, 0);
  assert.ok(others.length <= all / 50, `${others.length} refused, ${all} served`);
  assert.ok(!JSON.stringify(here.log).includes("CROSSSLOT"));
  for (const account of accounts) await settledState({ here, account }, served.get(account.tag) ?? 0);
});

test("an account whose slot is left half-moved is refused alone: other accounts of the server are served", async (t) => {
  const cluster = await startRedisCluster();
  const names = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  const here = await startGatewayHere({ store: `redis-cluster://${names.join(",")}`, storeTimes: PATIENT });
  t.after(() => here.close().then(() => cluster.stop()));
  const serverOf = (tag: string) =>
    cluster.servers.findIndex((_, server) => slotOf(`{a:${tag}}`) < Math.floor(((server + 1) * 16_384) / 3));
  const stuck = await here.account({ usd: "10" });
  let other = await here.account({ usd: "10" });
  while (serverOf(other.tag) !== serverOf(stuck.tag)) other = await here.account({ usd: "10" });
  const status = async (key: string): Promise<string> => {
    const reply = await ask(here, "chat", key);
    if (reply.status === 200) return reply.arrayBuffer().then(() => "200");
    return `${reply.status} ${(await errorOf(reply)).cause}`;
  };
  assert.deepEqual([await status(stuck.key), await status(other.key)], ["200", "200"]);
  const from = serverOf(stuck.tag);
  const [source, target] = [cluster.servers[from] as TestRedis, cluster.servers[(from + 1) % 3] as TestRedis];
  const moving = await beginMove(slotOf(`{a:${stuck.tag}}`), source, target);
  assert.equal(await moving.some(1), 1);
  // Far more than would open a breaker if they counted as an outage.
  for (let round = 0; round < 4; round++) {
    const answers = await Promise.all([...Array(10).fill(stuck.key), other.key].map(status));
    assert.deepEqual(answers, [...Array(10).fill("503 store_unavailable"), "200"]);
  }
  assert.ok(!here.log.some(({ msg }) => /does not answer in time/.test(String(msg))));
  while ((await moving.some(10)) > 0);
  await moving.end(cluster.servers);
  assert.equal(await status(stuck.key), "200");
  await settledState({ here, account: stuck }, 2);
  await settledState({ here, account: other }, 5);
});
