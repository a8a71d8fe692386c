/**
 * A change made outside the gateway, in the embedded store's file or in Redis, is found. It is reported by account,
 * line and name of the check, as text and as JSON, with exit status 1.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after, before, describe } from "node:test";
import { codeKey } from "../../../../src/store/redis/keys.ts";
import { hashKey } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { newRequestId } from "../../../../src/values/request-id.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { admitAsk, admitted, settleAsk, terms } from "../../../unit/store/asks.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { sell } from "../cards/rig.ts";
import { served, tollgate } from "./rig.ts";

/** An account with a top-up (line 1), a card (2), two requests (3, 4) and an adjustment (5). */
async function usedAccount(of: GatewayHere): Promise<TestAccount> {
  const account = await of.account();
  const card = { id: "code_1", card: "day", plan: "pro", group: "cards", lastsMs: 86_400_000, afterPrevious: false };
  await of.store.grant(account.tag, { ...card, quota: nanoUsd(5_000n), reference: "code_1" });
  await served(of, account);
  await served(of, account, "messages");
  await of.store.credit(account.tag, { id: "adj", amount: -1_000n, kind: "adjust", note: "a note" });
  return account;
}

/** Verifies one account and all of them: both must report exactly these checks. */
async function assertFound(of: GatewayHere, account: TestAccount, checks: readonly string[]): Promise<string> {
  const ran = await tollgate(of, "ledger", "verify", "--account", account.name);
  assert.equal(ran.status, 1, ran.out);
  assert.match(ran.out, /out of balance: 1\.\n$/);
  const complaints = ran.err.trimEnd().split("\n");
  const named = complaints.map((line) => {
    const [, name, check] = /^Account ([^\s,]+)(?:, line \d+)?: ([a-z_]+): [A-Z\d].*\.$/.exec(line) ?? [];
    assert.equal(name, account.name, line);
    return check ?? "";
  });
  assert.deepEqual([...new Set(named)].sort(), [...checks].sort(), ran.err);
  const all = await tollgate(of, "--json", "ledger", "verify");
  assert.equal(all.status, 1);
  const { items } = JSON.parse(all.out) as {
    items: { account: string; outcome: string; findings: { check: string }[]; finding_count: number }[];
  };
  const item = items.find((one) => one.account === account.name);
  assert.equal(item?.outcome, "unbalanced");
  assert.deepEqual([...new Set(item?.findings.map(({ check }) => check))].sort(), [...checks].sort());
  assert.equal(item?.finding_count, complaints.length);
  return ran.err;
}

async function assertSound(of: GatewayHere, account: TestAccount): Promise<void> {
  const sound = await tollgate(of, "ledger", "verify", "--account", account.name);
  assert.deepEqual([sound.status, sound.err], [0, ""]);
}

describe("in the embedded store", () => {
  let here: GatewayHere;
  before(async () => {
    here = await startGatewayHere();
  });
  after(() => here.close());

  /** Runs SQL on the file of the running embedded store; `?` is the account's tag. */
  function doctor(sql: string, tag: string): void {
    assert.ok(here.settings.store.kind === "embedded");
    const db = new DatabaseSync(join(here.settings.store.dir, "tollgate.db"));
    try {
      assert.equal(db.prepare(sql).run(tag).changes, 1);
    } finally {
      db.close();
    }
  }

  const DOCTORED: readonly { name: string; sql: string; checks: readonly string[]; words?: RegExp }[] = [
    {
      name: "a balance",
      sql: "UPDATE accounts SET bal = bal + 1 WHERE tag = ?",
      checks: ["balance"],
      words: /^Account \S+: balance: The balance is \S+ USD; the lines sum up to \S+\.$/m,
    },
    {
      name: "what was spent",
      sql: "UPDATE accounts SET spent = 0 WHERE tag = ?",
      checks: ["spent"],
      words: /: The sum spent is 0\.00 USD; the lines sum up to 0\.00\d+\.$/m,
    },
    {
      name: "what was topped up",
      sql: "UPDATE accounts SET topped = topped + 1000000000 WHERE tag = ?",
      checks: ["topped_up"],
      words: /: The sum topped up is 10\.999999 USD; the lines sum up to 9\.999999\.$/m,
    },
    {
      name: "the number of lines",
      sql: "UPDATE accounts SET seq = seq + 1 WHERE tag = ?",
      checks: ["line_count"],
      words: /: 6 lines were written, but the last existing line is line 5\.$/m,
    },
    {
      name: "the amount that a card has paid",
      sql: "UPDATE entitlements SET spent = 7 WHERE tag = ?",
      checks: ["card_spent"],
      words: /: The sum spent on the card code_1 is 0\.000000007 USD; the lines sum up to 0\.00\.$/m,
    },
    {
      name: "the quota of a card",
      sql: "UPDATE entitlements SET quota = 5001 WHERE tag = ?",
      checks: ["card_quota"],
    },
    {
      name: "a hidden card",
      sql: "UPDATE entitlements SET listed = 0 WHERE tag = ?",
      checks: ["card_unlisted"],
    },
    { name: "a missing card", sql: "DELETE FROM entitlements WHERE tag = ?", checks: ["card_missing"] },
    {
      name: "a card that was never granted",
      sql: "INSERT INTO entitlements (tag, id, plan, grp, starts, ends) VALUES (?, 'x', 'pro', 'cards', 0, 1)",
      checks: ["card_without_line"],
    },
    {
      name: "the sum of a day",
      sql: "UPDATE days SET amount = amount + 5 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_sums"],
      words:
        /: The sum of all days in the group money, model chat-1, key key_\w+ is \S+ USD; the lines sum up to \S+\.$/m,
    },
    {
      name: "the model of a daily sum",
      sql: "UPDATE days SET field = replace(field, 'chat-1', 'chat-2') WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_sums", "day_counts", "day_costs"],
    },
    {
      name: "a sum of another day",
      sql: "INSERT INTO days (tag, day, field, amount) VALUES (?, date('now', '-2 days'), 'money|chat-1|key_x', 1)",
      checks: ["day_sums"],
    },
    {
      name: "the requests of a day",
      sql: "UPDATE days SET requests = 2 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_counts"],
      words: /: Over all days, the group money, model chat-1, key \S+ has 2 requests instead of 1\.$/m,
    },
    {
      name: "the tokens of a day",
      sql: "UPDATE days SET output = output + 1 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_counts"],
    },
    {
      name: "the cost of a day",
      sql: "UPDATE days SET cost = cost + 1 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_costs"],
      words: /: Over all days, the group money, model chat-1, key \S+ has cost \S+ USD instead of \S+\.$/m,
    },
    {
      name: "the absorbed amount of a day",
      sql: "UPDATE days SET absorbed = absorbed + 1 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
      checks: ["day_costs"],
    },
    {
      name: "the cost of an upstream",
      sql: "UPDATE days SET cost = cost + 1, output = output + 1 WHERE tag = ? AND field = '^up-chat|chat-1'",
      checks: ["upstream_sums"],
      words:
        /: Over all days, the model chat-1 of the upstream up-chat has cost \S+ USD instead of \S+, \d+ output tokens instead of \d+\.$/m,
    },
    {
      name: "the charges of an upstream",
      sql: "UPDATE days SET amount = amount - 1 WHERE tag = ? AND field = '^up-chat|chat-1'",
      checks: ["upstream_sums"],
    },
    {
      name: "the cost in a memo",
      sql: `UPDATE ledger SET memo = replace(memo, '"cost":"', '"cost":"1') WHERE tag = ? AND seq = 3`,
      checks: ["attempts", "day_costs", "upstream_sums"],
    },
    {
      name: "the balance of a line",
      sql: "UPDATE ledger SET bal = bal - 5 WHERE tag = ? AND seq = 3",
      checks: ["line_balance"],
      words: /, line 3: line_balance: The balance after it is \S+ USD; the lines give \S+\.$/m,
    },
    {
      name: "the amount of a charge",
      sql: "UPDATE ledger SET amount = amount - 5 WHERE tag = ? AND seq = 3",
      checks: ["line_balance", "charge", "settled_mark", "day_sums", "upstream_sums", "balance", "spent"],
      words: /, line 3: charge: The charge of \S+ is \S+ USD; its tokens at its prices give \S+\.$/m,
    },
    {
      name: "a negative amount",
      sql: "UPDATE ledger SET amount = -1000 WHERE tag = ? AND seq = 5",
      checks: ["line_amount", "line_balance", "balance", "topped_up", "payment"],
    },
    {
      name: "the tokens of a charge",
      sql: `UPDATE ledger SET memo = replace(memo, '"output":', '"output":1') WHERE tag = ? AND seq = 4`,
      checks: ["charge", "attempts", "day_counts", "upstream_sums"],
      words: /, line 4: attempts: The attempt at \S+ cost \S+ USD; its tokens give \S+\.$/m,
    },
    {
      name: "an invalid memo",
      sql: "UPDATE ledger SET memo = '{}' WHERE tag = ? AND seq = 4",
      checks: ["charge", "day_counts", "day_costs", "upstream_sums"],
      words: /, line 4: charge: The memo lacks the figures from which the charge was computed\.$/m,
    },
    {
      name: "the receiving account of a charge",
      sql: "UPDATE ledger SET credit = 'acct_0000000000' WHERE tag = ? AND seq = 3",
      checks: ["line_sides"],
      words: /, line 3: line_sides: A line of the kind usage does not move money from acct_\w+ to acct_0000000000\.$/m,
    },
    {
      name: "an unknown kind",
      sql: "UPDATE ledger SET kind = 'gift' WHERE tag = ? AND seq = 5",
      checks: ["line_sides", "topped_up", "payment_count"],
    },
    {
      name: "the model of a charge",
      sql: "UPDATE ledger SET model = 'chat-2' WHERE tag = ? AND seq = 3",
      checks: ["day_sums", "day_counts", "day_costs"],
    },
    {
      name: "the request of a charge",
      sql: "UPDATE ledger SET ref = (SELECT ref FROM ledger AS other WHERE other.tag = ledger.tag AND seq = 3) WHERE tag = ? AND seq = 4",
      checks: ["charged_twice", "settled_mark"],
    },
    {
      name: "a missing line",
      sql: "DELETE FROM ledger WHERE tag = ? AND seq = 4",
      checks: [
        "line_order",
        "line_balance",
        "day_sums",
        "day_counts",
        "day_costs",
        "upstream_sums",
        "balance",
        "spent",
      ],
      words: /, line 5: line_order: The lines are not numbered without gaps: line 4 is missing before it\.$/m,
    },
    {
      name: "a missing last line",
      sql: "DELETE FROM ledger WHERE tag = ? AND seq = 5",
      checks: ["line_count", "balance", "topped_up", "payment_count"],
      words: /: 5 lines were written, but the last existing line is line 4\.$/m,
    },
    {
      name: "a missing settled mark",
      sql: "DELETE FROM settled WHERE tag = ?1 AND rid = (SELECT ref FROM ledger WHERE tag = ?1 AND seq = 3)",
      checks: ["settled_mark"],
      words: /, line 3: settled_mark: The request \S+ has no settled mark: a replay would charge it again\.$/m,
    },
    {
      name: "a settled mark with another amount",
      sql: "UPDATE settled SET amount = 7 WHERE tag = ?1 AND rid = (SELECT ref FROM ledger WHERE tag = ?1 AND seq = 3)",
      checks: ["settled_mark"],
    },
    {
      name: "a missing payment",
      sql: "DELETE FROM payments WHERE tag = ? AND id = 'adj'",
      checks: ["payment", "payment_count"],
      words: /, line 5: payment: The payment adj has no record: if it is repeated, it is counted again\.$/m,
    },
    {
      name: "a payment's amount",
      sql: "UPDATE payments SET amount = 1 WHERE tag = ? AND id = 'adj'",
      checks: ["payment"],
    },
    {
      name: "a payment that was never made",
      sql: "INSERT INTO payments (tag, id, amount) VALUES (?, 'ghost', 1)",
      checks: ["payment_count"],
    },
  ];

  for (const { name, sql, checks, words } of DOCTORED) {
    test(`doctored: ${name}`, async () => {
      const account = await usedAccount(here);
      await assertSound(here, account);
      doctor(sql, account.tag);
      const said = await assertFound(here, account, checks);
      if (words) assert.match(said, words);
    });
  }

  test("verification goes through all accounts, a page at a time, and names those with findings", async () => {
    const sound = await usedAccount(here);
    const off = await usedAccount(here);
    doctor("UPDATE accounts SET bal = bal + 1 WHERE tag = ?", off.tag);
    const ask = async (path: string) =>
      (await fetch(here.adminUrl + path, { headers: { authorization: "Bearer test-admin-token" } })).json();
    const seen: string[] = [];
    let cursor = "";
    do {
      const page = (await ask(`/admin/v1/ledger/verification?limit=2${cursor}`)) as {
        items: { account: string; outcome: string }[];
        next: string | null;
      };
      assert.ok(page.items.length <= 2);
      seen.push(...page.items.map(({ account, outcome }) => `${account} ${outcome}`));
      cursor = page.next === null ? "" : `&cursor=${encodeURIComponent(page.next)}`;
    } while (cursor !== "");
    assert.ok(seen.length > DOCTORED.length);
    assert.equal(new Set(seen).size, seen.length);
    assert.deepEqual(
      seen.filter((one) => one.endsWith(" balanced")),
      [`${sound.name} balanced`],
    );
    const ran = await tollgate(here, "ledger", "verify");
    assert.equal(ran.status, 1);
    assert.doesNotMatch(ran.err, new RegExp(sound.name));
    const nobody = await tollgate(here, "ledger", "verify", "--account", "nobody");
    assert.deepEqual([nobody.status, /no account named `nobody`/.test(nobody.err)], [1, true]);
  });

  test("a code that is credited here but belongs to another account, or is still unused, is reported because it could be redeemed twice", async () => {
    const account = await here.account();
    const [one] = await sell(here.store, 1);
    assert.ok(one);
    assert.equal((await here.store.redeem({ hash: one.hash, tag: account.tag })).outcome, "redeemed");
    await assertSound(here, account);
    for (const [sql, found] of [
      [
        "UPDATE codes SET tag = 'otherother' WHERE tag = ?",
        /its own record says that acct_otherother has it \(redeemed\)/,
      ],
      [
        "UPDATE codes SET tag = NULL, state = 'unused' WHERE tag = 'otherother' AND ? <> ''",
        /nobody has it \(unused\)/,
      ],
    ] as const) {
      doctor(sql, account.tag);
      assert.match(await assertFound(here, account, ["code_owner"]), found);
    }
  });
});

describe("on Redis", () => {
  let redis: TestRedis;
  let here: GatewayHere;
  before(async () => {
    redis = await startRedis({ args: ["--appendonly", "yes", "--maxmemory-policy", "noeviction"] });
    here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  });
  after(async () => {
    await here.close();
    await redis.stop();
  });

  interface Scene {
    /** Prefix of the account's keys. */
    readonly at: string;
    readonly account: TestAccount;
    /** The request of line 3, and one that is running. */
    readonly charged: string;
    readonly running: string;
  }

  /** The same account with a request in flight, which holds 100 nano-dollars. */
  async function scene(): Promise<Scene> {
    const account = await usedAccount(here);
    const [line] = await here.store.readLedger(account.tag, 2, 1);
    const running = newRequestId(Date.now(), (size) => Buffer.alloc(size, account.tag));
    const ask = { tag: account.tag, requestId: running, keyHash: hashKey(account.key), plans: ["free", "pro"] };
    admitted(await here.store.admit(admitAsk({ ...ask, groups: [terms({ group: "money" })] })));
    return { at: `{a:${account.tag}}`, account, charged: line?.reference ?? "", running };
  }

  type Doctor = (scene: Scene) => readonly (readonly string[])[];
  const DOCTORED: readonly { name: string; commands: Doctor; checks: readonly string[]; words?: RegExp }[] = [
    { name: "a balance", commands: ({ at }) => [["HINCRBY", at, "bal", "-1"]], checks: ["balance"] },
    { name: "what was spent", commands: ({ at }) => [["HSET", at, "spent", "1"]], checks: ["spent"] },
    { name: "what was topped up", commands: ({ at }) => [["HSET", at, "topped", "1"]], checks: ["topped_up"] },
    { name: "a count of lines", commands: ({ at }) => [["HINCRBY", at, "seq", "-1"]], checks: ["line_count"] },
    {
      name: "a sum of holds",
      commands: ({ at }) => [["HINCRBY", at, "held", "5"]],
      checks: ["held"],
      words: /: held: The held amount is 0\.000000105 USD; the holds sum up to 0\.0000001\.$/m,
    },
    {
      name: "holds above the balance",
      commands: ({ at }) => [["HSET", at, "held", "9000000000000000"]],
      checks: ["held", "held_range"],
    },
    {
      name: "a missing hold",
      commands: ({ at, running }) => [["HDEL", `${at}:h`, running]],
      checks: ["held", "in_flight", "hold_expiry"],
      words: /: hold_expiry: The request \S+ is in the list of expiries, but has no hold\.$/m,
    },
    {
      name: "a hold that nothing releases",
      commands: ({ at, running }) => [["ZREM", `${at}:hx`, running]],
      checks: ["hold_expiry"],
      words:
        /: The hold of the request \S+ should expire at \d{13} \(ms\), but expires never, because it is not in the list of expiries\.$/m,
    },
    {
      name: "a hold that expires a year late",
      commands: ({ at, running }) => [["ZADD", `${at}:hx`, "9999999999999", running]],
      checks: ["hold_expiry"],
      words: /: The hold of the request \S+ should expire at \d{13} \(ms\), but expires at 9999999999999\.$/m,
    },
    {
      name: "a hold of a settled request",
      commands: ({ at, running }) => [["SET", `${at}:d:${running}`, '["0",""]']],
      checks: ["hold_settled"],
    },
    {
      name: "the number of requests in flight",
      commands: ({ at }) => [["HINCRBY", at, "conc", "1"]],
      checks: ["in_flight"],
    },
    {
      name: "the number of requests in flight of a group",
      commands: ({ at }) => [["HSET", at, "c:money", "7"]],
      checks: ["in_flight"],
    },
    {
      name: "requests in flight of a group without any",
      commands: ({ at }) => [["HSET", at, "c:cards", "1"]],
      checks: ["in_flight"],
      words: /: The count of requests in flight in cards is 1; there are 0 holds\.$/m,
    },
    {
      name: "the held amount of a card",
      commands: ({ at }) => [["HSET", at, "eh:code_1", "5"]],
      checks: ["card_held"],
    },
    {
      name: "a card that has paid more than its quota",
      commands: ({ at }) => [["HSET", at, "ep:code_1", "6000"]],
      checks: ["card_spent", "card_overdrawn"],
    },
    {
      name: "the quota of a card",
      commands: ({ at }) => [["HSET", at, "e:code_1", '["code_1","pro","cards","0","9999999999999","1"]']],
      checks: ["card_quota"],
    },
    {
      name: "a card that cannot be read",
      commands: ({ at }) => [["HSET", at, "e:code_1", "nonsense"]],
      checks: ["unreadable", "card_missing"],
    },
    { name: "a missing card", commands: ({ at }) => [["HDEL", at, "e:code_1"]], checks: ["card_missing"] },
    { name: "a hidden card", commands: ({ at }) => [["HSET", at, "es", "[]"]], checks: ["card_unlisted"] },
    {
      name: "a card that was never granted",
      commands: ({ at }) => [["HSET", at, "e:x", '["x","pro","cards","0","1",""]']],
      checks: ["card_without_line"],
    },
    {
      name: "the sum of a day",
      commands: ({ at, account }) => [
        ["HINCRBY", `${at}:day:${new Date().toISOString().slice(0, 10)}`, `money|chat-1|${account.keyId}`, "1"],
      ],
      checks: ["day_sums"],
    },
    {
      name: "a daily sum that is not a number",
      commands: ({ at, account }) => [
        ["HSET", `${at}:day:${new Date().toISOString().slice(0, 10)}`, `money|chat-1|${account.keyId}`, "x"],
      ],
      checks: ["day_sums", "unreadable"],
    },
    {
      name: "the tokens of a day",
      commands: ({ at, account }) => [
        ["HINCRBY", `${at}:use:${new Date().toISOString().slice(0, 10)}`, `input|money|chat-1|${account.keyId}`, "1"],
      ],
      checks: ["day_counts"],
    },
    {
      name: "the cost of a day",
      commands: ({ at, account }) => [
        ["HINCRBY", `${at}:use:${new Date().toISOString().slice(0, 10)}`, `cost|money|chat-1|${account.keyId}`, "1"],
      ],
      checks: ["day_costs"],
    },
    {
      name: "the charges and tokens of an upstream",
      commands: ({ at }) => [
        ["HINCRBY", `${at}:use:${new Date().toISOString().slice(0, 10)}`, "^charged|up-chat|chat-1", "1"],
        ["HINCRBY", `${at}:use:${new Date().toISOString().slice(0, 10)}`, "^input|up-chat|chat-1", "-1"],
      ],
      checks: ["upstream_sums"],
      words: /: Over all days, the model chat-1 of the upstream up-chat has charged \S+ USD instead of \S+, \d+ input/m,
    },
    {
      name: "a model at an upstream that got no request",
      commands: ({ at }) => [
        ["HINCRBY", `${at}:use:${new Date().toISOString().slice(0, 10)}`, "^cost|up-chat|ghost|^", "1"],
      ],
      checks: ["upstream_sums"],
      words: /: Over all days, the model ghost\|\^ of the upstream up-chat has cost/m,
    },
    {
      name: "a missing settled mark",
      commands: ({ at, charged }) => [["DEL", `${at}:d:${charged}`]],
      checks: ["settled_mark"],
    },
    {
      name: "a settled mark with another amount",
      commands: ({ at, charged }) => [["SET", `${at}:d:${charged}`, '["7",""]']],
      checks: ["settled_mark"],
    },
    {
      name: "an invalid settled mark",
      commands: ({ at, charged }) => [["SET", `${at}:d:${charged}`, "x"]],
      checks: ["settled_mark"],
    },
    {
      name: "a missing payment",
      commands: ({ at }) => [["HDEL", `${at}:pay`, "adj"]],
      checks: ["payment", "payment_count"],
    },
    { name: "a payment's amount", commands: ({ at }) => [["HSET", `${at}:pay`, "adj", "1"]], checks: ["payment"] },
    {
      name: "a payment that was never made",
      commands: ({ at }) => [["HSET", `${at}:pay`, "ghost", "1"]],
      checks: ["payment_count"],
    },
    {
      name: "a key that is not found by its id",
      commands: ({ at, account }) => [["HDEL", at, `ki:${account.keyId}`]],
      checks: ["key_index"],
      words: /: The key key_\w+ works, but cannot be found by its id: it can be neither moved nor revoked\.$/m,
    },
    {
      name: "a listed key that is missing",
      commands: ({ at, account }) => [["HDEL", at, `k:${hashKey(account.key)}`]],
      checks: ["key_index"],
      words: /: The key key_\w+ is listed, but there is no such key\.$/m,
    },
    {
      name: "an account's own name",
      commands: ({ at }) => [["HSET", at, "name", "somebody"]],
      checks: ["account_name"],
    },
    {
      name: "a ledger of another type",
      commands: ({ at, charged }) => [
        ["DEL", `${at}:l`],
        ["SET", `${at}:l`, "x"],
        ["SET", `${at}:d:${charged}`, '["7",""]'],
      ],
      checks: ["unreadable"],
    },
    {
      name: "an account missing from the list of accounts",
      commands: ({ account }) => [["ZREM", "{idx:accounts}:names", account.name]],
      checks: ["account_unlisted"],
      words: /: account_unlisted: No name in the list of accounts leads to acct_\w+: a walk through all/m,
    },
    { name: "a missing account", commands: ({ at }) => [["DEL", at]], checks: ["account_missing"] },
    {
      name: "a balance that is not a number",
      commands: ({ at }) => [["HSET", at, "bal", "lots"]],
      checks: ["balance", "held_range", "unreadable"],
    },
    { name: "holds of another type", commands: ({ at }) => [["SET", `${at}:h`, "x"]], checks: ["unreadable"] },
    {
      name: "a missing last line",
      commands: ({ at }) => [["XDEL", `${at}:l`, "5-0"]],
      checks: ["line_count", "balance", "topped_up", "payment_count"],
    },
    {
      name: "a line above the count",
      commands: ({ at }) => [["XADD", `${at}:l`, "6-0", "at", "1", "kind", "topup", "amount", "5"]],
      checks: ["line_count", "line_unreadable"],
      words: /, line 6: line_unreadable: The entry is not a valid ledger line\.$/m,
    },
    {
      name: "a line between two lines",
      commands: ({ at }) => [["XADD", `${at}:l`, "5-7", "at", "1", "kind", "topup", "amount", "5", "bal", "1"]],
      checks: ["line_order", "line_unreadable"],
    },
    {
      name: "an invalid opening line",
      commands: ({ at }) => [["HSET", `${at}:lo`, "seq", "3", "line", "x"]],
      checks: [
        ...["line_order", "line_unreadable", "line_balance", "balance", "spent", "topped_up"],
        ...["card_without_line", "day_sums", "day_counts", "day_costs", "upstream_sums", "payment_count"],
      ],
    },
    {
      name: "an opening line without a number",
      commands: ({ at }) => [["HSET", `${at}:lo`, "seq", "x", "line", "x"]],
      checks: ["line_order", "line_unreadable"],
    },
  ];

  for (const { name, commands, checks, words } of DOCTORED) {
    test(`doctored: ${name}`, async () => {
      const doctored = await scene();
      await assertSound(here, doctored.account);
      for (const command of commands(doctored)) assert.match(await redis.command(...command), /^[^-]/);
      const said = await assertFound(here, doctored.account, checks);
      if (words) assert.match(said, words);
      for (const key of ["", ":h", ":hx", ":l", ":lo", ":pay"]) await redis.command("DEL", `${doctored.at}${key}`);
      await redis.command("HDEL", "idx:accounts", doctored.account.name);
      await redis.command("ZREM", "{idx:accounts}:names", doctored.account.name);
    });
  }

  test("an account missing from the name index is reported, by name or by id; an account without lines is not", async () => {
    const { account, at } = await scene();
    const named = async () => {
      const ran = await tollgate(here, "--json", "ledger", "verify");
      const { items } = JSON.parse(ran.out) as { items: { account: string; findings: { check: string }[] }[] };
      return items
        .filter(({ findings }) => findings.some(({ check }) => check === "account_unlisted"))
        .map((item) => item.account);
    };
    await redis.command("HSET", "{a:halfmade00}", "name", "half", "seq", "0");
    assert.deepEqual(await named(), []);
    await redis.command("HDEL", "idx:accounts", account.name);
    assert.deepEqual(await named(), [account.name]);
    await redis.command("ZREM", "{idx:accounts}:names", account.name);
    assert.deepEqual(await named(), [account.name]);
    await redis.command("DEL", at);
    assert.deepEqual(await named(), [`acct_${account.tag}`]);
    await redis.command("DEL", `${at}:l`, `${at}:lo`);
  });

  test("a code that belongs to another account is reported", async () => {
    const account = await here.account();
    const [one] = await sell(here.store, 1);
    assert.ok(one);
    await here.store.redeem({ hash: one.hash, tag: account.tag });
    await assertSound(here, account);
    await redis.command("HSET", codeKey(one.hash), "tag", "otherother");
    await assertFound(here, account, ["code_owner"]);
  });

  test("a request that is settled without a hold, or voided, is not a finding", async () => {
    const account = await here.account();
    const ask = { tag: account.tag, requestId: newRequestId(Date.now(), () => Buffer.alloc(16)) };
    const unknown = { storeTimeMs: Date.now(), group: "money", keyId: account.keyId, entitlement: undefined };
    await here.store.settle(settleAsk({ ...ask, groups: [] }, unknown, { voided: true }));
    await assertSound(here, account);
  });
});
