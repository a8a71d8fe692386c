/**
 * What a receiver answers, and what happens to the notice: delivered, retried with growing pauses, given up, or
 * stopped.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { Webhook } from "standardwebhooks";
import { messageOf, signedHeaders } from "../../../src/notices/message.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { newRequestId, printRequestId } from "../../../src/values/request-id.ts";
import { Secret } from "../../../src/values/secret.ts";
import { webhookSecret } from "../../e2e/money/notices/receiver.ts";
import { refusingPort } from "../../rig/refusing-port.ts";
import { makeAccount, tagOf } from "../store/asks.ts";
import { rest, settingsOf, startRig, until } from "./rig.ts";

const DAY_MS = 86_400_000;

test("each secret signs, and the official library accepts each signature and no other", () => {
  const notice = {
    outbox: tagOf("A"),
    name: "a",
    kind: "balance_low",
    ref: "r",
    data: {},
    atMs: 0,
    dropped: 0,
  } as const;
  const message = messageOf(notice);
  const secrets = ["old", "new"].map(webhookSecret);
  const headers = signedHeaders(
    message,
    secrets.map((text) => new Secret(text)),
    Date.now(),
  );
  for (const secret of secrets)
    assert.deepEqual(new Webhook(secret).verify(message.body, { ...headers }), JSON.parse(message.body));
  assert.throws(() => new Webhook(webhookSecret("other")).verify(message.body, { ...headers }));
  assert.throws(() => new Webhook(secrets[0] as string).verify(`${message.body} `, { ...headers }));
  assert.match(message.id, /^msg_[A-Za-z0-9_-]{27}$/);
  assert.equal(messageOf({ ...notice, atMs: 5, dropped: 2 }).id, message.id, "the id depends on the event only");
  assert.notEqual(messageOf({ ...notice, ref: "s" }).id, message.id);
  assert.notEqual(messageOf({ ...notice, outbox: tagOf("B") }).id, message.id);
});

test("a low balance names its cause with its id: that of a request as the client knows it, that of an adjustment as it was sent", () => {
  const requestId = newRequestId(Date.UTC(2026, 10, 28), randomBytes);
  const said = (ref: string, data: Readonly<Record<string, string>>) =>
    JSON.parse(messageOf({ outbox: tagOf("A"), name: "a", kind: "balance_low", ref, data, atMs: 0, dropped: 0 }).body)
      .data;
  const { by, reference } = said(requestId, { by: "request" });
  assert.deepEqual([by, reference], ["request", printRequestId(requestId)]);
  const uuid = "0123456789abcdef0123456789abcdef";
  assert.deepEqual(
    [said(uuid, { by: "adjustment" }).by, said(uuid, { by: "adjustment" }).reference],
    ["adjustment", uuid],
  );
  assert.equal(
    said(requestId, {}).reference,
    printRequestId(requestId),
    "a notice of an earlier version has its request id as reference",
  );
});

test("accounts with a long backlog take turns with one that has a single notice", async (t) => {
  const { clock, store, receiver } = await startRig(t);
  const add = (tag: Parameters<typeof store.addNotice>[0], ref: string) =>
    store.addNotice(tag, { kind: "balance_low", ref, data: { balance: "1", below: "2" } });
  // As many accounts as are served at a time.
  for (const name of "ABCDEFGH") {
    const tag = await makeAccount(store, `Long${name}`);
    for (let i = 1; i <= 40; i++) await add(tag, `${name}${i}`);
  }
  await add(await makeAccount(store, "Single"), "single");
  await until(clock, () => receiver.log.length === 8 * 40 + 1);
  const place = receiver.log.findIndex(({ reference }) => reference === "single");
  assert.ok(place < (8 * 40) / 2, `${place} came before it`);
});

test("a failed notice is retried with growing pauses, and the next notice waits for it", async (t) => {
  const { clock, receiver, addNotice, log, metric } = await startRig(t);
  receiver.answer = () => ({ status: 503 });
  await addNotice("first");
  await addNotice("second");
  await until(clock, () => receiver.log.length === 1);
  let tries = 1;
  for (const ms of [5_000, 30_000, 120_000, 600_000, 3_600_000, 10_800_000, 10_800_000]) {
    await rest(clock);
    await clock.advance(ms - 1);
    await rest(clock);
    assert.equal(receiver.log.length, tries, `not before ${ms} ms`);
    await clock.advance(1);
    await until(clock, () => receiver.log.length === tries + 1);
    tries += 1;
  }
  assert.deepEqual(new Set(receiver.log.map(({ reference }) => reference)), new Set(["first"]));
  assert.equal(new Set(receiver.log.map(({ id }) => id)).size, 1);
  receiver.answer = () => ({ status: 200 });
  await rest(clock);
  await clock.advance(10_800_000);
  await until(clock, () => receiver.log.length === tries + 2);
  assert.deepEqual(
    receiver.log.slice(-2).map(({ reference }) => reference),
    ["first", "second"],
  );
  await rest(clock);
  assert.equal(await metric('notices_delivered_total{kind="balance_low"}'), 2);
  assert.equal(await metric('notice_failures_total{cause="answer"}'), tries);
  assert.ok(!JSON.stringify(log).includes("for=tests"), "no more of the address than its origin is logged");
});

test("a receiver that asks for more time gets it, given in seconds or as a date", async (t) => {
  const { clock, receiver, addNotice } = await startRig(t);
  receiver.answer = () => ({ status: 429, headers: { "retry-after": "60" } });
  await addNotice("first");
  await until(clock, () => receiver.log.length === 1);
  await rest(clock);
  await clock.advance(59_999);
  await rest(clock);
  assert.equal(receiver.log.length, 1);
  receiver.answer = () => {
    const date = new Date(clock.wallMs() + 100_000).toUTCString();
    return { status: 503, headers: { "retry-after": date } };
  };
  await clock.advance(1);
  await until(clock, () => receiver.log.length === 2);
  await rest(clock);
  await clock.advance(98_000);
  await rest(clock);
  assert.equal(receiver.log.length, 2);
  await clock.advance(2_000);
  await until(clock, () => receiver.log.length === 3);
});

test("the failures of one account delay no other", async (t) => {
  const { clock, store, receiver, addNotice, tag } = await startRig(t);
  receiver.answer = ({ account }) => ({ status: account === "Told" ? 500 : 200 });
  await addNotice("first");
  await until(clock, () => receiver.log.length === 1);
  await store.createAccount({ tag: tagOf("Else"), name: "Else", plan: "free" });
  await store.addNotice(tagOf("Else"), { kind: "balance_low", ref: "e", data: {} });
  await until(clock, () => receiver.log.some(({ account, status }) => account === "Else" && status === 200));
  assert.equal((await store.readNotices(tag, 5)).notices.length, 1);
});

test("once a receiver accepts a notice again, the other accounts are retried soon, and not hours later", async (t) => {
  const { clock, store, receiver, addNotice } = await startRig(t);
  receiver.answer = () => ({ status: 502 });
  await addNotice("first");
  for (const ms of [5_000, 30_000, 120_000, 600_000]) {
    await rest(clock);
    await clock.advance(ms - 1);
    await rest(clock);
    await clock.advance(1);
  }
  await until(clock, () => receiver.log.length === 5);
  await rest(clock);
  receiver.answer = () => ({ status: 200 });
  await store.createAccount({ tag: tagOf("Else"), name: "Else", plan: "free" });
  await store.addNotice(tagOf("Else"), { kind: "balance_low", ref: "e", data: {} });
  await until(clock, () => receiver.log.at(-1)?.account === "Else");
  await rest(clock);
  assert.equal(receiver.log.length, 6, "the notices are not sent all at once");
  await clock.advance(30_000);
  await until(clock, () => receiver.log.length === 7);
  assert.deepEqual([receiver.log.at(-1)?.account, receiver.log.at(-1)?.status], ["Told", 200]);
});

test("a requested pause is kept even then, and a receiver that accepts only some notices is not retried ever earlier", async (t) => {
  const { clock, store, receiver, addNotice } = await startRig(t);
  const add = async (name: string) => {
    const tag = await makeAccount(store, name);
    await store.addNotice(tag, { kind: "balance_low", ref: name, data: { balance: "1", below: "2" } });
  };
  const triesOf = (name: string) => receiver.log.filter(({ account }) => account === name).length;
  receiver.answer = ({ account }) => {
    if (account === "Told") return { status: 429, headers: { "retry-after": "3600" } };
    return { status: account?.startsWith("Good") ? 200 : 503 };
  };
  await addNotice("first");
  const bad = ["Bad1", "Bad2", "Bad3"];
  for (const name of bad) await add(name);
  // In steps, so that the lease on the delivery does not expire.
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      await rest(clock);
      await clock.advance(1_000);
    }
    await rest(clock);
  };
  await until(clock, () => receiver.log.length === 4);
  await pass(5_000);
  assert.deepEqual(bad.map(triesOf), [2, 2, 2]);
  await add("Good1");
  // The random draw is one half: the others are due after 15 seconds instead of 30.
  await pass(16_000);
  assert.deepEqual(["Good1", "Told", ...bad].map(triesOf), [1, 1, 3, 3, 3]);
  await add("Good2");
  await pass(40_000);
  assert.deepEqual(["Good2", "Told", ...bad].map(triesOf), [1, 1, 3, 3, 3]);
});

test("retries of a notice that is never accepted are not hastened by accepted ones", async (t) => {
  const { clock, store, receiver, addNotice } = await startRig(t);
  receiver.answer = ({ account }) => ({ status: account === "Told" ? 400 : 200 });
  await addNotice("first");
  for (const ms of [5_000, 30_000, 120_000]) {
    await rest(clock);
    const tag = await makeAccount(store, `Else${ms}`);
    await store.addNotice(tag, { kind: "balance_low", ref: `${ms}`, data: { balance: "1", below: "2" } });
    await until(clock, () => receiver.log.some(({ reference }) => reference === `${ms}`));
    // A jump in time ends the lease on the delivery, which is then renewed.
    await clock.advance(ms - 1);
    await rest(clock);
    await clock.advance(1);
  }
  await until(clock, () => receiver.log.filter(({ account }) => account === "Told").length === 4);
  await rest(clock);
  await clock.advance(599_999);
  await rest(clock);
  assert.equal(receiver.log.filter(({ account }) => account === "Told").length, 4);
});

test("a notice held in memory survives a reload that removes the receiver and one that adds it again", async (t) => {
  // No notice is written to a store that has lost data.
  const addNotice = () => Promise.reject(new StoreError("older", "the store lost data"));
  const { clock, receiver, notices } = await startRig(t, { calls: { addNotice } });
  receiver.answer = () => ({ status: 503 });
  notices.note("books_off", { finding: "store_older" });
  await until(clock, () => receiver.log.length === 1);
  await rest(clock);
  notices.apply(undefined);
  await clock.advance(5_000);
  await rest(clock);
  receiver.answer = () => ({ status: 200 });
  notices.apply(settingsOf(receiver));
  await rest(clock);
  assert.deepEqual(
    receiver.log.map(({ status }) => status),
    [503, 200],
  );
});

test("after three days a notice is given up, the log says so, and the next one is sent", async (t) => {
  const { clock, receiver, addNotice, log, metric } = await startRig(t);
  receiver.answer = ({ reference }) => ({ status: reference === "first" ? 500 : 200 });
  await addNotice("first");
  await until(clock, () => receiver.log.length === 1);
  await rest(clock);
  await clock.advance(3 * DAY_MS + 1);
  await addNotice("second");
  await until(clock, () => receiver.log.some(({ reference }) => reference === "second"));
  assert.equal(log.filter(({ event, kind }) => event === "notice_given_up" && kind === "balance_low").length, 1);
  assert.equal(await metric('notices_lost_total{cause="given_up"}'), 1);
});

test("the notice after one that was given up begins with the shortest pause", async (t) => {
  const { clock, receiver, notices, addNotice, tag } = await startRig(t);
  receiver.answer = () => ({ status: 500 });
  await addNotice("first");
  await until(clock, () => notices.laneOf(tag)?.failures === 1);
  await clock.advance(1_000);
  await addNotice("second");
  await clock.advance(3 * DAY_MS - 999);
  await until(clock, () => receiver.log.at(-1)?.reference === "second" && (notices.laneOf(tag)?.nextInMs ?? 0) > 0);
  assert.equal(notices.laneOf(tag)?.nextInMs, 5_000);
});

test("a corrected secret is used at once, for waiting and for stopped notices", async (t) => {
  const wrong = { secrets: [new Secret(webhookSecret("wrong"))] };
  const { clock, receiver, notices, addNotice, tag } = await startRig(t, { settings: wrong });
  await addNotice("first");
  await until(clock, () => notices.laneOf(tag)?.failures === 1);
  assert.deepEqual([receiver.log.at(-1)?.status, notices.laneOf(tag)?.nextInMs], [401, 5_000]);
  notices.apply(settingsOf(receiver));
  assert.equal(notices.laneOf(tag)?.nextInMs, 0);
  await until(clock, () => receiver.log.at(-1)?.reference === "first");
  receiver.answer = () => ({ status: 410 });
  await addNotice("second");
  await until(clock, () => notices.status()?.stopped !== undefined);
  receiver.answer = () => ({ status: 204 });
  notices.apply(settingsOf(receiver, { secrets: ["next", "one"].map((word) => new Secret(webhookSecret(word))) }));
  assert.equal(notices.status()?.stopped, undefined);
  await until(clock, () => receiver.log.at(-1)?.status === 204);
  assert.equal(receiver.log.at(-1)?.reference, "second");
});

test("410 stops all notices; a manual retry, or another receiver, delivers them", async (t) => {
  const { clock, store, receiver, notices, addNotice, log, metric, tag } = await startRig(t);
  receiver.answer = () => ({ status: 410 });
  await addNotice("first");
  await until(clock, () => notices.status()?.stopped !== undefined);
  await addNotice("second");
  await rest(clock);
  await clock.advance(DAY_MS);
  await rest(clock);
  assert.equal(receiver.log.length, 1);
  assert.equal(await metric("notices_stopped"), 1);
  assert.equal(log.filter(({ event }) => event === "notices_stopped").length, 1);
  receiver.answer = () => ({ status: 200 });
  assert.equal(await notices.retry(), true);
  await until(clock, () => receiver.log.length === 3);
  assert.equal(await metric("notices_stopped"), 0);
  receiver.answer = () => ({ status: 410 });
  await addNotice("third");
  await until(clock, () => notices.status()?.stopped !== undefined);
  receiver.answer = () => ({ status: 200 });
  notices.apply(settingsOf(receiver, { balanceBelowNano: 1 }));
  await rest(clock);
  assert.equal(receiver.log.at(-1)?.status, 410, "the receiver is unchanged");
  notices.apply(settingsOf(receiver, { url: new Secret(`${receiver.url}&now=again`) }));
  await until(clock, () => receiver.log.at(-1)?.status === 200);
  await rest(clock);
  assert.deepEqual((await store.readNotices(tag, 5)).notices, []);
});

test("a redirect is not followed, and a test notice reports it", async (t) => {
  const asked: string[] = [];
  const elsewhere = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end();
  });
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  t.after(() => elsewhere.close());
  const { receiver, notices } = await startRig(t);
  const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/stolen`;
  receiver.answer = () => ({ status: 307, headers: { location } });
  const sent = await notices.test();
  assert.deepEqual([sent?.outcome, sent?.status], ["failed", 307]);
  assert.equal(sent?.reason, "it answered 307; redirects are not followed");
  assert.deepEqual(asked, []);
});

test("a receiver that does not answer is waited for no longer than 15 seconds", async (t) => {
  const silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = new Secret(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
  const { clock, notices } = await startRig(t, { settings: { url } });
  const asked = once(silent, "request");
  const sending = notices.test();
  await asked;
  await clock.advance(15_000);
  const sent = await sending;
  assert.deepEqual([sent?.outcome, sent?.reason], ["failed", "no answer within 15 s"]);
});

test("a refused connection is reported by the system's error code, without any part of the URL", async (t) => {
  const port = await refusingPort(t);
  const { notices } = await startRig(t, { settings: { url: new Secret(`http://127.0.0.1:${port}/secret-path`) } });
  const sent = await notices.test();
  assert.deepEqual([sent?.outcome, sent?.reason], ["failed", "no connection: ECONNREFUSED"]);
});
