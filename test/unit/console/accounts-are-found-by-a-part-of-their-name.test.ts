// A search by a part of the name in any case, page by page, each account once, and each answer within a bounded time.
import assert from "node:assert/strict";
import test from "node:test";
import { systemClock } from "../../../src/values/time.ts";
import { startConsole } from "./running-console.ts";

test("every account whose name contains the text is on one of the pages", async (t) => {
  const { ask } = await startConsole(t);
  const names = Array.from({ length: 450 }, (_, i) => `${i % 7 === 0 ? "Team" : "user"}-${String(i).padStart(3, "0")}`);
  for (const name of names) await ask("POST", "/admin/v1/accounts", { name });
  const found: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const after: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const { status, json } = await ask("GET", `/admin/v1/accounts?search=eAM-&limit=10${after}`);
    assert.equal(status, 200);
    assert.ok(json.items.length <= 10);
    found.push(...json.items.map(({ name }: { name: string }) => name));
    cursor = json.next;
  }
  assert.deepEqual(found, names.filter((name) => name.startsWith("Team")).sort());
  assert.deepEqual((await ask("GET", "/admin/v1/accounts?search=nobody")).json, { items: [], next: null });
  assert.equal((await ask("GET", "/admin/v1/accounts?search=")).status, 400);
});

test("a long search ends with the accounts found so far, and the next page continues it", async (t) => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (nowMs += 600) };
  const { ask } = await startConsole(t, { clock });
  for (let i = 0; i < 450; i++) await ask("POST", "/admin/v1/accounts", { name: `a${String(i).padStart(3, "0")}` });
  const first = await ask("GET", "/admin/v1/accounts?search=a449");
  assert.deepEqual([first.json.items, typeof first.json.next], [[], "string"]);
  const rest = await ask("GET", `/admin/v1/accounts?search=a449&cursor=${first.json.next}`);
  assert.deepEqual([rest.json.items.length, rest.json.next], [1, null]);
});

test("an account is found by its own id and by the id of one of its keys", async (t) => {
  const { ask } = await startConsole(t);
  const { id } = (await ask("POST", "/admin/v1/accounts", { name: "alice" })).json;
  for (const name of ["bob", "carol"]) await ask("POST", "/admin/v1/accounts", { name });
  const key = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const found = async (search: string) => {
    const { json } = await ask("GET", `/admin/v1/accounts?search=${search}`);
    return [json.items.map(({ name }: { name: string }) => name), json.next];
  };
  assert.deepEqual(await found(id), [["alice"], null]);
  assert.deepEqual(await found(key.id), [["alice"], null]);
  assert.deepEqual(await found("acct_0000000000"), [[], null]);
  assert.deepEqual(await found(`${id}&status=closed`), [[], null]);
  await ask("POST", "/admin/v1/accounts", { name: "acct_0000000000" });
  assert.deepEqual(await found("acct_0000000000"), [["acct_0000000000"], null]);
});
