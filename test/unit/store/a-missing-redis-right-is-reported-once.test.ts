/**
 * A right that a server's user lacks is reported in the error or in a warning, never in both. The test simulates the
 * connection.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { RedisConnection } from "../../../src/store/redis/connection/connect.ts";
import { Rights } from "../../../src/store/redis/connection/rights.ts";
import type { Script } from "../../../src/store/redis/scripts.ts";

/** Servers by name, with the indexes of the rights that they lack. */
function scene(lacking: Record<string, string[]>) {
  const connection = {
    losses: () => 0,
    nodeOf: (key: string) => key,
    primaries: () => Object.keys(lacking),
    runOn: async (node: string) => ["", lacking[node]],
  } as unknown as RedisConnection;
  const rights = new Rights(connection, [{ command: "ZREM", key: "a" }], {} as Script);
  /** One check: the error's message, and the warnings. */
  return async () => {
    const warnings: string[] = [];
    const error = await rights.check((message) => warnings.push(message)).catch(({ message }: Error) => message);
    const brief = (text: string) => text.replace(/^the user of (.*?)(may not \w+|has all).*$/s, "$1$2");
    return [typeof error === "string" ? brief(error) : undefined, ...warnings.map(brief)];
  };
}

test("a right that a single server lacks is reported in the error only, however it was noticed first", async () => {
  const lacking: Record<string, string[]> = { "": [] };
  const check = scene(lacking);
  assert.deepEqual(await check(), [undefined]);
  lacking[""] = ["1"];
  assert.deepEqual(await check(), ["Redis may not ZREM"]);
  assert.deepEqual(await check(), ["Redis may not ZREM"]);
  lacking[""] = [];
  assert.deepEqual(await check(), [undefined]);
});

test("a right that one server of a cluster lacks is reported in warnings as long as it lasts, and when it is restored", async () => {
  const lacking: Record<string, string[]> = { a: [], b: [] };
  const check = scene(lacking);
  await check();
  lacking.b = ["1"];
  assert.deepEqual(await check(), [undefined, "Redis at b may not ZREM"]);
  assert.deepEqual(
    await check(),
    [undefined, "Redis at b may not ZREM"],
    "the caller omits what it has already logged",
  );
  lacking.a = ["1"];
  assert.deepEqual(await check(), ["Redis at a may not ZREM", "Redis at b may not ZREM"]);
  lacking.a = [];
  lacking.b = [];
  assert.deepEqual(await check(), [undefined, "Redis at b has all"]);
});

test("a server that does not answer about its user's rights is asked again by a script one second later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  const connection = {
    losses: () => 0,
    nodeOf: () => "",
    primaries: () => [""],
    runOn: () => (++asked === 1 ? new Promise(() => {}) : Promise.resolve(["", []])),
  } as unknown as RedisConnection;
  const rights = new Rights(connection, [], {} as Script);
  const first = assert.rejects(rights.pass("k") ?? Promise.resolve(), /no reply within 1000 ms/);
  t.mock.timers.tick(1_000);
  await first;
  await rights.pass("k");
  assert.equal(asked, 2);
  assert.equal(rights.pass("k"), undefined, "the right is not checked again");
});

test("after a reconnect, which may be as another user, the rights are read again", async () => {
  let losses = 0;
  let lacking: string[] = [];
  let asked = 0;
  const connection = {
    losses: () => losses,
    nodeOf: () => "",
    primaries: () => [""],
    async runOn() {
      asked++;
      return ["", lacking];
    },
  } as unknown as RedisConnection;
  const rights = new Rights(connection, [{ command: "ZREM", key: "a" }], {} as Script);
  await rights.pass("k");
  assert.deepEqual([rights.pass("k"), asked], [undefined, 1]);
  losses = 1;
  lacking = ["1"];
  await assert.rejects(rights.pass("k") ?? Promise.resolve(), /may not ZREM on a/);
  assert.equal(asked, 2);
  losses = 2;
  lacking = [];
  await rights.pass("k");
  assert.deepEqual([rights.pass("k"), asked], [undefined, 3]);
});
