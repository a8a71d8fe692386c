import assert from "node:assert/strict";
import test from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { startConsole } from "./running-console.ts";
import { openTestStore } from "./test-store.ts";

/** The real store, in which one operation fails with `error` for the next `times` calls. */
function failing(store: Store, operation: keyof Store, error: Error, times: number): Store {
  let left = times;
  return new Proxy(store, {
    get(target, name) {
      const method = target[name as keyof Store] as (...args: never[]) => unknown;
      if (name !== operation) return method.bind(target);
      return (...args: never[]) => (left-- > 0 ? Promise.reject(error) : method.apply(target, args));
    },
  });
}

const SECRET_ADDRESS = "redis://user:hunter2@10.0.0.5:6379";
const away = new StoreError("unavailable", `connect ECONNREFUSED ${SECRET_ADDRESS}`);

test("an unreachable store is 503 with retry-after, and the answer says whether to repeat the request", async (t) => {
  const store = failing(await openTestStore(t), "credit", away, 1);
  const { ask, log } = await startConsole(t, { store });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const payment = { usd: "10.00", id: "pay_1" };
  const answer = await ask("POST", "/admin/v1/accounts/alice/topups", payment);
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("retry-after"), "1");
  assert.equal(answer.json.error.code, "store_unavailable");
  assert.match(answer.json.error.remedy, /same id/);
  assert.ok(!answer.text.includes("hunter2"));
  const line = log.at(-1);
  assert.equal(line?.outcome, "unknown");
  assert.equal(line?.cause, "store_unavailable");
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/topups", payment)).status, 201);
});

test("if the reason why the store must not be used is known, the answer gives it, and says what may be repeated", async (t) => {
  const store = failing(await openTestStore(t), "credit", away, 1);
  const storeUnfit = () => "the store is not fit for use: the user of Redis may not ZREM";
  const { ask } = await startConsole(t, { store, storeUnfit });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const answer = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  assert.deepEqual([answer.status, answer.json.error.code], [503, "store_unavailable"]);
  assert.equal(
    answer.json.error.message,
    `The store gave no valid answer (${storeUnfit()}); it is unknown whether a change was made.`,
  );
  assert.match(answer.json.error.remedy, /same id/);
});

test("a store that lost data is 503 with a code of its own", async (t) => {
  const store = failing(await openTestStore(t), "listAccounts", new StoreError("older", "run id changed"), 1);
  const { ask } = await startConsole(t, { store });
  const answer = await ask("GET", "/admin/v1/accounts");
  assert.equal(answer.status, 503);
  assert.equal(answer.json.error.code, "store_older");
});

test("a key that could not be stored at first is stored by the retry as the same key", async (t) => {
  const store = failing(await openTestStore(t), "createKey", away, 1);
  const { ask } = await startConsole(t, { store });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).status, 201);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/keys")).json.items.length, 1);
});

test("a key whose creation is uncertain is 503, and the answer says to check and revoke", async (t) => {
  const store = failing(await openTestStore(t), "createKey", away, 2);
  const { ask } = await startConsole(t, { store });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const answer = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  assert.equal(answer.status, 503);
  assert.match(answer.json.error.remedy, /revoke/);
});

test("a defect is 500 without its message, which only the log has", async (t) => {
  const defect = new Error(`cannot read x of undefined at ${SECRET_ADDRESS}`);
  const store = failing(await openTestStore(t), "findAccount", defect, 1);
  const { ask, log } = await startConsole(t, { store });
  const answer = await ask("GET", "/admin/v1/accounts/alice");
  assert.equal(answer.status, 500);
  assert.equal(answer.json.error.code, "internal");
  assert.ok(!answer.text.includes("undefined") && !answer.text.includes("hunter2"));
  assert.equal(log[0]?.event, "console_defect");
  assert.match(String(log[0]?.stack), /cannot read x of undefined/);
  assert.ok(!JSON.stringify(log).includes("hunter2"), "row 79");
});
