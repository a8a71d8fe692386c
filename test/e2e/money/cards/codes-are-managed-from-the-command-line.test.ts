// An operator issues, lists, voids and redeems codes by the command line, against a real admin listener.
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Catalog } from "../../../../src/values/catalog.ts";
import { run } from "../../../unit/cli/captured-run.ts";
import { ADMIN_TOKEN, CATALOG, startConsole } from "../../../unit/console/running-console.ts";
import { DAY_MS } from "./rig.ts";

const kind = { plan: "pro", group: "cards", starts: "at_redemption", quotaSpend: 5_000_000_000n } as const;
const withCards = (lastsMs: number): Catalog => ({
  ...CATALOG,
  cards: new Map([
    ["day", { ...kind, name: "day", lastsMs }],
    ["flat", { ...kind, name: "flat", lastsMs, quotaSpend: undefined }],
  ]),
});

async function start(t: TestContext) {
  let catalog = withCards(DAY_MS);
  const console = await startConsole(t, { catalog: () => catalog });
  const env = { TOLLGATE_ADMIN_URL: console.url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const tollgate = (...argv: string[]) => run(argv, { env });
  const json = async (...argv: string[]) => {
    const ran = await tollgate(...argv, "--json");
    assert.equal(ran.status, 0, `${argv.join(" ")}: ${ran.err}`);
    return JSON.parse(ran.out);
  };
  const reload = (next: Catalog) => {
    catalog = next;
  };
  return { console, tollgate, json, reload };
}

test("codes are shown once and redeemed once, and an account shows its cards", async (t) => {
  const { console, tollgate, json } = await start(t);
  await tollgate("account", "create", "alice");
  await tollgate("account", "create", "bob");
  const made = await tollgate("code", "create", "--card", "day", "--count", "3");
  assert.equal(made.status, 0, made.err);
  assert.match(made.err, /The codes are shown only this once/);
  const lines = made.out.trim().split("\n");
  assert.equal(lines.length, 3);
  const [code = "", id = ""] = (lines[0] as string).split("  ");
  assert.match(code, /^[0-9A-Z]{4}(-[0-9A-Z]{4}){3}-[0-9A-Z]$/);

  const typed = code.toLowerCase().replaceAll("-", " ");
  const redeemed = await tollgate("code", "redeem", typed, "--account", "alice");
  assert.match(
    redeemed.out,
    /^The account alice has a day card worth 5\.00 USD for the group cards, from \S+ until \S+\.\n$/,
  );
  const again = await tollgate("code", "redeem", code, "--account", "alice");
  assert.deepEqual([again.status, /already redeemed this code; nothing was changed/.test(again.out)], [0, true]);
  const refused = await tollgate("code", "redeem", code, "--account", "bob");
  assert.equal(refused.status, 1);
  assert.match(refused.err, /cannot redeem this code/);

  const shown = await tollgate("account", "show", "alice");
  const heading = /TIME CARD +KIND +PLAN +GROUP +STATE +FROM +UNTIL +QUOTA USD +SPENT USD +HELD USD +LEFT USD +NEXT\n/;
  assert.match(shown.out, heading);
  assert.match(
    shown.out,
    new RegExp(`${id} +day +pro +cards +running +\\S+ +\\S+ +5\\.00 +0\\.00 +0\\.00 +5\\.00 +-\n$`),
  );
  assert.doesNotMatch((await tollgate("account", "show", "bob")).out, /TIME CARD/);
  const [entitlement] = (await json("account", "show", "alice")).entitlements;
  assert.deepEqual([entitlement.id, entitlement.running, entitlement.rest_usd], [id, true, "5.00"]);

  const listed = await tollgate("code", "list");
  assert.match(listed.out, new RegExp(`${id} +day +redeemed +5\\.00 +\\S+ +acct_\\S+ +\\S+ +- +-\n`));
  assert.ok(!listed.out.includes(code));
  assert.ok(!JSON.stringify(console.log).includes(code), "a code's text is in the audit log");
  const audit = console.log
    .filter((line) => line.what === "code.redeem")
    .map((line) => [line.target, line.outcome, line.code_id]);
  assert.deepEqual(audit, [
    ["alice", "done", id],
    ["alice", "repeated", id],
    ["bob", "refused", undefined],
  ]);
});

test("a void code cannot be redeemed, a redeemed one cannot be voided, and repeating either does no harm", async (t) => {
  const { tollgate, json } = await start(t);
  await tollgate("account", "create", "alice");
  const [one, two] = (await json("code", "create", "--card", "day", "--count", "2")).items;
  for (let i = 0; i < 2; i++) assert.match((await tollgate("code", "void", one.id)).out, /is void/);
  assert.equal((await tollgate("code", "redeem", one.code, "--account", "alice")).status, 1);
  await tollgate("code", "redeem", two.code, "--account", "alice");
  const refused = await tollgate("code", "void", two.id);
  assert.deepEqual([refused.status, /has been redeemed/.test(refused.err)], [1, true]);
  assert.match((await tollgate("code", "void", "code_0000000000000000")).err, /no code with the id/);
  assert.equal((await tollgate("code", "void", one.code)).status, 1, "a code is not accepted as its id");
});

test("a changed configuration does not change cards that were already sold", async (t) => {
  const { tollgate, json, reload } = await start(t);
  await tollgate("account", "create", "alice");
  const [code] = (await json("code", "create", "--card", "day", "--count", "1")).items;
  reload({ ...withCards(1_000), cards: new Map([["day", { ...kind, name: "day", lastsMs: 1_000, quotaSpend: 1n }]]) });
  const { entitlement } = await json("code", "redeem", code.code, "--account", "alice");
  assert.equal(Date.parse(entitlement.until) - Date.parse(entitlement.from), DAY_MS);
  assert.equal(entitlement.quota_usd, "5.00");
});

test("a card without a quota shows none", async (t) => {
  const { tollgate, json } = await start(t);
  await tollgate("account", "create", "alice");
  const [{ code }] = (await json("code", "create", "--card", "flat", "--count", "1")).items;
  assert.match((await tollgate("code", "redeem", code, "--account", "alice")).out, /card without a quota/);
  const [entitlement] = (await json("account", "show", "alice")).entitlements;
  assert.deepEqual([entitlement.quota_usd, entitlement.rest_usd, entitlement.spent_usd], [null, null, "0.00"]);
});

test("at most a thousand codes can be issued at once, of a card that the configuration has", async (t) => {
  const { console, tollgate, json } = await start(t);
  assert.equal((await json("code", "create", "--card", "day", "--count", "1000")).items.length, 1_000);
  for (const count of ["0", "1001", "-1", "1.5", "1e2", "ten", ""]) {
    assert.equal((await tollgate("code", "create", "--card", "day", "--count", count)).status, 2, count);
    const asked = await console.ask("POST", "/admin/v1/codes", { card: "day", count: Number(count || "x") });
    assert.equal(asked.status, count === "1e2" ? 201 : 400, count);
  }
  const wrong = await tollgate("code", "create", "--card", "dya", "--count", "1");
  assert.match(wrong.err, /Did you mean `day`\?/);
  const first = await json("code", "list", "--limit", "200");
  assert.equal(first.items.length, 200);
  assert.equal((await json("code", "list", "--cursor", first.next)).items.length, 100);
});
