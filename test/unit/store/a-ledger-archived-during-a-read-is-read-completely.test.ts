/**
 * On Redis a page of the ledger is read with two commands; lines archived between them are neither missing nor listed twice.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readLedger } from "../../../src/store/redis/archive.ts";
import { connect } from "../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../src/store/redis/connection/runner.ts";
import { Secret } from "../../../src/values/secret.ts";
import { makeAccount } from "./asks.ts";
import { redisBench } from "./benches.ts";
import { archiveThrough } from "./contract-archive.ts";

const LINES = 30;
const AGE_MS = 97 * 3_600_000;

test("lines that are archived between the two commands of a reader are neither missing nor doubled", async (t) => {
  const { store, redis, nowMs, setTime, close } = await redisBench();
  t.after(close);
  const tag = await makeAccount(store, "Meanwhile");
  for (let at = 1; at < LINES; at++) await store.credit(tag, { id: `p${at}`, amount: 1n, kind: "topup", note: "" });
  setTime(nowMs() + AGE_MS);
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => {});
  t.after(() => connection.close());
  let archived = 0;
  let meanwhile = async () => {};
  const archiveMore = (lines: number) => async () => {
    archived += lines;
    assert.equal(await archiveThrough(store, tag, archived), "archived");
  };
  const once = (work: () => Promise<void>) => {
    let done = false;
    return async () => {
      if (done) return;
      done = true;
      await work();
    };
  };
  const interrupted = {
    ...connection,
    async entriesAfter(...ask: Parameters<typeof connection.entriesAfter>) {
      await meanwhile();
      return connection.entriesAfter(...ask);
    },
  };
  const runner = new Runner(interrupted, { tryMs: 400, totalMs: 480 });
  const read = async (after: number, limit: number) =>
    (await readLedger(runner, tag, after, limit)).map(({ seq, kind }) => (kind === "opening" ? -seq : seq));
  const from = (first: number, count: number) => Array.from({ length: count }, (_, at) => first + at);

  assert.deepEqual(await read(0, 5), from(1, 5));
  meanwhile = once(archiveMore(3));
  assert.deepEqual(await read(0, 5), [-3, ...from(4, 4)]);
  meanwhile = once(archiveMore(2));
  assert.deepEqual(await read(0, 4), [-5, ...from(6, 3)], "after an opening line that moves");
  meanwhile = once(archiveMore(4));
  assert.deepEqual(await read(7, 4), [-9, ...from(10, 3)], "the archive overtakes the reader");
  meanwhile = once(archiveMore(2));
  assert.deepEqual(await read(20, 4), from(21, 4), "the reader is past the archived lines");
  meanwhile = once(archiveMore(LINES - 11));
  assert.deepEqual(await read(25, 9), [-LINES], "all lines are read");
  meanwhile = async () => {};
  assert.deepEqual(await read(0, 9), [-LINES]);
  assert.deepEqual(await read(LINES, 9), []);
});
