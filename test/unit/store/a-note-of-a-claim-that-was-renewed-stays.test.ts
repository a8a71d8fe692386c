// A sweep reads the notes, then removes the ones without a claim. A redemption that begins in between renews its note.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../src/store/redis/connection/runner.ts";
import { CLAIMS } from "../../../src/store/redis/keys.ts";
import { noteClaim } from "../../../src/store/redis/redemption.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { Secret } from "../../../src/values/secret.ts";
import { codeHashOf } from "./asks.ts";
import { redisBench } from "./benches.ts";

test("a sweep does not remove the note of a claim that was renewed since the sweep read it", async () => {
  const bench = await redisBench();
  const url = new Secret(bench.redis.url);
  const connection = await connect({ kind: "redis", url }, () => undefined);
  try {
    const runner = new Runner(connection, { tryMs: 20_000, totalMs: 40_000 });
    const scripts = loadScripts();
    const hash = codeHashOf("renewed");
    const drop = (notedAt: string) => runner.script(scripts["claim-drop"], [CLAIMS], [hash, notedAt]);
    const notedAt = async () => {
      const [, notes] = (await runner.script(scripts["claim-list"], [CLAIMS], ["10"])) as [string, string[]];
      return notes[1];
    };
    await noteClaim(runner, scripts, hash);
    const first = (await notedAt()) ?? "";
    bench.setTime(bench.nowMs() + 1);
    await noteClaim(runner, scripts, hash);
    const second = (await notedAt()) ?? "";
    assert.equal(await drop(first), "kept");
    assert.equal(await notedAt(), second);
    assert.equal(await drop(second), "dropped");
    assert.equal(await notedAt(), undefined);
  } finally {
    connection.close();
    await bench.close();
  }
});
