/** Brute force against the login: wrong admin tokens are counted by address and logged. */
import assert from "node:assert/strict";
import test from "node:test";
import { makeAccess } from "../../../src/console/access.ts";
import { GuessBudget, TOKEN_GUESS_LIMITS } from "../../../src/console/guess-budget.ts";
import { Secret } from "../../../src/values/secret.ts";
import { HandClock } from "../../e2e/protocol/whole/hand-clock.ts";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

const WRONG = { authorization: "Bearer not-the-token-at-all" };

test("an address that guesses gets 429 for a minute, and the right token still works from it", async (t) => {
  const clock = new HandClock();
  const reasons: string[] = [];
  const blocked: string[] = [];
  const { ask } = await startConsole(t, {
    clock,
    onAccessRefused: (reason) => reasons.push(reason),
    onTokenGuesses: (from) => blocked.push(from),
  });
  for (let i = 0; i < TOKEN_GUESS_LIMITS.failuresPerMinute; i++) {
    assert.equal((await ask("GET", "/admin/v1/accounts", undefined, WRONG)).status, 401);
  }
  // `ask` itself asks for the end of the connection.
  const stopped = await ask("GET", "/admin/v1/accounts", undefined, { ...WRONG, connection: "keep-alive" });
  assert.equal(stopped.status, 429);
  assert.equal(stopped.json.error.code, "too_many_wrong_tokens");
  assert.equal(stopped.headers.get("retry-after"), "60");
  assert.equal(stopped.headers.get("connection"), "close", "a wrong token closes the connection");
  assert.equal(
    (await ask("GET", "/admin/v1/accounts")).status,
    200,
    "the correct token still works from the blocked address",
  );
  assert.equal((await ask("GET", "/metrics", undefined, { ...WRONG, "x-forwarded-for": "203.0.113.7" })).status, 429);
  assert.equal(
    (await ask("GET", "/admin/v1/accounts", undefined, { authorization: "" })).status,
    401,
    "a missing token is not a guess",
  );
  assert.equal((await ask("GET", "/healthz")).status, 200);
  assert.deepEqual(blocked, ["127.0.0.1"], "the blocked address is reported once");
  const counts = Object.groupBy(reasons, (reason) => reason);
  assert.deepEqual(
    Object.entries(counts).map(([reason, all]) => [reason, all?.length]),
    [
      ["wrong_token", TOKEN_GUESS_LIMITS.failuresPerMinute],
      ["too_many_wrong_tokens", 2],
      ["missing_token", 1],
    ],
  );
  clock.advance(60_000);
  assert.equal((await ask("GET", "/admin/v1/accounts", undefined, WRONG)).status, 401);
});

test("another address has a count of its own, an IPv6 network counts as one address, and a unix socket has no limit", () => {
  const budget = new GuessBudget(new HandClock(), { ...TOKEN_GUESS_LIMITS, failuresPerMinute: 3 });
  const { admin } = makeAccess(new Secret(ADMIN_TOKEN), { budget, onTooMany: () => {} });
  const peer = (address: string, token: string, unix = false) => ({
    address: unix ? undefined : address,
    unix,
    headers: { authorization: `Bearer ${token}` },
  });
  for (const last of ["1", "2", "3"]) {
    assert.throws(() => admin(peer(`2001:db8:1:2:${last}::`, "wrong")), { status: 401 });
    assert.throws(() => admin(peer("", "wrong", true)), { status: 401 });
    assert.throws(() => admin(peer("", "wrong", true)), { status: 401 });
  }
  assert.throws(() => admin(peer("2001:db8:1:2:ffff::", "wrong")), { status: 429 });
  assert.doesNotThrow(() => admin(peer("2001:db8:1:2:ffff::", ADMIN_TOKEN)));
  assert.throws(() => admin(peer("2001:db8:1:3::", "wrong")), { status: 401 });
  assert.throws(() => admin(peer("203.0.113.7", "wrong")), { status: 401 });
  assert.throws(() => admin(peer("", "wrong", true)), { status: 401 });
  assert.doesNotThrow(() => admin(peer("2001:db8:1:3::", ADMIN_TOKEN)));
  assert.doesNotThrow(() => admin(peer("203.0.113.7", ADMIN_TOKEN)));
  assert.doesNotThrow(() => admin(peer("", ADMIN_TOKEN, true)));
});
