/** What somebody changed behind the gateway's back, in the embedded store's file or in Redis, is found and named. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after, before } from "node:test";
import { nanoUsd } from "../../src/values/money.ts";
import { sell } from "../cards/house.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../rig/gateway.ts";
import { startRedis } from "../rig/redis.ts";
import { served, tollgate } from "./house.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

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

const DOCTORED: readonly { name: string; sql: string; found: readonly RegExp[] }[] = [
  {
    name: "a balance",
    sql: "UPDATE accounts SET bal = bal + 1 WHERE tag = ?",
    found: [/^Account \S+: The balance is \S+ USD; the lines sum up to \S+\.$/],
  },
  {
    name: "what was spent",
    sql: "UPDATE accounts SET spent = 0 WHERE tag = ?",
    found: [/: The sum spent is 0\.00 USD; the lines sum up to 0\.00\d+\.$/],
  },
  {
    name: "what was topped up",
    sql: "UPDATE accounts SET topped = topped + 1000000000 WHERE tag = ?",
    found: [/: The sum topped up is 10\.999999 USD; the lines sum up to 9\.999999\.$/],
  },
  {
    name: "a card",
    sql: "UPDATE entitlements SET spent = 7 WHERE tag = ?",
    found: [/: The sum spent on the card code_1 is 0\.000000007 USD; the lines sum up to 0\.00\.$/],
  },
  {
    name: "the sum of a day",
    sql: "UPDATE days SET amount = amount + 5 WHERE tag = ? AND field LIKE 'money|chat-1|%'",
    found: [/: The sum of all days in the group money is \S+ USD; the lines sum up to \S+\.$/],
  },
  {
    name: "the balance of a line",
    sql: "UPDATE ledger SET bal = bal - 5 WHERE tag = ? AND seq = 3",
    found: [/, line 3: The balance after it is \S+ USD; the lines give \S+\.$/],
  },
  {
    name: "the amount of a charge",
    sql: "UPDATE ledger SET amount = amount - 5 WHERE tag = ? AND seq = 3",
    found: [
      /, line 3: The balance after it is /,
      /, line 3: The charge of \S+ is \S+ USD, its tokens at its prices give \S+\.$/,
      /: The sum of all days in the group money is /,
      /: The balance is /,
      /: The sum spent is /,
    ],
  },
  {
    name: "the tokens of a charge",
    sql: `UPDATE ledger SET memo = replace(memo, '"output":', '"output":1') WHERE tag = ? AND seq = 4`,
    found: [/, line 4: The charge of /, /, line 4: The attempt at \S+ cost \S+ USD, its tokens give \S+\.$/],
  },
  {
    name: "a memo that is none",
    sql: "UPDATE ledger SET memo = '{}' WHERE tag = ? AND seq = 4",
    found: [/, line 4: Its memo does not hold the figures that it was computed from\.$/],
  },
  {
    name: "where a charge went",
    sql: "UPDATE ledger SET credit = 'acct_0000000000' WHERE tag = ? AND seq = 3",
    found: [/, line 3: A line of the kind usage does not move money from acct_\w+ to acct_0000000000\.$/],
  },
  {
    name: "a line that is gone",
    sql: "DELETE FROM ledger WHERE tag = ? AND seq = 4",
    found: [
      /, line 5: The lines are not numbered without gaps: line 4 is missing before it\.$/,
      /, line 5: The balance after it is /,
      /: The sum of all days in the group money is /,
      /: The balance is /,
      /: The sum spent is /,
    ],
  },
  {
    name: "a last line that is gone",
    sql: "DELETE FROM ledger WHERE tag = ? AND seq = 5",
    found: [
      /: 5 lines were written; the last one that is there is line 4\.$/,
      /: The balance is /,
      /: The sum topped up is /,
    ],
  },
];

for (const { name, sql, found } of DOCTORED) {
  test(`doctored: ${name}`, async () => {
    const account = await usedAccount(here);
    const sound = await tollgate(here, "ledger", "verify", "--account", account.name);
    assert.equal(sound.status, 0, sound.err);
    doctor(sql, account.tag);
    const ran = await tollgate(here, "ledger", "verify", "--account", account.name);
    assert.equal(ran.status, 1);
    const complaints = ran.err.trimEnd().split("\n");
    assert.equal(complaints.length, found.length, ran.err);
    for (const pattern of found) {
      assert.ok(
        complaints.some((line) => pattern.test(line) && line.startsWith(`Account ${account.name}`)),
        ran.err,
      );
    }
    const all = await tollgate(here, "--json", "ledger", "verify");
    assert.equal(all.status, 1);
    const { items } = JSON.parse(all.out) as { items: { account: string; outcome: string }[] };
    assert.equal(items.find((item) => item.account === account.name)?.outcome, "unbalanced");
  });
}

test("verification goes through all accounts, a page at a time, and names those that are off", async () => {
  const sound = await usedAccount(here);
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
  assert.equal((await tollgate(here, "ledger", "verify", "--account", "nobody")).status, 1);
});

test("a code that paid here but is another's, or is as good as new, could be redeemed twice (reliability 3.9)", async () => {
  const account = await here.account();
  const [one] = await sell(here.store, 1);
  assert.ok(one);
  assert.equal((await here.store.redeem({ hash: one.hash, tag: account.tag })).outcome, "redeemed");
  assert.equal((await tollgate(here, "ledger", "verify", "--account", account.name)).status, 0);
  for (const [sql, found] of [
    [
      "UPDATE codes SET tag = 'otherother' WHERE tag = ?",
      /its own record says that acct_otherother has it \(redeemed\)/,
    ],
    ["UPDATE codes SET tag = NULL, state = 'unused' WHERE tag = 'otherother' AND ? <> ''", /nobody has it \(unused\)/],
  ] as const) {
    doctor(sql, account.tag);
    const ran = await tollgate(here, "ledger", "verify", "--account", account.name);
    assert.deepEqual([ran.status, found.test(ran.err)], [1, true], ran.err);
  }
});

test("on Redis: a balance, a sum of holds, and a charge", async (t) => {
  const redis = await startRedis({ args: ["--appendonly", "yes", "--maxmemory-policy", "noeviction"] });
  t.after(() => redis.stop());
  const shared = await startGatewayHere({ store: redis.url });
  t.after(() => shared.close());
  const [balance, held, untouched] = [await usedAccount(shared), await usedAccount(shared), await usedAccount(shared)];
  assert.equal((await tollgate(shared, "ledger", "verify")).out, "Accounts verified: 3; out of balance: 0.\n");
  await redis.command("HINCRBY", `{a:${balance.tag}}`, "bal", "-1");
  await redis.command("HINCRBY", `{a:${held.tag}}`, "held", "5");
  const one = await tollgate(shared, "ledger", "verify", "--account", balance.name);
  assert.deepEqual([one.status, /The balance is/.test(one.err)], [1, true], one.err);
  const two = await tollgate(shared, "ledger", "verify", "--account", held.name);
  assert.deepEqual(
    [two.status, two.err.trim().replace(/^Account \S+ /, "")],
    [1, "0.000000005 USD are held; the holds sum up to 0.00."],
  );
  const three = await tollgate(shared, "ledger", "verify", "--account", untouched.name);
  assert.equal(three.status, 0, three.err);
});
