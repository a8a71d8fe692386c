/** Who guesses is stopped for a while, by address; a session asks so often and not more. */
import assert from "node:assert/strict";
import test from "node:test";
import { SESSION_ASKS_PER_MINUTE } from "../../../../src/console/sign-in/attempts.ts";
import { startOwners } from "./owners.ts";

const WRONG = { token: `0000000000.${"A".repeat(32)}` };

test("after ten failures within a minute an address waits, and no other one does", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const guesser = owners.browser({ address: "2001:db8::1" });
  for (let n = 0; n < 10; n++) assert.equal((await guesser.post("/sign-in/link", WRONG)).status, 401);
  // The same holder's next address, and another way in.
  guesser.where = { address: "2001:db8::2" };
  const token = await owners.link(tag);
  const stopped = await guesser.post("/sign-in/link", { token });
  assert.deepEqual([stopped.status, stopped.code, stopped.headers["retry-after"]], [429, "too_many_attempts", "60"]);
  assert.equal((await guesser.post("/sign-in/passkey/options")).status, 429);
  assert.equal(owners.log.filter(({ what }) => what === "session.begin").length, 10, "a flood fills no log");
  assert.equal((await owners.browser({ address: "192.0.2.8" }).post("/sign-in/link", { token })).status, 200);
  await owners.clock.advance(60_000);
  assert.equal((await guesser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
});

test("over a unix socket nobody waits for what another one has guessed", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const browser = owners.browser({ address: "unix" });
  for (let n = 0; n < 30; n++) assert.equal((await browser.post("/sign-in/link", WRONG)).status, 401);
  assert.equal((await browser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
  assert.equal((await browser.get("/access")).json.sessions[0].from, "unix");
});

test("an address asks for 60 questions a minute, and all addresses together for 1,200", async (t) => {
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

test("a session asks so often within a minute; another one is not held back by it", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const [one, other] = [owners.browser(), owners.browser()];
  for (const browser of [one, other]) await browser.post("/sign-in/link", { token: await owners.link(tag) });
  for (let n = 0; n < SESSION_ASKS_PER_MINUTE; n++) assert.equal((await one.get("/session")).status, 200);
  const stopped = await one.get("/session");
  assert.deepEqual([stopped.status, stopped.code, stopped.headers["retry-after"]], [429, "too_many_requests", "1"]);
  assert.equal((await other.get("/session")).status, 200);
  await owners.clock.advance(1_000);
  assert.equal((await one.get("/session")).status, 200);
});
