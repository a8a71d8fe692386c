import assert from "node:assert/strict";
import test from "node:test";
import { readKey } from "../../../src/values/key.ts";
import { startConsole } from "./running-console.ts";

test("a key is shown when it is created and never again, nor logged", async (t) => {
  const { ask, log, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const made = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  assert.equal(made.status, 201);
  assert.equal(made.headers.get("cache-control"), "no-store");
  assert.equal(made.json.group, "big");
  assert.equal(made.json.account, "alice");
  assert.match(made.json.id, /^key_[0-9A-Za-z]{18}$/);
  const form = readKey(made.json.key);
  assert.ok(typeof form === "object", "the key has the written form and a true checksum");
  assert.equal((await store.findAccount("alice"))?.tag, form.tag);

  const listed = await ask("GET", "/admin/v1/accounts/alice/keys");
  assert.deepEqual(Object.keys(listed.json.items[0]).sort(), [
    "account",
    "budgets",
    "caps",
    "created_at",
    "expires_at",
    "group",
    "id",
    "last_used",
    "limits",
    "name",
    "previous_until",
    "status",
  ]);
  assert.equal(listed.json.items[0].id, made.json.id);
  const everything = JSON.stringify(log) + listed.text;
  assert.ok(!everything.includes(made.json.key));
  assert.ok(!everything.includes(form.hash));
});

test("the created key is the one in the store", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const made = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  const form = readKey(made.json.key);
  assert.ok(typeof form === "object");
  const view = await store.readKey(form.tag, form.hash);
  assert.equal(view?.key.id, made.json.id);
  assert.equal(view?.key.group, "big");
});

test("repeating the request creates a second key", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const first = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  const second = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" });
  assert.notEqual(first.json.key, second.json.key);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/keys")).json.items.length, 2);
});

test("a key moves to a configured group, and an unknown group is refused with the nearest name", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const moved = await ask("PUT", `/admin/v1/keys/${id}/group`, { group: "cards" });
  assert.equal(moved.status, 200);
  assert.equal(moved.json.group, "cards");
  const typo = await ask("PUT", `/admin/v1/keys/${id}/group`, { group: "card" });
  assert.equal(typo.status, 400);
  assert.equal(typo.json.error.code, "unknown_group");
  assert.match(typo.json.error.remedy, /Did you mean `cards`\?/);
  const create = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "BIG" });
  assert.equal(create.status, 400);
  assert.match(create.json.error.remedy, /Did you mean `big`\?/);
});

test("a revoked key stays revoked and keeps its group", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const revoked = await ask("POST", `/admin/v1/keys/${id}/revoke`);
  assert.equal(revoked.status, 200);
  assert.equal(revoked.json.status, "revoked");
  assert.equal((await ask("POST", `/admin/v1/keys/${id}/revoke`)).status, 200);
  const moved = await ask("PUT", `/admin/v1/keys/${id}/group`, { group: "cards" });
  assert.equal(moved.status, 409);
  assert.equal(moved.json.error.code, "key_revoked");
  const [key] = (await ask("GET", "/admin/v1/accounts/alice/keys")).json.items;
  assert.equal(key.status, "revoked");
  assert.equal(key.group, "big");
});

test("a key has a name, an expiry and pauses; an invalid name or expiry is refused by name and changes nothing", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const end = "2099-02-28T12:00:00.000Z";
  const asked = { group: "big", name: "Läptop 👩‍💻", expires_at: "2099-02-28T12:00:00Z" };
  const made = await ask("POST", "/admin/v1/accounts/alice/keys", asked);
  assert.deepEqual([made.status, made.json.name, made.json.expires_at], [201, "Läptop 👩‍💻", end]);
  const { id } = made.json;
  for (const [path, body] of [
    ["name", { name: "" }],
    ["name", { name: " x" }],
    ["name", { name: "a\u0007b" }],
    ["name", { name: "\u202egnp.exe" }],
    ["name", { name: "\ud800" }],
    ["name", { name: "\u200b" }],
    ["name", { name: "\u200d\u200d" }],
    ["name", { name: "x".repeat(65) }],
    ["name", {}],
    ["expiry", { expires_at: "2099-02-30T12:00:00Z" }],
    ["expiry", { expires_at: "2020-01-01T00:00:00Z" }],
    ["expiry", { expires_at: "2099-01-01" }],
    ["expiry", { expires_at: 4_000_000_000 }],
  ] as const) {
    const refused = await ask("PUT", `/admin/v1/keys/${id}/${path}`, body);
    assert.deepEqual([refused.status, typeof refused.json.error.remedy], [400, "string"], JSON.stringify(body));
  }
  const late = { ...asked, expires_at: "2020-01-01T00:00:00Z" };
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/keys", late)).status, 400);
  const listed = (await ask("GET", "/admin/v1/accounts/alice/keys")).json.items;
  assert.deepEqual(
    listed.map(({ name, expires_at, status }: Record<string, unknown>) => [name, expires_at, status]),
    [["Läptop 👩‍💻", end, "normal"]],
  );
  assert.equal((await ask("POST", `/admin/v1/keys/${id}/suspend`)).json.status, "suspended");
  assert.equal((await ask("PUT", `/admin/v1/keys/${id}/name`, { name: null })).json.name, null);
  assert.equal((await ask("PUT", `/admin/v1/keys/${id}/expiry`, { expires_at: null })).json.expires_at, null);
  assert.equal((await ask("POST", `/admin/v1/keys/${id}/resume`)).json.status, "normal");
  await ask("POST", `/admin/v1/keys/${id}/revoke`);
  for (const [method, path, body] of [
    ["POST", "resume", undefined],
    ["POST", "suspend", undefined],
    ["PUT", "name", { name: "new" }],
    ["PUT", "expiry", { expires_at: null }],
  ] as const) {
    const refused = await ask(method, `/admin/v1/keys/${id}/${path}`, body);
    assert.deepEqual([refused.status, refused.json.error.code], [409, "key_revoked"], path);
  }
});

test("a rotated key has a new value, shown once, and the old value works in parallel", async (t) => {
  const { ask, log, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const made = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big", name: "Laptop" });
  const { id } = made.json;
  const rotated = await ask("POST", `/admin/v1/keys/${id}/rotate`, { overlap_seconds: 60 });
  assert.deepEqual([rotated.status, rotated.json.id, rotated.json.name], [200, id, "Laptop"]);
  assert.notEqual(rotated.json.key, made.json.key);
  const untilMs = Date.parse(rotated.json.previous_until);
  assert.ok(Math.abs(untilMs - Date.now() - 60_000) < 30_000);
  for (const text of [made.json.key, rotated.json.key]) {
    const form = readKey(text);
    assert.ok(typeof form === "object");
    const view = await store.readKey(form.tag, form.hash);
    assert.deepEqual([view?.key.id, view?.key.expiresAtMs], [id, text === made.json.key ? untilMs : undefined]);
  }
  const listed = await ask("GET", "/admin/v1/accounts/alice/keys");
  assert.equal(listed.json.items.length, 1);
  assert.ok(!(JSON.stringify(log) + listed.text).includes(rotated.json.key));
  for (const overlap of [-1, 1.5, 2_592_001, "60"]) {
    assert.equal((await ask("POST", `/admin/v1/keys/${id}/rotate`, { overlap_seconds: overlap })).status, 400);
  }
  for (let values = 2; values < 8; values++) {
    assert.equal((await ask("POST", `/admin/v1/keys/${id}/rotate`, {})).status, 200);
  }
  const ninth = await ask("POST", `/admin/v1/keys/${id}/rotate`, {});
  assert.deepEqual([ninth.status, ninth.json.error.code], [409, "too_many_values"]);
  await ask("POST", `/admin/v1/keys/${id}/revoke`);
  assert.equal((await ask("POST", `/admin/v1/keys/${id}/rotate`, {})).json.error.code, "key_revoked");
});

test("an unknown key id is 404, and a pasted key is 400 and not repeated", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id, key } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const wrongTail = id.slice(0, -8) + (id.endsWith("0".repeat(8)) ? "1" : "0").repeat(8);
  for (const unknown of ["key_000000000000000000", wrongTail]) {
    assert.equal((await ask("POST", `/admin/v1/keys/${unknown}/revoke`)).status, 404);
    assert.equal((await ask("PUT", `/admin/v1/keys/${unknown}/group`, { group: "cards" })).status, 404);
  }
  const pasted = await ask("POST", `/admin/v1/keys/${key}/revoke`);
  assert.equal(pasted.status, 400);
  assert.ok(!pasted.text.includes(key));
});

test("an overlap of zero ends the old value at once; without an overlap it works for a day", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  for (const [body, lastsMs] of [
    [{ overlap_seconds: 0 }, 0],
    [{}, 86_400_000],
  ] as const) {
    const { status, json } = await ask("POST", `/admin/v1/keys/${id}/rotate`, body);
    assert.equal(status, 200);
    const restMs = Date.parse(json.previous_until) - Date.now();
    assert.ok(restMs <= lastsMs && restMs > lastsMs - 60_000, `${restMs}`);
  }
});
