// docs/failure-model.md row 40, and batches of codes by command on both stores: a label, an expiry date, a report, and
// voiding of the unused codes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { auditAccount } from "../../../../src/store/ledger/audit.ts";
import type { RedeemAnswer } from "../../../../src/store/records.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { auditToEnd } from "../../../rig/audit-to-end.ts";
import { admitAsk, admitted, cardTerms, codeHashOf, makeAccount, ridOf, settleAsk } from "../../../unit/store/asks.ts";
import { embeddedBench, redisBench } from "../../../unit/store/benches.ts";
import type { Bench } from "../../../unit/store/contract.ts";
import { card, type Shop, shopOn } from "./rig.ts";

const NOON_MS = Date.UTC(2027, 3, 10, 12);

for (const [name, open] of [
  ["embedded", embeddedBench],
  ["redis", redisBench],
] as const) {
  describe(`batches on ${name}`, () => {
    let bench: Bench;
    before(async () => {
      bench = await open();
    });
    after(() => bench?.close());
    batchTests(() => bench);
  });
}

function batchTests(bench: () => Bench): void {
  test("a batch is listed and shown, its codes are found by it, and its report follows their states", async (t) => {
    const shop = await shopOn(t, bench());
    shop.setTime(NOON_MS);
    const { store } = bench();
    const tag = await makeAccount(store, "alice", { group: "cards" });
    await shop.json("code", "create", "--card", "day", "--count", "1");
    const made = await shop.json(..."code create --card day --count 5 --label".split(" "), "Fair ü", ...BY);
    assert.deepEqual([made.label, made.redeem_by, made.items.length], ["Fair ü", "2027-04-12", 5]);
    const id = made.batch_id;
    const listed = await shop.tollgate("code", "batch", "list");
    assert.match(listed.out, new RegExp(`${id} +Fair ü +day +5 +5\\.00 +2027-04-12 +2027-04-10T`));
    assert.match((await shop.tollgate("code", "batch", "show", id)).out, /^Redeem by +2027-04-12$/m);
    const codes = (await shop.json("code", "list", "--batch", id)).items;
    assert.deepEqual(ids(codes), ids(made.items).sort());
    assert.ok(codes.every((code: { batch_id: string }) => code.batch_id === id));

    const [first, second] = made.items;
    for (const { code } of [first, second]) await shop.json("code", "redeem", code, "--account", "alice");
    await shop.json("code", "void", made.items[2].id);
    const request = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [cardTerms({ holdFull: 3_000n })] });
    await store.settle(settleAsk(request, admitted(await store.admit(request)), { amount: 2_500n }));
    const figures = { made: 5, redeemed: 2, void: 1, expired: 0, unused: 2 };
    const spent = { spent_usd: "0.0000025", redeemed_quota_usd: "10.00" };
    assert.deepEqual(await reported(shop, id), { ...figures, ...spent });
    shop.setTime(Date.UTC(2027, 3, 13));
    assert.deepEqual(await reported(shop, id), { ...figures, expired: 2, unused: 0, ...spent });
    const sheet = await shop.tollgate("code", "batch", "report", id, "--format", "csv");
    const heading = "id,label,card,redeem_by,made,redeemed,void,expired,unused,spent_usd,redeemed_quota_usd";
    assert.equal(sheet.out, `${heading}\r\n${id},Fair ü,day,2027-04-12,5,2,1,2,0,0.0000025,10.00\r\n`);
    const asJson = await shop.tollgate("code", "batch", "report", id, "--format", "json");
    assert.equal(JSON.parse(asJson.out).spent_usd, "0.0000025");
    const states = (await shop.json("code", "list", "--batch", id)).items.map(({ state }: { state: string }) => state);
    assert.deepEqual(states.sort(), ["expired", "expired", "redeemed", "redeemed", "void"]);
    const { findings } = await auditToEnd(auditAccount(store, { name: "alice", tag }));
    // The charge is written by this test, without the figures that a gateway records.
    assert.deepEqual(
      findings.map(({ check }) => check),
      ["charge"],
    );
  });

  test("a code is valid until its last day ends by the store's clock, and an expired code does not reveal whether it was redeemed", async (t) => {
    const shop = await shopOn(t, bench());
    shop.setTime(NOON_MS);
    await shop.json("account", "create", "bob");
    const made = await shop.json("code", "create", "--card", "day", "--count", "2", "--redeem-by", "2027-04-10");
    assert.deepEqual([made.batch_id, made.label, made.redeem_by], [null, null, "2027-04-10"]);
    const [one, two] = made.items;
    shop.setTime(Date.UTC(2027, 3, 11) - 1);
    await shop.json("code", "redeem", one.code, "--account", "bob");
    shop.setTime(Date.UTC(2027, 3, 11));
    const late = await shop.ask("POST", "/admin/v1/accounts/bob/redemptions", { code: two.code });
    assert.deepEqual([late.status, late.json.error.code], [410, "expired_code"]);
    assert.equal((await shop.json("code", "redeem", one.code, "--account", "bob")).repeated, true);
    assert.equal((await shop.json("account", "show", "bob")).entitlements.length, 1);
    assert.match((await shop.tollgate("code", "redeem", two.code, "--account", "bob")).err, /last day .* is over/);
  });

  test("voiding a batch voids the unredeemed codes; repeating the command finishes what is left, and changes nothing else", async (t) => {
    const shop = await shopOn(t, bench());
    const { store } = bench();
    await shop.json("account", "create", "carol");
    const made = await shop.json("code", "create", "--card", "day", "--count", "450", "--label", "flyer");
    await shop.json("code", "redeem", made.items[7].code, "--account", "carol");
    // The state that an interrupted run leaves.
    await store.voidCodes(ids(made.items).slice(100, 150));
    const first = await shop.tollgate("code", "batch", "void", made.batch_id);
    const words = `449 of 450 codes of the batch ${made.batch_id} (flyer) are void`;
    assert.equal(first.out, `${words}, 399 of them newly voided; 1 was already redeemed.\n`);
    const again = await shop.tollgate("code", "batch", "void", made.batch_id);
    assert.equal(again.out, `${words}, nothing changed; 1 was already redeemed.\n`);
    assert.equal((await shop.tollgate("code", "redeem", made.items[8].code, "--account", "carol")).status, 1);
    const audit = (await shop.tollgate("audit")).out;
    assert.match(audit, /Done: void the unredeemed codes of the batch \S+; voided 399; redeemed 1 /);
    assert.match(audit, /Already done, nothing changed: void the unredeemed codes/);
  });

  test("what is spent on the cards of a batch is summed over all accounts that have one", async (t) => {
    const shop = await shopOn(t, bench());
    const { store } = bench();
    const codes = Array.from({ length: 60 }, (_, i) => ({ id: `many${i}`, hash: codeHashOf(`many${i}`) }));
    const batch = `batch_${"m".repeat(16)}`;
    await store.createCodes({ ...card(), batch }, codes, { label: "many", count: codes.length });
    for (const [i, { hash }] of codes.entries()) {
      const tag = await makeAccount(store, `Many${i}`, { group: "cards" });
      await store.redeem({ hash, tag });
      const request = admitAsk({ tag, requestId: ridOf(i), plans: ["pro"], groups: [cardTerms({ holdFull: 3_000n })] });
      await store.settle(settleAsk(request, admitted(await store.admit(request)), { amount: 1_000n }));
    }
    const { redeemed, spent_usd } = await reported(shop, batch);
    assert.deepEqual([redeemed, spent_usd], [60, "0.00006"]);
  });

  test("row 40: if a batch is voided during 200 redemptions, each code is either void or redeemed by an account and credited once", async (t) => {
    const shop = await shopOn(t, bench());
    const { store } = bench();
    const tag = await makeAccount(store, "dave", { group: "cards" });
    const codes = Array.from({ length: 200 }, (_, i) => ({ id: `rush${i}`, hash: codeHashOf(`rush${i}`) }));
    const batch = `batch_${"r".repeat(16)}`;
    await store.createCodes({ ...card(), batch }, codes, { label: "rush", count: codes.length });
    const answers: RedeemAnswer[] = [];
    // Several at a time, and some of them after the void.
    const lane = async (first: number) => {
      for (const { hash } of codes.filter((_, at) => at % 8 === first)) {
        answers.push(await store.redeem({ hash, tag }));
        await setImmediate();
      }
    };
    const lanes = Array.from({ length: 8 }, (_, first) => lane(first));
    const [{ json }] = await Promise.all([shop.ask("POST", `/admin/v1/code-batches/${batch}/void`), ...lanes]);
    const won = answers.filter(({ outcome }) => outcome === "redeemed").length;
    const lost = answers.filter(({ outcome }) => outcome === "void").length;
    assert.equal(won + lost, codes.length);
    assert.deepEqual([json.void, json.redeemed], [lost, won]);
    const lines = (await store.readLedger(tag, 0, 1_000)).filter(({ kind }) => kind === "card");
    assert.equal(lines.length, won);
    const total = lines.reduce((sum, { amount }) => sum + amount, 0n);
    assert.equal(total, nanoUsd(5_000_000_000n * BigInt(won)));
    assert.equal((await auditToEnd(auditAccount(store, { name: "dave", tag }))).outcome, "balanced");
  });
}

const BY = ["--redeem-by", "2027-04-12"];
const ids = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id);

async function reported(shop: Shop, id: string) {
  const {
    made,
    redeemed,
    void: voided,
    expired,
    unused,
    spent_usd,
    redeemed_quota_usd,
  } = await shop.json(...["code", "batch", "report", id]);
  return { made, redeemed, void: voided, expired, unused, spent_usd, redeemed_quota_usd };
}

test("an invalid batch request is refused with its reason, and no code is created", async (t) => {
  const bench = await embeddedBench();
  t.after(() => bench.close());
  const shop = await shopOn(t, bench);
  shop.setTime(NOON_MS);
  const good = { card: "day", count: 1, label: "fair", redeem_by: "2027-04-10" };
  const bad: readonly (readonly [changes: object, code: string, words: RegExp])[] = [
    [{ redeem_by: "2027-04-09" }, "malformed", /`redeem_by` must be today or a later day/],
    [{ redeem_by: "2027-02-30" }, "malformed", /`redeem_by` must be a day that exists/],
    [{ redeem_by: "tomorrow" }, "malformed", /`redeem_by` must be a UTC day/],
    [{ redeem_by: null }, "malformed", /`redeem_by`/],
    [{ label: "x".repeat(129) }, "malformed", /`label` must be .* 1 to 128/],
    [{ label: "" }, "malformed", /`label`/],
    [{ label: "two\nlines" }, "malformed", /`label`/],
    [{ label: "back\u202ewards" }, "malformed", /`label`/],
    [{ count: 0 }, "malformed", /`count`/],
    [{ count: 1_001 }, "malformed", /`count`/],
    [{ card: "dya" }, "unknown_card", /`card` names a card that the configuration does not have/],
  ];
  for (const [changes, code, words] of bad) {
    const answer = await shop.ask("POST", "/admin/v1/codes", { ...good, ...changes });
    assert.deepEqual([answer.status, answer.json.error?.code], [400, code], JSON.stringify(changes));
    assert.match(answer.json.error.message, words);
  }
  assert.equal((await bench.store.listCodes(undefined, 1)).items.length, 0);
  assert.equal((await bench.store.listBatches(undefined, 1)).items.length, 0);
  const unknownBatch = `batch_${"0".repeat(16)}`;
  for (const command of ["show", "void", "report"]) {
    const ran = await shop.tollgate("code", "batch", command, unknownBatch);
    assert.deepEqual([ran.status, /no batch with the id/.test(ran.err)], [1, true], command);
  }
  assert.equal((await shop.ask("GET", "/admin/v1/code-batches/nothing")).status, 400);
  const made = await shop.ask("POST", "/admin/v1/codes", { ...good, label: "x".repeat(128) });
  assert.equal(made.status, 201, "the current day counts as a future day, and a label may have 128 characters");
});

test("the same request again creates no second batch", async (t) => {
  const bench = await embeddedBench();
  t.after(() => bench.close());
  const shop = await shopOn(t, bench);
  const asked = { card: "day", count: 2, label: "fair", idempotency_id: "order-1" };
  const first = await shop.ask("POST", "/admin/v1/codes", asked);
  const again = await shop.ask("POST", "/admin/v1/codes", asked);
  assert.deepEqual([first.status, again.status, again.json.error.code], [201, 409, "codes_exist"]);
  assert.deepEqual(ids((await bench.store.listBatches(undefined, 10)).items), [first.json.batch_id]);
  assert.equal((await bench.store.getCode(first.json.items[1].id))?.batch, first.json.batch_id);
});
