/** The marks of a store's history: they count the seconds in which a gateway has used the store, however the clock changes. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Ask } from "./contract.ts";

export function epochTimeTests(ask: Ask): void {
  test("a mark is counted up once a second, also after the clock was set back", async () => {
    const { store, nowMs, setTime } = ask();
    const startMs = nowMs();
    const first = await store.countEpoch(0, undefined, "ep_contract_a");
    assert.ok(first);
    const known = { id: first.id, countMin: first.count };
    const counted = async () => (await store.countEpoch(0, known, "ep_contract_b"))?.count;
    const before = (await counted()) ?? 0;
    assert.equal(await counted(), before, "within the second");
    setTime(startMs + 5_000);
    assert.equal(await counted(), before + 1);
    setTime(startMs - 60_000);
    assert.equal(await counted(), before + 2);
    setTime(startMs - 59_500);
    assert.equal(await counted(), before + 2);
    setTime(startMs - 58_900);
    assert.equal(await counted(), before + 3);
    setTime(startMs);
  });

  test("a mark with another id, or one behind the known count, is not changed", async () => {
    const { store, nowMs, setTime } = ask();
    const mark = await store.countEpoch(0, undefined, "ep_contract_c");
    assert.ok(mark);
    setTime(nowMs() + 5_000);
    for (const known of [
      { id: "ep_other", countMin: 0 },
      { id: mark.id, countMin: mark.count + 1 },
    ])
      assert.deepEqual(await store.countEpoch(0, known, "ep_contract_d"), mark);
    assert.equal((await store.countEpoch(0, { id: mark.id, countMin: mark.count }, ""))?.count, mark.count + 1);
  });
}
