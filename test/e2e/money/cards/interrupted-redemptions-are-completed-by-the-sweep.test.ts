// The gateway completes redemptions that were interrupted by a crash elsewhere: at its start and every minute.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../../src/store/contract.ts";
import { connect } from "../../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../../src/store/redis/connection/runner.ts";
import { claim, noteClaim } from "../../../../src/store/redis/redemption.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import { sweepClaims } from "../../../../src/store/upkeep/claim-sweeper.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { makeAccount } from "../../../unit/store/asks.ts";
import { openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { sell } from "./rig.ts";

test("a claim that another process left is credited when a gateway starts", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  const runner = new Runner(connection, { tryMs: 400, totalMs: 480 });
  try {
    const tag = await makeAccount(store, "left", { group: "cards", funds: 0n });
    const [code] = await sell(store, 1);
    assert.ok(code);
    await noteClaim(runner, loadScripts(), code.hash);
    await claim(runner, loadScripts(), code.hash, tag);
    assert.equal((await store.listCards(tag))?.cards.length, 0);
    const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
    await here.logged((line) => line.codes === 1);
    await here.close();
    assert.deepEqual(
      (await store.listCards(tag))?.cards.map(({ id }) => id),
      [code.id],
    );
    assert.equal((await store.getCode(code.id))?.state, "redeemed");
  } finally {
    connection.close();
    await store.close();
    await redis.stop();
  }
});

test("the sweep runs at the start and every minute, continues after a failure, and stops with the gateway", async () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const log = createLog({ level: "warn", destination: { write: (line) => void lines.push(line) } });
  const answers: (number | Error)[] = [2, new StoreError("unavailable", "away"), 0];
  let sweeps = 0;
  const store = {
    async finishClaims(limit: number): Promise<number> {
      assert.ok(limit > 0);
      const answer = answers[sweeps++] ?? 0;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const sweeper = sweepClaims({ store, clock, log });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  await settled();
  assert.equal(sweeps, 1);
  assert.match(lines[0] ?? "", /"codes":2/);
  clock.advance(59_999);
  assert.equal(sweeps, 1);
  clock.advance(1);
  await settled();
  assert.equal(sweeps, 2);
  assert.match(lines[1] ?? "", /wait for the store/);
  clock.advance(60_000);
  await settled();
  assert.equal(sweeps, 3);
  await sweeper.stop();
  clock.advance(600_000);
  assert.equal(sweeps, 3);
  assert.equal(lines.length, 2, "a sweep that finds nothing logs nothing");
});

test("the claim of a damaged account waits, and does not delay other accounts' claims or notices", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  const runner = new Runner(connection, { tryMs: 400, totalMs: 480 });
  try {
    const tags = [];
    const codes = await sell(store, 2);
    for (const [i, name] of ["damaged", "sound"].entries()) {
      const tag = await makeAccount(store, name, { group: "cards", funds: 0n });
      tags.push(tag);
      const code = codes[i];
      assert.ok(code);
      await noteClaim(runner, loadScripts(), code.hash);
      await claim(runner, loadScripts(), code.hash, tag);
      // Notes are in the order of their milliseconds.
      await redis.command("DEBUG", "SLEEP", "0.002");
      await store.addNotice(tag, { kind: "balance_low", ref: name, data: { balance: "1", below: "2" } });
    }
    const [damaged, sound] = tags;
    assert.ok(damaged && sound);
    const [, seq = ""] = (await redis.command("HGET", `{a:${damaged}}`, "seq")).split("\r\n");
    await redis.command("HSET", `{a:${damaged}}`, "seq", "x");
    // One at a time: the damaged one is the oldest, and is put behind the other.
    await assert.rejects(store.finishClaims(1), /DAMAGED/);
    assert.equal(await store.finishClaims(1), 1);
    await assert.rejects(store.finishClaims(10), /DAMAGED/);
    assert.deepEqual(
      (await store.listCards(sound))?.cards.map(({ id }) => id),
      [codes[1]?.id],
    );
    await redis.command("HSET", `{a:${damaged}}`, "seq", seq);
    assert.equal(await store.finishClaims(10), 1);
    assert.deepEqual(
      (await store.listCards(damaged))?.cards.map(({ id }) => id),
      [codes[0]?.id],
    );
    await redis.command("DEL", `{a:${damaged}}`);
    await redis.command("SET", `{a:${damaged}}`, "x");
    assert.deepEqual(
      (await store.pageNotices(undefined, 10)).items.map(({ name }) => name),
      ["sound"],
    );
    await redis.command("SET", `{a:${sound}}`, "x");
    await assert.rejects(store.pageNotices(undefined, 10), StoreError);
  } finally {
    connection.close();
    await store.close();
    await redis.stop();
  }
});
