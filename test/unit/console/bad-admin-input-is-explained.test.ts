import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test from "node:test";
import { AdminRefusal } from "../../../src/console/refusal.ts";
import { assertConfigured } from "../../../src/console/suggest.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

test("an unknown member is refused by name, not ignored", async (t) => {
  const { ask, store } = await startConsole(t);
  const answer = await ask("POST", "/admin/v1/accounts", { name: "alice", plam: "pro" });
  assert.equal(answer.status, 400);
  assert.equal(answer.json.error.code, "unknown_member");
  assert.match(answer.json.error.message, /`plam`/);
  assert.match(answer.json.error.remedy, /name, plan/);
  assert.equal(await store.findAccount("alice"), undefined);
  const query = await ask("GET", "/admin/v1/accounts?offset=3");
  assert.equal(query.status, 400);
  assert.match(query.json.error.message, /query has no member `offset`/);
  const choice = await ask("GET", "/admin/v1/usage?by=week");
  assert.equal(choice.status, 400);
  assert.match(choice.json.error.message, /`by` must be one of account, group, model, key, day, upstream/);
});

test("a missing member is named", async (t) => {
  const { ask } = await startConsole(t);
  const answer = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00" });
  assert.equal(answer.json.error.code, "missing_member");
  assert.match(answer.json.error.message, /`id`/);
});

test("a malformed name is refused, in the body and in the path", async (t) => {
  const { ask, store } = await startConsole(t);
  for (const name of ["", "-a", ".a", "a b", "a/b", "a".repeat(65), "ä", "a\n", 5, null, ["a"], { a: 1 }, "{a}"]) {
    const answer = await ask("POST", "/admin/v1/accounts", { name });
    assert.equal(answer.status, 400, JSON.stringify(name));
    assert.match(answer.json.error.message, /`name`/);
  }
  for (const path of ["%2Fetc", "-a", "%00", "a%20b", "a".repeat(65), "a".repeat(300), "%E0%A4%A"]) {
    const answer = await ask("GET", `/admin/v1/accounts/${path}`);
    assert.ok(answer.status === 400 || answer.status === 414, `${path}: ${answer.status}`);
    assert.equal(typeof answer.json.error.remedy, "string");
  }
  assert.equal((await store.listAccounts(undefined, 10)).items.length, 0);
  const good = await ask("POST", "/admin/v1/accounts", { name: "Team-7_x.y+z@example.com" });
  assert.equal(good.status, 201);
  assert.equal((await ask("GET", "/admin/v1/accounts/Team-7_x.y+z@example.com")).status, 200);
});

test("page limits must be whole numbers within their range", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  for (const limit of ["0", "201", "-1", "1.5", "1e2", "abc", "", "9999999"]) {
    assert.equal((await ask("GET", `/admin/v1/accounts?limit=${limit}`)).status, 400, limit);
  }
  for (const search of ["limit=0", "limit=1001", "after=-1", "after=x", "limit=1&limit=2"]) {
    assert.equal((await ask("GET", `/admin/v1/accounts/alice/ledger?${search}`)).status, 400, search);
  }
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/ledger?limit=1000&after=0")).status, 200);
});

test("bodies that are not JSON objects, too large or of another type are refused in one form", async (t) => {
  const { ask } = await startConsole(t);
  const cases: [body: string, type: string, status: number][] = [
    ["{", "application/json", 400],
    ["", "application/json", 400],
    ["[]", "application/json", 400],
    ["null", "application/json", 400],
    ['"alice"', "application/json", 400],
    ['{"name":"alice","__proto__":{"plan":"pro"}}', "application/json", 400],
    ['{"name":"alice"}', "text/plain", 415],
    ["name=alice", "application/x-www-form-urlencoded", 415],
    [JSON.stringify({ name: "a".repeat(65 * 1024) }), "application/json", 413],
  ];
  for (const [body, type, status] of cases) {
    const answer = await ask("POST", "/admin/v1/accounts", body, { "content-type": type });
    assert.equal(answer.status, status, `${type} ${body.slice(0, 40)}`);
    assert.deepEqual(Object.keys(answer.json), ["error"]);
    assert.deepEqual(Object.keys(answer.json.error), ["code", "message", "remedy"]);
    assert.ok(!/node_modules|at .*\.(ts|js):/.test(answer.text), "no stack trace is shown");
  }
});

test("a duplicate name is refused, at the top and inside, and so is a body that is not JSON in UTF-8", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const topUp = "/admin/v1/accounts/alice/topups";
  const limits = "/admin/v1/accounts/alice/limits";
  const cases: [method: string, path: string, body: string, code: string, explained: RegExp][] = [
    ["POST", topUp, '{"id":"a","usd":"1.00","usd":"100.00"}', "duplicate_member", /`usd` twice/],
    ["POST", topUp, String.raw`{"id":"a","usd":"1.00","\u0075sd":"100.00"}`, "duplicate_member", /`usd` twice/],
    ["PUT", limits, '{"budgets_usd":{"day":"1.00","day":"9.00"}}', "duplicate_member", /`day` twice/],
    ["PUT", limits, '{"a":{"b":{"c":1,"c":2}}}', "duplicate_member", /`c` twice/],
    ["POST", topUp, '{"id":"a","usd":"1.00",}', "not_json", /invalid at byte 23/],
    ["POST", topUp, "[]", "not_json", /one JSON object/],
    ["POST", topUp, `{"a":${"[".repeat(40)}${"]".repeat(40)}}`, "not_json", /deeper than 32/],
    ["POST", topUp, '{"id":"a","usd":"1.00","__proto__":{}}', "unknown_member", /`__proto__`/],
    ["POST", topUp, '{"id":"a","usd":"1.00","constructor":{"prototype":{}}}', "unknown_member", /`constructor`/],
  ];
  for (const [method, path, body, code, explained] of cases) {
    const { status, json } = await ask(method, path, body, { "content-type": "application/json" });
    assert.deepEqual([status, json.error.code], [400, code], body);
    assert.match(json.error.message, explained);
  }
  const latin = Buffer.from('{"id":"\xe9","usd":"1.00"}', "latin1");
  const { json } = await ask("POST", topUp, latin, { "content-type": "application/json" });
  assert.equal(json.error.code, "not_json");
  const broken = await ask("GET", "/admin/v1/accounts/%zz");
  assert.deepEqual([broken.status, broken.json.error.code], [400, "malformed"]);
  assert.equal((await store.findAccount("alice"))?.balance, 0n);
});

test("an encoded body and oversized headers are refused with the reason", async (t) => {
  const { ask, url } = await startConsole(t);
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const encoded = await ask("POST", "/admin/v1/accounts", { name: "alice" }, headers);
  assert.deepEqual([encoded.status, encoded.json.error.code], [415, "not_json"]);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).status, 404);
  const client = new RawSocket({ port: Number(new URL(url).port) });
  client.send(`GET /healthz HTTP/1.1\r\nhost: x\r\nx-large: ${"a".repeat(20_000)}\r\n\r\n`);
  const [large] = await client.responsesUntilClosed();
  assert.deepEqual([large?.status, JSON.parse(large?.body ?? "").error.code], [431, "headers_too_large"]);
});

test("a note that is not text is refused", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const body = String.raw`{"usd":"1","id":"a","note":"a\ud800b"}`;
  const { status, json } = await ask("POST", "/admin/v1/accounts/alice/adjustments", body, {
    "content-type": "application/json",
  });
  assert.deepEqual([status, json.error.code], [400, "malformed"]);
});

test("an unknown path or method is 404", async (t) => {
  const { ask } = await startConsole(t);
  for (const [method, path] of [
    ["GET", "/"],
    ["GET", "/admin/v1/nothing"],
    ["DELETE", "/admin/v1/accounts/alice"],
    ["POST", "/v1/messages"],
  ] as const) {
    const answer = await ask(method, path);
    assert.equal(answer.status, 404, `${method} ${path}`);
    assert.equal(typeof answer.json.error.message, "string");
  }
});

test("bytes that are not HTTP get 400 and the connection closed", async (t) => {
  const { url } = await startConsole(t);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.end("hello\r\n\r\n");
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "close");
  assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.equal(JSON.parse(text.split("\r\n\r\n")[1] as string).error.code, "framing");
});

test("a name that the configuration lacks is refused with the configured ones, the first twenty, or with where to add one", () => {
  const remedyFor = (known: readonly string[]) => {
    try {
      assertConfigured("card", "weekly", known);
    } catch (error) {
      if (error instanceof AdminRefusal) return error.remedy;
      throw error;
    }
    return undefined;
  };
  assert.equal(remedyFor([]), "The configuration has no card; add one under `cards:`.");
  const many = Array.from({ length: 21 }, (_, index) => `card-${index}`);
  const listed = "The configuration has these cards (exact, case-sensitive): ";
  assert.equal(remedyFor(many.slice(1)), `${listed}${many.slice(1).join(", ")}.`);
  assert.equal(remedyFor(many), `${listed}${many.slice(0, 20).join(", ")}, ....`);
});
