// Requests do not wait for it, it is bounded, and an unreachable store loses none of it.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { KeyUses } from "../../../src/request/key-uses.ts";
import { StoreError, StoreUnreachableError } from "../../../src/store/contract.ts";
import type { KeyUse } from "../../../src/store/records.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { type AccountTag, newKey } from "../../../src/values/key.ts";
import { addressBucket } from "../../../src/wire/address.ts";
import { FakeClock } from "../dispatch/rig.ts";

const MINUTE_MS = 60_000;
const TAGS = ["0000000001", "0000000002"] as AccountTag[];

function started() {
  const clock = new FakeClock();
  const taken: (readonly [AccountTag, readonly KeyUse[]])[] = [];
  let awayError: Error | undefined;
  const broken = new Map<AccountTag, Error>();
  const warned: unknown[] = [];
  const log = { warn: (facts: unknown) => void warned.push(facts) } as unknown as Log;
  const store = {
    async noteKeyUses(tag: AccountTag, uses: readonly KeyUse[]) {
      if (awayError) throw awayError;
      const error = broken.get(tag);
      if (error) throw error;
      taken.push([tag, uses]);
    },
  };
  const uses = new KeyUses({ clock, log, store, bucketOf: addressBucket });
  const note = (keyId: string, atMs: number, more: { address?: string; userAgent?: string; tag?: AccountTag } = {}) =>
    uses.note({ tag: TAGS[0] as AccountTag, keyId, atMs, address: "192.0.2.7", userAgent: "curl/8.1 (x)", ...more });
  const away = (error: Error | undefined) => {
    awayError = error;
  };
  const latestMs = () => taken.at(-1)?.[1][0]?.atMs;
  return { clock, taken, uses, note, away, broken, warned, latestMs };
}

test("once a minute the used keys of each account are written, with their latest use", async () => {
  const { clock, taken, uses, note, latestMs } = started();
  note("key_1", 1);
  note("key_1", 2, { address: "2001:db8:1:2:3:4:5:6", userAgent: "claude-cli/2.1 (external)" });
  note("key_2", 3, { userAgent: "\u0007evil" });
  note("key_3", 4, { tag: TAGS[1] as AccountTag });
  clock.advance(MINUTE_MS - 1);
  assert.deepEqual(taken, []);
  clock.advance(1);
  await nextTurn();
  assert.deepEqual(taken, [
    [
      TAGS[0],
      [
        { keyId: "key_1", atMs: 2, from: "2001:db8:1:2::/64", by: "claude-cli/2.1" },
        { keyId: "key_2", atMs: 3, from: "192.0.2.7", by: "" },
      ],
    ],
    [TAGS[1], [{ keyId: "key_3", atMs: 4, from: "192.0.2.7", by: "curl/8.1" }]],
  ]);
  note("key_1", 5);
  clock.advance(MINUTE_MS);
  await nextTurn();
  assert.equal(latestMs(), 5, "the use is written again in the next minute");
  await uses.close();
  assert.equal(taken.length, 3, "each use is written once");
});

test("a key in the user agent is not kept, nor a part of it", async () => {
  const { taken, uses, note } = started();
  const key = newKey(TAGS[0] as AccountTag, randomBytes).text;
  const typed = [key, Buffer.from(key).toString("base64"), `${"x".repeat(40)}/${key}`, `curl/8.1 ${key}`];
  for (const [n, userAgent] of typed.entries()) note(`key_${n}`, n, { userAgent });
  await uses.close();
  assert.deepEqual(
    taken[0]?.[1].map(({ by }) => by),
    ["", "", "", "curl/8.1"],
  );
});

for (const error of [new StoreUnreachableError("unavailable", "away"), new StoreError("older", "it lost data")]) {
  test(`uses that the store does not accept (${error.message}) are written the next time`, async () => {
    const { taken, uses, note, away, warned } = started();
    away(error);
    note("key_1", 1);
    await uses.flush();
    away(undefined);
    note("key_2", 2);
    await uses.close();
    assert.deepEqual(
      taken[0]?.[1].map(({ keyId }) => keyId),
      ["key_1", "key_2"],
    );
    assert.deepEqual(warned, []);
  });
}

test("a use that arrives while the store accepts an earlier one is not lost", async () => {
  const { taken, uses, note } = started();
  note("key_1", 1);
  const flushed = uses.flush();
  note("key_1", 2);
  await flushed;
  await uses.close();
  assert.deepEqual(
    taken.map(([, some]) => some.map(({ atMs }) => atMs)),
    [[1], [2]],
  );
});

test("memory is bounded: with too many keys the later ones are not recorded", async () => {
  const { taken, uses, note } = started();
  for (let i = 0; i < 10_100; i++) note(`key_${i}`, i);
  note("key_5", 99_999);
  await uses.close();
  const noted = taken.flatMap(([, some]) => some);
  assert.equal(noted.length, 10_000);
  assert.equal(noted.find(({ keyId }) => keyId === "key_5")?.atMs, 99_999);
});

test("a damaged record of an account, or a defect, delays no other account and rejects nothing", async () => {
  for (const error of [new StoreError("unavailable", "damaged", { outcome: "refused" }), new RangeError("a defect")]) {
    const { taken, uses, note, broken, warned } = started();
    broken.set(TAGS[0] as AccountTag, error);
    note("key_1", 1);
    note("key_3", 2, { tag: TAGS[1] as AccountTag });
    await uses.flush();
    assert.deepEqual(
      taken.map(([tag]) => tag),
      [TAGS[1]],
    );
    assert.equal(warned.length, 1);
    await uses.close();
    assert.equal(warned.length, 1, "the write is not retried for ever");
  }
});
