/** The list of waiting notices says how many were dropped before a receiver took them: none, or exactly so many. */
import assert from "node:assert/strict";
import test from "node:test";
import { GATEWAY_OUTBOX, NOTICES_MAX, type Outbox } from "../../../src/store/notices.ts";
import { makeAccount } from "../store/asks.ts";
import { startConsole } from "./running-console.ts";
import { openTestStore } from "./test-store.ts";

const NOBODY_DELIVERS = {
  status: () => ({ receiver: "http://127.0.0.1:9/", isLeader: true, stopped: undefined }),
  laneOf: () => undefined,
  test: async () => undefined,
  retry: async () => true,
};

async function listOf(t: test.TestContext) {
  const store = await openTestStore(t);
  const { ask } = await startConsole(t, { store, notices: NOBODY_DELIVERS });
  const add = async (outbox: Outbox, count: number) => {
    for (let n = 1; n <= count; n++) await store.addNotice(outbox, { kind: "balance_low", ref: `r${n}`, data: {} });
  };
  const rows = async (search = ""): Promise<[account: string | null, waiting: number, dropped: number][]> => {
    const { json } = await ask("GET", `/admin/v1/notices${search}`);
    return json.items.map((row: { account: string | null; waiting: number; dropped: number }) => [
      row.account,
      row.waiting,
      row.dropped,
    ]);
  };
  return { store, add, rows };
}

test("a full queue drops its oldest, and says how many", async (t) => {
  const { store, add, rows } = await listOf(t);
  const tag = await makeAccount(store, "Full");
  await add(tag, 3);
  const [[name] = [null]] = await rows();
  assert.deepEqual(await rows(), [[name, 3, 0]]);
  await add(tag, NOTICES_MAX);
  assert.deepEqual(await rows(), [[name, NOTICES_MAX, 3]]);
  await store.takeNotice(tag, 4);
  assert.deepEqual(await rows(), [[name, NOTICES_MAX - 1, 0]]);
});

test("notices of no account are on the first page alone", async (t) => {
  const { store, add, rows } = await listOf(t);
  await add(GATEWAY_OUTBOX, 1);
  await add(await makeAccount(store, "Aone"), 1);
  await add(await makeAccount(store, "Btwo"), 1);
  const first = await rows("?limit=1");
  assert.deepEqual([first.length, first[0]], [2, [null, 1, 0]]);
  const second = await rows(`?limit=1&cursor=${first[1]?.[0]}`);
  assert.deepEqual([second.length, second[0]?.[0] === null], [1, false]);
});
