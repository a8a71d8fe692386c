/** Accounts are renamed, labelled, suspended, resumed and closed. */
import assert from "node:assert/strict";
import test from "node:test";
import { TOTAL_MAX } from "../../../src/store/checks.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { type AccountChange, LABELS_MAX } from "../../../src/store/records.ts";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import {
  admitAsk,
  admitted,
  causeOf,
  codeHashOf,
  DAY_MS,
  hashOf,
  makeAccount,
  ridOf,
  settleAsk,
  tagOf,
  terms,
} from "./asks.ts";
import type { Ask } from "./contract.ts";

export function accountTests(ask: Ask): void {
  test("a suspended account's keys are refused until it is resumed, and running requests are charged", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Asuspend", { funds: 1_000n });
    await store.createKey(tag, { id: "key_other", hash: hashOf("other"), group: "big" });
    const running = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(running));
    const suspended = await store.changeAccount(tag, { status: "suspended" });
    assert.ok(typeof suspended === "object");
    assert.equal(suspended.status, "suspended");
    assert.ok(Math.abs(suspended.revision - nowMs()) < 60_000, "a revision is the store's time");
    for (const keyHash of [hashOf("key"), hashOf("other")]) {
      assert.equal(causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(2), keyHash }))), "suspended");
      assert.equal((await store.readKey(tag, keyHash))?.key.status, "suspended");
    }
    const charged = await store.settle(settleAsk(running, permit, { amount: 30n }));
    assert.equal(charged.outcome, "settled");
    const statuses = (await store.listKeys(tag)).map(({ status }) => status);
    assert.deepEqual(statuses, ["normal", "normal"], "the status of the keys themselves has not changed");
    await store.revokeKey(tag, "key_other");
    assert.equal(
      causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(3), keyHash: hashOf("other") }))),
      "revoked_key",
    );
    const resumed = await store.changeAccount(tag, { status: "normal" });
    assert.ok(typeof resumed === "object" && resumed.revision > suspended.revision);
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(4) })));
    assert.equal(await store.changeAccount(tagOf("Anone"), { status: "suspended" }), undefined);
  });

  test("a suspended key stays suspended when its account is resumed", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Atwice");
    await store.changeKey(tag, "key_Atwice", { status: "suspended" });
    await store.changeAccount(tag, { status: "suspended" });
    await store.changeAccount(tag, { status: "normal" });
    assert.equal(causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(1) }))), "suspended");
  });

  test("labels are set and removed one by one, and their number is limited", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Alabels");
    const labelsOf = async (labels: AccountChange["labels"]) => {
      const changed = await store.changeAccount(tag, { labels: labels ?? {} });
      return typeof changed === "object" ? changed.labels : changed;
    };
    assert.deepEqual((await store.getAccount(tag))?.labels, {});
    assert.deepEqual(await labelsOf({ team: "red", "customer.no": "4711 / ü" }), {
      team: "red",
      "customer.no": "4711 / ü",
    });
    assert.deepEqual(await labelsOf({ team: "blue", 7: "x" }), { team: "blue", "customer.no": "4711 / ü", 7: "x" });
    assert.deepEqual(await labelsOf({ "customer.no": "", none: "" }), { team: "blue", 7: "x" });
    const many = Object.fromEntries(Array.from({ length: LABELS_MAX - 2 }, (_, i) => [`l${i}`, "v"]));
    assert.equal(Object.keys((await labelsOf(many)) ?? {}).length, LABELS_MAX);
    assert.equal(await labelsOf({ more: "v" }), "too_many");
    assert.equal(Object.keys((await store.getAccount(tag))?.labels ?? {}).length, LABELS_MAX);
    assert.deepEqual(
      await labelsOf({ team: "", more: "v", ...Object.fromEntries(Object.keys(many).map((n) => [n, ""])) }),
      {
        7: "x",
        more: "v",
      },
    );
    assert.deepEqual(await labelsOf({ 7: "", more: "" }), {});
    await store.changeAccount(tag, { labels: { team: "red" } });
    const suspended = await store.changeAccount(tag, { status: "suspended" });
    assert.deepEqual(typeof suspended === "object" && [suspended.status, suspended.labels], [
      "suspended",
      { team: "red" },
    ]);
    await assert.rejects(store.changeAccount(tag, { labels: { "a b": "v" } }), RangeError);
  });

  test("a renamed account is found by its new name only, and the old name is free", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aname");
    await makeAccount(store, "Ataken");
    const renamed = await store.renameAccount(tag, "A new name");
    assert.ok(typeof renamed === "object");
    assert.deepEqual([renamed.name, renamed.tag], ["A new name", tag]);
    assert.deepEqual(await store.findAccount("A new name"), renamed);
    assert.equal(await store.findAccount("Aname"), undefined);
    assert.equal(await store.findAccountName("Aname"), undefined);
    assert.equal(await store.renameAccount(tag, "Ataken"), "taken");
    assert.deepEqual(await store.getAccount(tag), renamed, "the failed rename changed nothing");
    const again = await store.renameAccount(tag, "A new name");
    assert.ok(
      typeof again === "object" && again.nameRevision > renamed.nameRevision,
      "the same name again gets a higher revision",
    );
    const other = await store.createAccount({ tag: tagOf("Aother"), name: "Aname", plan: "free" });
    assert.ok(other !== "exists");
    assert.equal((await store.findAccount("Aname"))?.tag, tagOf("Aother"));
    assert.equal(await store.renameAccount(tag, "Aname"), "taken");
    assert.equal(await store.renameAccount(tagOf("Anone"), "nobody"), undefined);
    const names = (await store.listAccountNames("A", 200)).items.filter((one) => one.tag === tag);
    assert.deepEqual(names, [{ name: "A new name", tag }]);
    const listed = (await store.listAccounts("A", 200)).items.filter((one) => one.tag === tag);
    assert.deepEqual(
      listed.map(({ name }) => name),
      ["A new name"],
    );
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1) })));
  });

  test("an audit of a renamed account has no findings, by the old or the new name", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Abefore");
    await store.renameAccount(tag, "A after");
    for (const name of ["Abefore", "A after"]) {
      const { findings } = await auditToEnd(auditAccount(store, { name, tag }));
      assert.deepEqual(findings, [], name);
    }
  });

  test("of ten accounts renamed to one name at once one succeeds, and of ten renames of one account one remains", async () => {
    const { store } = ask();
    const tags = await Promise.all(Array.from({ length: 10 }, (_, i) => makeAccount(store, `Arace${i}`)));
    const tries = await Promise.all(tags.map((tag) => store.renameAccount(tag, "A race")));
    const winners = tries.filter((answer) => typeof answer === "object" && answer.name === "A race");
    assert.equal(winners.length, 1);
    const [tag] = tags as [(typeof tags)[number]];
    await Promise.all(Array.from({ length: 10 }, (_, i) => store.renameAccount(tag, `A turn ${i}`)));
    const name = (await store.getAccount(tag))?.name ?? "";
    assert.equal((await store.findAccount(name))?.tag, tag);
    const names = (await store.listAccountNames("A", 200)).items.filter((one) => one.tag === tag);
    assert.deepEqual(names, [{ name, tag }]);
    for (let i = 0; i < 10; i++) {
      if (name !== `A turn ${i}`)
        assert.equal(await store.findAccountName(`A turn ${i}`), undefined, `A turn ${i} is free`);
    }
  });

  test("a closed account has no working key and takes no payment, but can be paid out and read", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aclose", { funds: 100n });
    await store.createKey(tag, { id: "key_off", hash: hashOf("off"), group: "big" });
    await store.changeKey(tag, "key_off", { status: "suspended" });
    const running = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(running));
    await store.changeAccount(tag, { labels: { team: "red" } });
    const closed = await store.closeAccount(tag);
    assert.deepEqual([closed?.status, closed?.labels], ["closed", { team: "red" }]);
    assert.deepEqual(await store.closeAccount(tag), closed, "closing it again changes nothing");
    for (const keyHash of [hashOf("key"), hashOf("off")]) {
      assert.equal(causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(2), keyHash }))), "revoked_key");
    }
    const statuses = (await store.listKeys(tag)).map(({ status }) => status);
    assert.deepEqual(statuses, ["revoked", "revoked"]);
    assert.equal(await store.createKey(tag, { id: "key_late", hash: hashOf("late"), group: "big" }), undefined);
    assert.deepEqual(await store.changeAccount(tag, { status: "normal", labels: { team: "" } }), closed);
    assert.deepEqual(await store.renameAccount(tag, "A other"), closed);
    assert.equal((await store.settle(settleAsk(running, permit, { amount: 30n }))).outcome, "settled");
    const topup = { id: "late", amount: 5n, kind: "topup", note: "" } as const;
    assert.deepEqual(await store.credit(tag, topup), { outcome: "closed" });
    assert.deepEqual(await store.credit(tag, { ...topup, again: true }), { outcome: "credited", balance: 75n });
    assert.deepEqual(
      await store.credit(tag, topup),
      { outcome: "duplicate", balance: 75n },
      "a payment that was counted is reported as a duplicate",
    );
    const payOut = { id: "out", amount: -75n, kind: "adjust", note: "paid out" } as const;
    assert.deepEqual(await store.credit(tag, payOut), { outcome: "credited", balance: 0n });
    assert.equal((await store.readLedger(tag, 0, 100)).at(-1)?.memo, "paid out");
    assert.equal((await store.findAccount("Aclose"))?.balance, 0n);
    assert.equal(await store.closeAccount(tagOf("Anone")), undefined);
  });

  test("a closed account cannot redeem codes, and keeps what it has redeemed", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Acodes");
    const facts = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, starts: "at_redemption" } as const;
    const codes = ["Ahad", "Alate"].map((id) => ({ id, hash: codeHashOf(id) }));
    await store.createCodes({ ...facts, quota: nanoUsd(5n) }, codes);
    await store.redeem({ hash: codeHashOf("Ahad"), tag });
    await store.closeAccount(tag);
    assert.equal((await store.redeem({ hash: codeHashOf("Ahad"), tag })).outcome, "again");
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Alate"), tag }), { outcome: "closed_account" });
    assert.equal((await store.getCode("Alate"))?.state, "unused");
    assert.equal((await store.listCards(tag))?.cards.length, 1);
  });

  test("repeated changes, renames and closings of an account count only with a higher revision", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Areplay");
    const laterMs = nowMs() + 1_000_000;
    const seen = async () => {
      const { name, status, labels } = (await store.getAccount(tag)) ?? {};
      return [name, status, labels];
    };
    await store.changeAccount(tag, { status: "suspended", labels: { a: "1" } }, laterMs);
    await store.changeAccount(tag, { status: "normal", labels: { b: "2" } }, laterMs);
    assert.deepEqual(await seen(), ["Areplay", "suspended", { a: "1" }]);
    await store.changeAccount(tag, { status: "normal", labels: { b: "2" } }, laterMs + 1);
    assert.deepEqual(await seen(), ["Areplay", "normal", { b: "2" }], "repeated labels replace all labels");
    await store.renameAccount(tag, "A later", laterMs);
    await store.renameAccount(tag, "A earlier", laterMs - 1);
    assert.deepEqual(await seen(), ["A later", "normal", { b: "2" }]);
    const changed = await store.changeAccount(tag, { status: "suspended" });
    assert.ok(typeof changed === "object" && changed.revision > laterMs + 1, "a new change gets a higher revision");
    await store.closeAccount(tag, 5);
    await store.renameAccount(tag, "A last", laterMs + 9);
    assert.deepEqual(await seen(), ["A last", "closed", { b: "2" }], "a name from before the closing");
  });

  test("the total paid into an account stays below 2^63, however much of it is spent", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Aended", { funds: 0n });
    const pay = async (id: string, amount: bigint) =>
      (await store.credit(tag, { id, amount: nanoUsd(amount), kind: "topup", note: "" })).outcome;
    const spend = async (number: number) => {
      const running = admitAsk({
        tag,
        requestId: ridOf(number),
        groups: [terms({ holdFull: NANO_USD_MAX, holdMin: 1n })],
      });
      await store.settle(settleAsk(running, admitted(await store.admit(running)), { amount: NANO_USD_MAX }));
    };
    for (let paid = 0n; paid < TOTAL_MAX; paid += NANO_USD_MAX) {
      assert.equal(await pay(`p${paid}`, NANO_USD_MAX), "credited");
      await spend(Number(paid / NANO_USD_MAX));
    }
    assert.deepEqual([await pay("one", 1n), await pay("most", NANO_USD_MAX)], ["refused", "refused"]);
    const account = await store.getAccount(tag);
    assert.deepEqual([account?.balance, account?.spent], [0n, TOTAL_MAX]);
  });
}
