/**
 * `tollgate ledger verify` scans the settled marks of the store, which no line refers to, in steps that delay no one
 * else, and reports each request that is settled without a line.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { type Store, StoreError } from "../../../../src/store/contract.ts";
import { openStore } from "../../../../src/store/open.ts";
import { overlay } from "../../../../src/store/overlay.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { type Clock, systemClock } from "../../../../src/values/time.ts";
import { startRedis } from "../../../rig/redis.ts";
import { run } from "../../../unit/cli/captured-run.ts";
import { ADMIN_TOKEN, startConsole } from "../../../unit/console/running-console.ts";
import { openTestStore } from "../../../unit/console/test-store.ts";
import { makeAccount, ridOf } from "../../../unit/store/asks.ts";
import { PATIENT } from "../../../unit/store/benches.ts";

/** A clock that moves each time it is read. */
function busyClock(msPerLook: number): Clock {
  let nowMs = 0;
  return { ...systemClock, monotonicMs: () => (nowMs += msPerLook) };
}

interface Scene {
  ask: Awaited<ReturnType<typeof startConsole>>["ask"];
  tollgate(...argv: string[]): ReturnType<typeof run>;
  readonly waits: number[];
  readonly seen: string[];
}

/** Two accounts, the first with three marks that have no line, among a few thousand other keys. */
async function scene(t: TestContext, wrap: (store: Store) => Store = (store) => store, clock = busyClock(150)) {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) }, PATIENT);
  t.after(() => store.close());
  const tag = await makeAccount(store, "marked", { funds: 100n });
  await makeAccount(store, "whole", { funds: 100n });
  for (const number of [1, 2, 3]) await redis.command("SET", `{a:${tag}}:d:${ridOf(number)}`, '["30","",""]');
  assert.match(await redis.command("DEBUG", "POPULATE", "20000", "other"), /^\+OK/);
  const { ask, url } = await startConsole(t, { store: wrap(store), clock });
  const [waits, seen]: [number[], string[]] = [[], []];
  const env = { TOLLGATE_ADMIN_URL: url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const stderr = { isTTY: true, columns: 200, write: (text: string) => seen.push(text) };
  const wait = async (ms: number) => void waits.push(ms);
  const here: Scene = { ask, waits, seen, tollgate: (...argv) => run(argv, { env, stderr, wait }) };
  return here;
}

const COMPLAINTS = [1, 2, 3].map(
  (number) => `Account marked: mark_without_line: The request ${ridOf(number)} counts as settled, but has no line.`,
);

test("a request that is settled without a line fails the verification of its account and of all accounts", async (t) => {
  const { tollgate, seen } = await scene(t);
  for (const argv of [[], ["--account", "marked"]]) {
    seen.length = 0;
    const ran = await tollgate("ledger", "verify", ...argv);
    assert.equal(ran.status, 1);
    assert.match(ran.out, /^marked +unbalanced +1 .* 3$/m);
    for (const complaint of COMPLAINTS) assert.ok(seen.join("").includes(complaint), complaint);
    assert.match(seen.join(""), /Settled marks: step 1/);
  }
  const whole = await tollgate("ledger", "verify", "--account", "whole");
  assert.equal(whole.status, 0, seen.join(""));
  const json = JSON.parse((await tollgate("--json", "ledger", "verify")).out);
  const [item] = json.items.filter(({ account }: { account: string }) => account === "marked");
  assert.deepEqual([json.accounts, json.unbalanced, item.finding_count], [2, 1, 3]);
});

test("an answer ends in the middle of the keys, the next one continues, and a forgotten one restarts its part", async (t) => {
  const { ask } = await scene(t);
  const about: string[] = [];
  let [cursor, answers] = ["", 0];
  do {
    const { status, json } = await ask("GET", `/admin/v1/ledger/marks${cursor}`);
    assert.deepEqual([status, json.restarted], [200, false]);
    about.push(...json.items.map((item: { about: string }) => item.about));
    cursor = json.next === null ? "" : `?cursor=${json.next}`;
    answers += 1;
  } while (cursor !== "");
  assert.deepEqual(about.sort(), [1, 2, 3].map(ridOf));
  assert.ok(answers > 3, `${answers}`);
  const place = (...texts: unknown[]) => Buffer.from(JSON.stringify(texts)).toString("base64url");
  const unknown = await ask("GET", `/admin/v1/ledger/marks?cursor=${place("", "0".repeat(24))}`);
  assert.deepEqual([unknown.status, unknown.json.restarted], [200, true]);
  const other = await ask("GET", `/admin/v1/ledger/marks?account=whole&cursor=${unknown.json.next}`);
  assert.deepEqual([other.status, other.json.restarted], [200, true], "a cursor of another account is not continued");
  const [, kept] = JSON.parse(Buffer.from(other.json.next, "base64url").toString());
  const elsewhere = await ask("GET", `/admin/v1/ledger/marks?account=whole&cursor=${place("0:1", kept)}`);
  assert.deepEqual(
    [elsewhere.status, elsewhere.json.restarted],
    [200, true],
    "a cursor with another start is not continued",
  );
  for (const wrong of ["x", place("a", ""), place("0:0"), place("0:x", ""), place("-1:0", ""), place(0, "")]) {
    const refused = await ask("GET", `/admin/v1/ledger/marks?cursor=${wrong}`);
    assert.deepEqual([refused.status, refused.json.error?.code], [400, "malformed"], wrong);
  }
  const nobody = await ask("GET", "/admin/v1/ledger/marks?account=nobody");
  assert.deepEqual([nobody.status, nobody.json.error?.code], [404, "unknown_account"]);
});

test("if the store becomes unreachable in the meantime, the command waits, and no part is scanned twice", async (t) => {
  const places: (string | undefined)[] = [];
  let calls = 0;
  const { tollgate, waits, seen } = await scene(t, (store) =>
    overlay(store, {
      async pageMarks(tag, cursor) {
        calls += 1;
        if (calls > 9 && calls < 13) throw new StoreError("unavailable", "away");
        places.push(cursor);
        return store.pageMarks(tag, cursor);
      },
    }),
  );
  const ran = await tollgate("ledger", "verify");
  assert.equal(ran.status, 1);
  assert.deepEqual(waits, [1_000, 1_000, 1_000]);
  for (const complaint of COMPLAINTS) assert.ok(seen.join("").includes(complaint), complaint);
  assert.equal(new Set(places).size, places.length);
});

/** Records when each step of a store that answers at once began: in which turn of the event loop, and at what time. */
function watched(store: Store, steps: { turn: number; atMs: number }[]): { store: Store; stop(): void } {
  let [turn, goes] = [0, true];
  const next = () => {
    turn += 1;
    if (goes) setImmediate(next);
  };
  next();
  const note = () => void steps.push({ turn, atMs: performance.now() });
  const watchedStore = overlay(store, {
    async readFigures(...ask) {
      note();
      return store.readFigures(...ask);
    },
    async readLedger(...ask) {
      note();
      return store.readLedger(...ask);
    },
    async pageMarks(_, cursor = "0:0") {
      note();
      const at = Number(cursor.slice(2)) + 1;
      return { items: [], next: at < 12 ? `0:${at}` : undefined };
    },
  });
  const stop = () => {
    goes = false;
  };
  return { store: watchedStore, stop };
}

for (const path of ["verification", "marks"]) {
  test(`between two steps of ${path} other work gets a turn, for as long as the step took`, async (t) => {
    const store = await openTestStore(t);
    const tag = await makeAccount(store, "large", { funds: 100n });
    for (let at = 0; at < 300; at++) await store.credit(tag, { id: `p${at}`, amount: 1n, kind: "topup", note: "" });
    for (const [msPerLook, pauseMs] of [
      [0.01, 0],
      [5, 5],
    ] as const) {
      const steps: { turn: number; atMs: number }[] = [];
      const seen = watched(store, steps);
      t.after(seen.stop);
      const { ask } = await startConsole(t, { store: seen.store, clock: busyClock(msPerLook) });
      assert.equal((await ask("GET", `/admin/v1/ledger/${path}`)).status, 200);
      seen.stop();
      assert.ok(steps.length > 8, `${steps.length} steps`);
      for (const [at, step] of steps.entries()) {
        const before = steps[at - 1];
        if (!before) continue;
        assert.ok(step.turn > before.turn, `step ${at} ran in the same turn as the one before`);
        // A timer of Node.js may fire a millisecond early.
        assert.ok(step.atMs - before.atMs >= pauseMs - 1, `step ${at} came after ${step.atMs - before.atMs} ms`);
      }
    }
  });
}
