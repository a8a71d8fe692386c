/**
 * docs/failure-model.md row 82: with the shipped ACL the whole contract works, and CONFIG, KEYS, FLUSHALL, DEBUG and foreign
 * keys are refused.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis, startRedisCluster } from "../../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";
import { PATIENT, redisBench } from "./benches.ts";
import { keepsTheContract } from "./contract.ts";

const PASSWORD = "secret";
const SHIPPED = readFileSync(new URL("../../../deploy/redis-acl.conf", import.meta.url), "utf8");

const dir = mkdtempSync(join(tmpdir(), "tollgate-acl-"));
after(() => rmSync(dir, { recursive: true }));
const file = join(dir, "redis-acl.conf");
writeFileSync(file, SHIPPED.replace(/#0{64}/, `#${createHash("sha256").update(PASSWORD).digest("hex")}`));
const ARGS = ["--include", file];
const USER = `tollgate:${PASSWORD}@`;

keepsTheContract("redis under the shipped ACL", () => redisBench(USER, ARGS));

test("the shipped ACL is also sufficient in a cluster", async () => {
  const cluster = await startRedisCluster(ARGS);
  const { nodes } = cluster;
  const password = new Secret(PASSWORD);
  const store = await openStore(
    { kind: "redis-cluster", nodes, tls: undefined, username: "tollgate", password },
    PATIENT,
  );
  try {
    await store.check();
    const mark = await store.countEpoch(0, undefined, "fresh");
    assert.deepEqual(mark, { id: "fresh", count: 1, past: [], stopped: false });
    await store.stopEpoch(0, "fresh");
    assert.equal((await store.renewEpoch(0, "fresh", { id: "next", past: ["fresh"] }))?.id, "next");
    assert.equal(
      (await store.confirming().createAccount({ tag: "RightsTwo0" as never, name: "W", plan: "free" })) !== "exists",
      true,
    );
    for (let i = 0; i < 6; i++) {
      const tag = await makeAccount(store, `Rights${i}`);
      const request = admitAsk({ tag, requestId: ridOf(i) });
      const permit = admitted(await store.admit(request));
      assert.equal((await store.settle(settleAsk(request, permit, { amount: 5n }))).outcome, "settled");
    }
  } finally {
    await store.close();
    await cluster.stop();
  }
});

test("with the ACL as shipped no password is accepted", async () => {
  writeFileSync(join(dir, "shipped.conf"), SHIPPED);
  const redis = await startRedis({ args: ["--include", join(dir, "shipped.conf")] });
  try {
    for (const password of ["", "0".repeat(64)]) {
      assert.match(await redis.command("AUTH", "tollgate", password), /^-WRONGPASS/);
    }
  } finally {
    await redis.stop();
  }
});

const FORBIDDEN = [
  ["CONFIG", "GET", "*"],
  ["KEYS", "*"],
  ["FLUSHALL"],
  ["FLUSHDB"],
  ["DEBUG", "SLEEP", "0"],
  ["SCRIPT", "FLUSH"],
  ["ACL", "LIST"],
  ["SHUTDOWN", "NOSAVE"],
  ["REPLICAOF", "NO", "ONE"],
  ["GET", "foreign"],
  ["SET", "foreign", "x"],
  ["EVAL", "return redis.call('GET', KEYS[1])", "1", "foreign"],
] as const;

test("commands and keys that the gateway does not need are refused with NOPERM", async () => {
  const redis = await startRedis({ args: ARGS });
  try {
    for (const command of FORBIDDEN) {
      const answer = await redis.command("ACL", "DRYRUN", "tollgate", ...command);
      assert.match(answer, /has no permissions/, command.join(" "));
    }
    await redis.command("SET", "foreign", "x");
    const asTollgate = await redis.commands(
      ["AUTH", "tollgate", PASSWORD],
      ["CONFIG", "GET", "maxmemory"],
      ["EVAL", "return redis.call('GET', 'foreign')", "0"],
      ["EVAL", "return redis.call('KEYS', '*')", "0"],
    );
    assert.match(asTollgate[0] ?? "", /^\+OK/);
    for (const answer of asTollgate.slice(1)) assert.match(answer, /NOPERM|the script can't/);
  } finally {
    await redis.stop();
  }
});
