/** What a command says in words has the figures, days and states of the answer, each in its place. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type Ran, run } from "./captured-run.ts";

/** Runs a command whose gateway gives this answer to each request. */
function answered(body: object, ...argv: string[]): Promise<Ran> {
  return run(argv, {
    env: { TOLLGATE_ADMIN_URL: "http://gateway.invalid", TOLLGATE_ADMIN_TOKEN: "token" },
    fetch: async () => Response.json(body),
  });
}

test("a card that was given has its beginning before its end", async () => {
  const entitlement = {
    group: "cards",
    quota_usd: "5.00",
    from: "2026-11-01T00:00:00.000Z",
    until: "2026-11-02T00:00:00.000Z",
  };
  const { out } = await answered({ account: "alice", card: "day", entitlement }, "card", "gift", "alice", "day");
  const words =
    "a day card worth 5.00 USD for the group cards, from 2026-11-01T00:00:00.000Z until 2026-11-02T00:00:00.000Z";
  assert.equal(out, `The account alice was given ${words}.\n`);
});

test("the sums of usage say from which day to which", async () => {
  const usage = { items: [], next: null, by: "account", since: "2026-11-01", until: "2026-11-30" };
  assert.match((await answered(usage, "usage")).out, /^From 2026-11-01 to 2026-11-30, UTC\n/);
});

test("what a closed account has left is named with the command that pays it out", async () => {
  const closed = { name: "bob", status: "closed", held_usd: "0.00" };
  const { out } = await answered({ ...closed, balance_usd: "1.50" }, "account", "close", "bob", "--yes");
  assert.match(out, /^The account bob is permanently closed.* Its balance is 1\.50 USD,/);
  assert.match(out, /\nTo pay out what it has left, .*tollgate account adjust bob --usd -AMOUNT --id ID --note WHY\n$/);
  const empty = await answered({ ...closed, balance_usd: "0.00" }, "account", "close", "bob", "--yes");
  assert.doesNotMatch(empty.out, /pay out/);
});

test("a voided batch says how many codes are void now, newly, and redeemed before", async () => {
  const batch = { id: "batch_1", label: "Fair", made: 10, void: 7, voided_now: 4, redeemed: 3, repeated: false };
  const { out } = await answered(batch, "code", "batch", "void", "batch_1");
  const void7 =
    "7 of 10 codes of the batch batch_1 (Fair) are void, 4 of them newly voided; 3 were already redeemed.\n";
  assert.equal(out, void7);
});

test("a model that is rate-limited at an upstream is named with the seconds that are left", async () => {
  const upstream = {
    name: "east",
    health: "healthy",
    in_flight: 1,
    max_concurrency: 9,
    queued: 2,
    outcomes: { ok: 3 },
  };
  const limited_models = [{ model: "big-1", rest_seconds: 17 }];
  const { out } = await answered({ items: [{ ...upstream, limited_models }] }, "upstreams");
  assert.match(out, /\neast: big-1 is not used for another 17 s \(429\)\.\n/);
  assert.match(out, /^east +healthy .* 1\/9 +2 +3 /m);
});

test("a write whose outcome is unknown is not called done", async () => {
  const line = { seq: 1, at: "2026-11-01T00:00:00.000Z", who: "token:1", from: "127.0.0.1", request_id: "req_1" };
  const closed = { ...line, what: "account.close", target: "alice", facts: {}, outcome: "unknown" };
  const { out } = await answered({ items: [closed], next: null, run: "0123456789ab", newest: 1 }, "audit");
  assert.match(out, /Perhaps done: the store did not answer: close the account alice/);
});

test("a revoked key is said to be revoked, not to work", async () => {
  const { out } = await answered({ id: "key_1" }, "key", "revoke", "key_1");
  assert.equal(out, "The key key_1 is permanently revoked, effective from its next request.\n");
});

test("a budget says what is spent, held and left, and when it resets", async () => {
  const budget = { span: "day", limit_usd: "5.00", spent_usd: "1.00", held_usd: "0.50", rest_usd: "3.50" };
  const key = { id: "key_1", account: "alice", limits: { budgets_usd: { day: "5.00" } }, caps: { budgets_usd: {} } };
  const answer = { ...key, budgets: [{ ...budget, resets_at: "2026-11-02T00:00:00.000Z" }] };
  const { out } = await answered(answer, "key", "limit", "key_1");
  assert.match(out, /^day +5\.00 +1\.00 +0\.50 +3\.50 +2026-11-02T00:00:00\.000Z$/m);
});

test("codes on a page to print say their last day and how long the card lasts", async () => {
  const items = [{ id: "code_1", code: "AAAA-BBBB" }];
  const facts = { card: "day", label: null, batch_id: null, lasts_seconds: 86_400, quota_usd: "5.00" };
  const made = { ...facts, redeem_by: "2027-01-31", items };
  const { out } = await answered(made, "code", "create", "--card", "day", "--count", "1", "--format", "html");
  assert.match(out, /<p>day, 1 day, worth 5\.00 USD, redeem by 2027-01-31 \(UTC\)<\/p>/);
});

test("a difference to the vendor's bill is said in percent of the larger figure", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-percent-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const from = join(dir, "export.csv");
  writeFileSync(from, "date,model,input_tokens,output_tokens\n2026-11-01,m,1000,100\n");
  const counts = { input_tokens: 750, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 100 };
  const ours = { items: [{ day: "2026-11-01", model: "m", ...counts, cost_usd: "1.00" }], next: null };
  const ran = await answered(ours, "reconcile", "--from", from, "--upstream", "east");
  assert.equal(ran.status, 1);
  assert.match(ran.err, /Different by more than 2\.00 %:\n2026-11-01, m: input by 25\.00 %\./);
});
