/** Guessing is blocked for a while, by address; a session may send a limited number of requests. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ACCOUNT_ASKS_PER_MINUTE, SESSION_ASKS_PER_MINUTE } from "../../../../src/console/sign-in/attempts.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { holding } from "../test-store.ts";
import { type Browser, startOwners } from "./owners.ts";

const WRONG = { token: `0000000000.${"A".repeat(32)}` };

test("after ten failures within a minute an address has to wait, and no other address does", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const guesser = owners.browser({ address: "2001:db8::1" });
  for (let n = 0; n < 10; n++) assert.equal((await guesser.post("/sign-in/link", WRONG)).status, 401);
  // The next address of the same network, and another way to sign in.
  guesser.where = { address: "2001:db8::2" };
  const token = await owners.link(tag);
  const stopped = await guesser.post("/sign-in/link", { token });
  assert.deepEqual([stopped.status, stopped.code, stopped.headers["retry-after"]], [429, "too_many_attempts", "60"]);
  assert.equal((await guesser.post("/sign-in/passkey/options")).status, 429);
  assert.equal(owners.log.filter(({ what }) => what === "session.begin").length, 10, "a flood writes no log lines");
  assert.equal((await owners.browser({ address: "192.0.2.8" }).post("/sign-in/link", { token })).status, 200);
  await owners.clock.advance(60_000);
  assert.equal((await guesser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
});

test("over a unix socket, neither failures nor attempts of one client block another", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const browser = owners.browser({ address: "unix" });
  for (let n = 0; n < 70; n++) assert.equal((await browser.post("/sign-in/link", WRONG)).status, 401);
  assert.equal((await browser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
  assert.equal((await browser.get("/access")).json.sessions[0].from, "unknown");
});

test("an address may request 60 challenges a minute, and all addresses together 1,200", async (t) => {
  const owners = await startOwners(t);
  const asks = async (address: string, count: number) => {
    const browser = owners.browser({ address });
    let good = 0;
    for (let n = 0; n < count; n++) good += (await browser.post("/sign-in/passkey/options")).status === 200 ? 1 : 0;
    return good;
  };
  assert.equal(await asks("192.0.2.1", 70), 60);
  for (let n = 1; n < 20; n++) assert.equal(await asks(`198.51.100.${n}`, 60), 60);
  assert.equal(await asks("203.0.113.1", 3), 0);
});

test("a session may send a limited number of requests per minute, and another session is not affected", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const [one, other] = [owners.browser(), owners.browser()];
  for (const browser of [one, other]) await browser.post("/sign-in/link", { token: await owners.link(tag) });
  for (let n = 0; n < SESSION_ASKS_PER_MINUTE; n++) assert.equal((await one.get("/session")).status, 200);
  const stopped = await one.get("/session");
  assert.deepEqual([stopped.status, stopped.code, stopped.headers["retry-after"]], [429, "too_many_requests", "1"]);
  assert.equal((await other.get("/session")).status, 200);
  for (let n = 0; n < 50; n++) assert.equal((await one.get("/session")).status, 429);
  await owners.clock.advance(1_000);
  assert.equal((await one.get("/session")).status, 200, "requests that were refused do not prolong the wait");
});

test("all sessions of an account share a limit, and requests of an ended session do not count", async (t) => {
  const owners = await startOwners(t);
  const [tag, other] = [await owners.account("alice"), await owners.account("bob")];
  const browsers = [owners.browser(), owners.browser(), owners.browser()];
  for (const browser of browsers) await browser.post("/sign-in/link", { token: await owners.link(tag) });
  const [one, two, three] = browsers as [Browser, Browser, Browser];
  const ended = owners.browser();
  await ended.post("/sign-in/link", { token: await owners.link(tag) });
  const stolen = new Map(ended.cookies);
  await ended.post("/sign-out");
  for (const [name, value] of stolen) ended.cookies.set(name, value);
  for (let n = 0; n < 50; n++) assert.equal((await ended.get("/session")).code, "signed_out");
  // One of them was the sign-out.
  for (let n = 1; n < ACCOUNT_ASKS_PER_MINUTE; n++) {
    assert.equal((await (n % 2 === 0 ? one : two).get("/session")).status, 200, String(n));
  }
  const stopped = await three.get("/session");
  assert.deepEqual([stopped.status, stopped.code, stopped.headers["retry-after"]], [429, "too_many_requests", "1"]);
  const bob = owners.browser();
  await bob.post("/sign-in/link", { token: await owners.link(other) });
  assert.equal(await bob.account(), "bob");
  await owners.clock.advance(1_000);
  assert.equal(await three.account(), "alice");
});

test("an owner may create a limited number of keys per minute, also with parallel requests", async (t) => {
  // Takes a turn, like a store in another process.
  const owners = await startOwners(t, {}, (store) => holding(store, "createKey", () => turn()));
  const browser = owners.browser();
  for (const name of ["alice", "bob"]) await owners.account(name);
  const tag = (await owners.store.findAccount("alice"))?.tag as AccountTag;
  await browser.post("/sign-in/link", { token: await owners.link(tag) });
  const [group] = (await browser.get("/session")).json.groups as string[];
  const make = () => browser.post("/accounts/alice/keys", { group });
  const answers = await Promise.all(Array.from({ length: 40 }, make));
  assert.equal(answers.filter(({ status }) => status === 201).length, 30);
  const refused = answers.find(({ status }) => status !== 201);
  assert.deepEqual(
    [refused?.status, refused?.code, refused?.headers["retry-after"]],
    [429, "too_many_keys_made", "60"],
  );
  assert.equal((await owners.store.listKeys(tag)).length, 30);
  await owners.clock.advance(60_000);
  assert.equal((await make()).status, 201);
});
