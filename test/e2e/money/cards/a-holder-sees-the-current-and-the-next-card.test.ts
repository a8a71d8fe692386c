// Cards granted by the operator, and what their holder sees: kind, remaining quota, end, and which card comes next; on
// both stores.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { showCards } from "../../../../src/console/answers/present.ts";
import { auditAccount } from "../../../../src/store/ledger/audit.ts";
import type { Entitlement } from "../../../../src/store/records.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { auditToEnd } from "../../../rig/audit-to-end.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { makeAccount } from "../../../unit/store/asks.ts";
import { embeddedBench, redisBench } from "../../../unit/store/benches.ts";
import type { Bench } from "../../../unit/store/contract.ts";
import { DAY_MS, shopOn } from "./rig.ts";

const NOON_MS = Date.UTC(2027, 3, 10, 12);

for (const [name, open] of [
  ["embedded", embeddedBench],
  ["redis", redisBench],
] as const) {
  describe(`gifts on ${name}`, () => {
    let bench: Bench;
    before(async () => {
      bench = await open();
    });
    after(() => bench?.close());
    giftTests(() => bench);
  });
}

function giftTests(bench: () => Bench): void {
  test("a gift counts once by its id, is distinguished from sold cards, and appears in the ledger", async (t) => {
    const shop = await shopOn(t, bench());
    const { store } = bench();
    const tag = await makeAccount(store, "alice", { group: "cards" });
    const given = await shop.tollgate("card", "gift", "alice", "day", "--id", "sorry-1");
    const what = /a day card worth 5\.00 USD for the group cards, from \S+ until \S+\.\n$/;
    assert.match(given.out, /^The account alice was given a day card/);
    assert.match(given.out, what);
    const again = await shop.tollgate("card", "gift", "alice", "day", "--id", "sorry-1");
    assert.match(again.out, /^The id sorry-1 was already counted; nothing was changed\. The card is a day card/);
    const other = await shop.ask("POST", "/admin/v1/accounts/alice/gifts", { card: "flat", id: "sorry-1" });
    assert.deepEqual([other.status, other.json.error.code], [409, "id_used"]);
    for (const [body, code] of [
      [{ card: "dya" }, "unknown_card"],
      [{ card: "day", id: "" }, "malformed"],
      [{ id: "x" }, "missing_member"],
    ] as const) {
      const bad = await shop.ask("POST", "/admin/v1/accounts/alice/gifts", body);
      assert.deepEqual([bad.status, bad.json.error.code], [400, code]);
    }
    const cards = (await store.listCards(tag))?.cards ?? [];
    assert.deepEqual([cards.length, cards[0]?.card], [1, "day"]);
    const lines = (await store.readLedger(tag, 0, 10)).filter(({ kind }) => kind === "card");
    const words = lines.map(({ debit, credit, amount, reference }) => `${debit} ${credit} ${amount} ${reference}`);
    assert.deepEqual(words, [`gifts:day ent_${cards[0]?.id} 5000000000 sorry-1`]);
    await shop.json("card", "gift", "alice", "flat");
    await shop.json("card", "gift", "alice", "flat");
    assert.equal((await store.listCards(tag))?.cards.length, 3, "without an id each gift is a new card");
    await makeAccount(store, "erin", { group: "cards" });
    const same = await shop.ask("POST", "/admin/v1/accounts/erin/gifts", { card: "day", id: "sorry-1" });
    assert.equal(same.status, 201, "another account may use the same id");
    assert.notEqual(same.json.entitlement.id, cards[0]?.id, "two accounts never share a ledger account");
    const audit = await auditToEnd(auditAccount(store, { name: "alice", tag }));
    assert.deepEqual([audit.outcome, audit.totals.get("gifts")], ["balanced", -5_000_000_000n]);
    assert.match((await shop.tollgate("ledger", "verify", "--account", "alice")).out, /gifts +-5\.00/);
    const log = (await shop.tollgate("audit")).out;
    assert.match(log, /Done: give the account alice a day card; id sorry-1; the card is gift_\w{16} /);
    assert.match(log, /Already done, nothing changed: give the account alice a day card/);
    assert.match(log, /Refused \(id used\): give the account alice a flat card/);
    assert.equal((await shop.tollgate("card", "gift", "nobody", "day")).status, 1);
  });

  test("the same gift requested 200 times at once is one card and one ledger line", async (t) => {
    const shop = await shopOn(t, bench());
    const { store } = bench();
    const tag = await makeAccount(store, "bob", { group: "cards" });
    const ask = () => shop.ask("POST", "/admin/v1/accounts/bob/gifts", { card: "day", id: "once" });
    const answers = await Promise.all(Array.from({ length: 200 }, ask));
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status, json }) => status === 200 && json.repeated).length, 199);
    assert.equal(new Set(answers.map(({ json }) => json.entitlement.id)).size, 1);
    assert.equal((await store.readLedger(tag, 0, 1_000)).filter(({ kind }) => kind === "card").length, 1);
  });

  test("a holder sees kind, remaining quota and end of each card, and which card of its group comes next", async (t) => {
    const shop = await shopOn(t, bench());
    shop.setTime(NOON_MS);
    await makeAccount(bench().store, "carol", { group: "cards" });
    for (const [kind, id] of [
      ["day", "one"],
      ["week", "two"],
      ["week", "three"],
    ] as const) {
      await shop.json("card", "gift", "carol", kind, "--id", id);
    }
    const seen = async () =>
      (await shop.json("card", "list", "carol")).items.map(
        ({ card, state, until, next }: { card: string; state: string; until: string; next: { from: string } | null }) =>
          `${card} ${state} ${until.slice(0, 10)} ${next?.from.slice(0, 10)}`,
      );
    const [one, two, three] = ["2027-04-11", "2027-04-18", "2027-04-25"];
    assert.deepEqual(await seen(), [
      `day running ${one} ${one}`,
      `week waiting ${two} ${two}`,
      `week waiting ${three} undefined`,
    ]);
    shop.setTime(NOON_MS + DAY_MS);
    assert.deepEqual(await seen(), [
      `day ended ${one} ${one}`,
      `week running ${two} ${two}`,
      `week waiting ${three} undefined`,
    ]);
    const shown = await shop.tollgate("account", "show", "carol");
    assert.match(shown.out, / week +pro +cards +running .* 5\.00 +0\.00 +0\.00 +5\.00 +week gift_\w+ from 2027-04-18T/);
    assert.doesNotMatch(shown.out, / ended /, "ended cards are shown by `card list` only");
    const sheet = await shop.tollgate("card", "list", "carol", "--format", "csv");
    assert.match(sheet.out, /^id,card,plan,group,state,from,until,quota_usd,spent_usd,held_usd,rest_usd,next_card\r\n/);
    await makeAccount(bench().store, "dave");
    assert.equal((await shop.tollgate("card", "list", "dave")).out, "No time cards.\n");
    assert.equal((await shop.tollgate("card", "list", "nobody")).status, 1);
  });
}

test("the next card is of the same group, is still usable, and does not end earlier", () => {
  const of = (id: string, changes: Partial<Entitlement>): Entitlement => ({
    ...{ id, card: "day", plan: "pro", group: "cards", fromMs: 0, untilMs: 100, quota: nanoUsd(5n) },
    ...{ spent: nanoUsd(0n), held: nanoUsd(0n), ...changes },
  });
  const cards = [
    of("over", { untilMs: 10 }),
    of("old", { card: undefined, untilMs: 20 }),
    of("other", { group: "more", untilMs: 30 }),
    of("used", { untilMs: 40, spent: nanoUsd(5n) }),
    of("held", { untilMs: 50, held: nanoUsd(5n) }),
    of("later", { fromMs: 60, untilMs: 70, quota: undefined }),
  ];
  const shown = showCards(cards, 10).map(({ id, card, state, next, rest_usd }) => [
    id,
    card,
    state,
    next?.id,
    rest_usd,
  ]);
  assert.deepEqual(shown, [
    ["over", "day", "ended", "old", "0.000000005"],
    ["old", null, "running", "held", "0.000000005"],
    ["other", "day", "running", undefined, "0.000000005"],
    ["used", "day", "used_up", "held", "0.00"],
    ["held", "day", "running", "later", "0.00"],
    ["later", "day", "waiting", undefined, null],
  ]);
  assert.deepEqual(
    showCards(cards, 10).map(({ running }) => running),
    [false, true, true, true, true, false],
    "a card runs from its start to its end, even if it is used up",
  );
});

test("the owner of a key sees the same, and explain names the current and the next card", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const account = await here.account({ group: "cards" });
  const given = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, reference: "gift", gift: true } as const;
  for (const id of ["one", "two"]) {
    await here.store.grant(account.tag, { ...given, id, afterPrevious: true, quota: nanoUsd(5_000_000_000n) });
  }
  const headers = { authorization: `Bearer ${account.key}`, "content-type": "application/json" };
  const usage = (await (await fetch(`${here.url}/v1/usage`, { headers })).json()) as {
    entitlements: { id: string; card: string; state: string; next: { id: string; from: string } | null }[];
  };
  const cards = usage.entitlements.map(({ id, card, state, next }) => [id, card, state, next?.id]);
  assert.deepEqual(cards, [
    ["one", "day", "running", "two"],
    ["two", "day", "waiting", undefined],
  ]);
  const body = JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hi" }] });
  const asked = await fetch(`${here.url}/v1/explain?protocol=chat`, { method: "POST", headers, body });
  const { steps } = (await asked.json()) as { steps: { step: string; words: string }[] };
  const begins = usage.entitlements[0]?.next?.from;
  assert.equal(
    steps.find(({ step }) => step === "card")?.words,
    `Running time cards of the group: 1 (day); another one begins at ${begins}.`,
  );
});
