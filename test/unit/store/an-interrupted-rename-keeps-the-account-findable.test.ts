// docs/failure-model.md row B13: an account and its name are in different slots of Redis, and a rename runs several scripts.
// Each is stopped before each of its commands: the account is found by exactly one of its two names, and the next operation
// leaves no trace of the stop.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { Secret } from "../../../src/values/secret.ts";
import { makeAccount, tagOf } from "./asks.ts";
import { PATIENT } from "./benches.ts";
import { openTheatre, START_MS, TAG, type Theatre } from "./stops.ts";

const OLD = "Stopped";
const NEW = "Renamed";
const OTHER = tagOf("Other");

let theatre: Theatre;
before(async () => {
  const open = (url: string) => openStore({ kind: "redis", url: new Secret(url) }, PATIENT);
  theatre = await openTheatre(Object.values(loadScripts()), open);
});
after(() => theatre.close());

/** Runs a rename that is stopped at each command in turn. @returns the number of stops. */
async function atEachStop(then: (store: Store, at: string) => Promise<void>): Promise<number> {
  let stops = 0;
  for (const [script, runs] of [
    ["account-rename", 3],
    ["name-claim", 1],
    ["name-move", 1],
  ] as const) {
    for (let run = 0; run < runs; run++) {
      for (let command = 1; ; command++) {
        await theatre.clear();
        await makeAccount(theatre.direct.store, OLD);
        theatre.stopper.stopAt(script, command, run);
        const answer = await theatre.proxied.store.renameAccount(TAG, NEW).catch(() => undefined);
        const at = theatre.stopper.goOn();
        if (at === undefined) break;
        assert.equal(answer, undefined);
        stops += 1;
        await then(theatre.direct.store, `${script} ${run} ${at}`);
      }
    }
  }
  return stops;
}

/** The names by which the account is found, and the names under which it is listed. */
async function seen(store: Store): Promise<{ names: string[]; listed: string[] }> {
  const found = await Promise.all([OLD, NEW].map((name) => store.findAccount(name)));
  const names = found.filter((account) => account?.tag === TAG).map((account) => account?.name ?? "");
  const { items } = await store.listAccountNames(undefined, 10);
  return { names, listed: items.filter(({ tag }) => tag === TAG).map(({ name }) => name) };
}

const RENAMED = { names: [NEW], listed: [NEW] };

test("after a stop the account is found by one of both names and listed, and the same call again finishes the rename", async () => {
  const ways = new Set<string>();
  const stops = await atEachStop(async (store, at) => {
    const { names, listed } = await seen(store);
    assert.equal(names.length, 1, at);
    ways.add(names.join());
    assert.ok(listed.length > 0, at);
    assert.deepEqual(names, [(await store.getAccount(TAG))?.name], at);
    const again = await store.renameAccount(TAG, NEW);
    assert.ok(typeof again === "object" && again.name === NEW, at);
    assert.deepEqual(await seen(store), RENAMED, at);
    assert.equal(await store.findAccountName(OLD), undefined, at);
  });
  assert.ok(stops > 10, String(stops));
  assert.deepEqual([...ways].sort(), [NEW, OLD], "there are stops before and after the rename takes effect");
});

test("reading the account finishes a rename that took effect, and another rename replaces one that did not", async () => {
  await atEachStop(async (store, at) => {
    const { name } = (await store.getAccount(TAG)) ?? {};
    if (name === NEW) assert.deepEqual(await seen(store), RENAMED, at);
    const third = await store.renameAccount(TAG, "Third");
    assert.ok(typeof third === "object" && third.name === "Third", at);
    for (const free of [OLD, NEW]) assert.equal(await store.findAccountName(free), undefined, `${at}: ${free}`);
    const back = await store.renameAccount(TAG, OLD);
    assert.ok(typeof back === "object" && back.name === OLD, at);
    assert.deepEqual(await seen(store), { names: [OLD], listed: [OLD] }, at);
  });
});

test("after a stop another account can take the free name only, and no name leads to two accounts", async () => {
  await atEachStop(async (store, at) => {
    const { name } = (await store.getAccount(TAG)) ?? {};
    const free = name === NEW ? OLD : NEW;
    assert.equal(await store.createAccount({ tag: OTHER, name: name ?? "", plan: "free" }), "exists", at);
    const made = await store.createAccount({ tag: OTHER, name: free, plan: "free" });
    assert.ok(made !== "exists", at);
    assert.equal((await store.findAccount(free))?.tag, OTHER, at);
    assert.equal((await store.findAccount(name ?? ""))?.tag, TAG, at);
    assert.equal(await store.renameAccount(TAG, free, START_MS + 60_000_000), "taken", at);
    const { items } = await store.listAccountNames(undefined, 10);
    assert.deepEqual(items.map(({ tag }) => tag).sort(), [OTHER, TAG].sort(), at);
  });
});
