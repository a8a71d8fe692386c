/** `tollgate check --store`: checks what a start on this store would encounter, without starting a gateway. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { testConfig } from "../../../rig/config.ts";
import { BARE_ENV, PROGRAM } from "../../../rig/gateway.ts";
import { startRedis, type TestRedisOptions } from "../../../rig/redis.ts";

async function redisOf(t: TestContext, options: TestRedisOptions = {}) {
  const redis = await startRedis(options);
  t.after(() => redis.stop());
  return redis;
}

/** @returns exit status, standard output and standard error. */
async function checked(t: TestContext, store: string | undefined, ...more: string[]) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-check-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "tollgate.yaml");
  writeFileSync(file, testConfig({ upstreamUrl: "http://127.0.0.1:9", dir, store }));
  const args = [PROGRAM, "check", "--store", "--config", file, ...more];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...BARE_ENV },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { status: status as number, out, err };
}

test("a usable store is accepted, and nothing is written to it", async (t) => {
  const redis = await redisOf(t);
  const { status, out, err } = await checked(t, redis.url);
  assert.equal(status, 0, err);
  assert.match(out, /is good: .*\nstore: sign-in succeeded, and it can be used\n$/);
  assert.match(err, /^store: warning: Redis keeps no append-only file/m);
  assert.match(await redis.command("DBSIZE"), /:0/);
});

test("a wrong password, a missing database and a server that evicts are reported with the reason and exit status 1", async (t) => {
  const redis = await redisOf(t, { args: ["--databases", "2"] });
  await redis.command("CONFIG", "SET", "requirepass", "right");
  const evicting = await redisOf(t, { args: ["--maxmemory-policy", "allkeys-lru"] });
  const at = (password: string, database: number) => `redis://:${password}@127.0.0.1:${redis.port}/${database}`;
  const cases = [
    [at("wrong", 0), /WRONGPASS/],
    [at("right", 2), /DB index is out of range/],
    [evicting.url, /maxmemory-policy is allkeys-lru/],
    ["redis://127.0.0.1:1/0", /ECONNREFUSED/],
  ] as const;
  const refused = async ([store, problem]: (typeof cases)[number]) => {
    const { status, out, err } = await checked(t, store);
    assert.equal(status, 1);
    assert.match(out, /is good: /, "the file itself is valid");
    assert.match(err, problem);
    assert.match(err, /^store: it cannot be used: /m);
    assert.doesNotMatch(out + err, /wrong|right/, "no password is printed");
  };
  // Each check waits for its server.
  await Promise.all(cases.map(refused));
  const { status, out } = await checked(t, at("wrong", 0), "--json");
  const { ok, store } = JSON.parse(out);
  assert.deepEqual([status, ok, store.asked], [1, false, true]);
  assert.match(store.problem, /WRONGPASS/);
});

test("a data folder is not checked, because only its gateway may open it", async (t) => {
  const { status, out } = await checked(t, undefined);
  assert.equal(status, 0);
  assert.match(out, /store: a folder that only its gateway may open; nothing was checked\n$/);
});
