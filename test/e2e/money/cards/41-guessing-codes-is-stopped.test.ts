// docs/failure-model.md row 41: an account that guesses codes is blocked after a few attempts, learns nothing from the
// answers, and is logged once.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { CodeGuesses, GuessBudget } from "../../../../src/console/guess-budget.ts";
import type { CodeFailure } from "../../../../src/console/routes/contract.ts";
import { newCode } from "../../../../src/values/code.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startConsole } from "../../../unit/console/running-console.ts";
import { openTestStore } from "../../../unit/console/test-store.ts";
import { turns } from "../../../unit/settle/rig.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { sell } from "./rig.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

test("of ten thousand guesses by one account a handful is looked up, and one alarm is raised", async (t) => {
  const real = await openTestStore(t);
  let lookUps = 0;
  const store = new Proxy(real, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      return typeof own !== "function"
        ? own
        : (...args: unknown[]) => {
            if (name === "redeem") lookUps += 1;
            return own.apply(target, args);
          };
    },
  });
  const failures: CodeFailure[] = [];
  const clock = new HandClock();
  const { ask } = await startConsole(t, { store, clock, onCodeFailure: (failure) => failures.push(failure) });
  await ask("POST", "/admin/v1/accounts", { name: "mallory" });
  const guess = () =>
    ask(
      "POST",
      "/admin/v1/accounts/mallory/redemptions",
      { code: newCode(0, randomBytes).text },
      { connection: "keep-alive" },
    );
  const statuses = new Map<number, number>();
  for (let i = 0; i < 10_000; i += 20) {
    for (const { status, headers } of await Promise.all(Array.from({ length: 20 }, guess))) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 429) assert.match(headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    }
  }
  // Of twenty at once, those that arrive first are looked up.
  assert.deepEqual(Object.fromEntries(statuses), { 404: 5, 429: 9_995 });
  assert.equal(lookUps, 5);
  assert.equal(failures.filter((failure) => failure.outcome === "failed").length, 5);
  assert.equal(failures.filter((failure) => failure.outcome === "blocked").length, 9_995);
  assert.equal(failures.filter((failure) => failure.blocksNow).length, 1, "one alarm");

  const [good] = await sell(real, 1);
  const redeem = () => ask("POST", "/admin/v1/accounts/mallory/redemptions", { code: good?.text });
  assert.equal((await redeem()).status, 429, "a correct code is refused too while the account is blocked");
  clock.advance(MINUTE_MS);
  assert.equal((await redeem()).status, 201);
  for (let minute = 0; minute < 20; minute++) {
    for (let i = 0; i < 6; i++) await guess();
    clock.advance(MINUTE_MS);
  }
  assert.equal(lookUps, 5 + 1 + 15, "at most twenty attempts a day, whatever the limit per minute");
  clock.advance(24 * HOUR_MS);
  assert.equal((await guess()).status, 404);
});

test("a code that does not exist, a void one and one that another account redeemed are refused with the same words", async (t) => {
  const { ask, store, log } = await startConsole(t);
  for (const name of ["alice", "bob"]) await ask("POST", "/admin/v1/accounts", { name });
  const [used, voided] = await sell(store, 2);
  assert.ok(used && voided);
  const redeem = (name: string, code: string) => ask("POST", `/admin/v1/accounts/${name}/redemptions`, { code });
  assert.equal((await redeem("alice", used.text)).status, 201);
  await ask("POST", `/admin/v1/codes/${voided.id}/void`);
  const unknown = newCode(0, randomBytes).text;
  const answers = [];
  for (const code of [used.text, voided.text, unknown]) answers.push(await redeem("bob", code));
  assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))], [`404 ${answers[0]?.text}`]);
  assert.equal(answers[0]?.json.error.code, "code_not_redeemable");
  const said = JSON.stringify([log, answers.map(({ text }) => text)]);
  for (const code of [used.text, voided.text, unknown])
    assert.ok(!said.includes(code), "the text of a code is in no log line and no answer");
});

test("a mistyped code is reported without a lookup and does not count as a failure", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const [code] = await sell(store, 1);
  assert.ok(code);
  const redeem = (text: unknown) => ask("POST", "/admin/v1/accounts/alice/redemptions", { code: text });
  const wrong = code.text.replace(/.$/, (symbol) => (symbol === "7" ? "8" : "7"));
  for (let i = 0; i < 30; i++) {
    const answer = await redeem(wrong);
    assert.deepEqual([answer.status, answer.json.error.code], [400, "code_mistyped"]);
    assert.ok(!answer.text.includes(wrong));
  }
  for (const none of ["", "hello", "0".repeat(16), "0".repeat(65), 5, null, ["x"]]) {
    const answer = await redeem(none);
    assert.deepEqual([answer.status, answer.json.error.code], [400, "malformed"], String(none));
  }
  assert.equal((await redeem(code.text.toLowerCase().replaceAll("-", " "))).status, 201);
  assert.equal((await redeem(code.text)).status, 200);
});

test("an account that redeems valid codes is never blocked, and failures count only for their own account", async (t) => {
  const { ask, store } = await startConsole(t);
  for (const name of ["alice", "bob"]) await ask("POST", "/admin/v1/accounts", { name });
  const redeem = (name: string, code: string) => ask("POST", `/admin/v1/accounts/${name}/redemptions`, { code });
  for (let i = 0; i < 6; i++) await redeem("bob", newCode(0, randomBytes).text);
  assert.equal((await redeem("bob", newCode(0, randomBytes).text)).status, 429);
  const codes = await sell(store, 30);
  const answers = await Promise.all(codes.map(({ text }) => redeem("alice", text)));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
});

test("two consoles that share the count look up no more codes together, even if asked at once", async (t) => {
  const store = await openTestStore(t);
  const redeem = store.redeem.bind(store);
  const lookUps = t.mock.method(store, "redeem", async (ask: Parameters<typeof redeem>[0]) => {
    // As over a network: other requests arrive in the meantime.
    await turns(20);
    return redeem(ask);
  });
  const codeGuesses = new CodeGuesses(systemClock);
  const consoles = [await startConsole(t, { store, codeGuesses }), await startConsole(t, { store, codeGuesses })];
  await consoles[0]?.ask("POST", "/admin/v1/accounts", { name: "mallory" });
  const guesses = Array.from({ length: 20 }, (_, i) =>
    consoles[i % 2]?.ask("POST", "/admin/v1/accounts/mallory/redemptions", { code: newCode(0, randomBytes).text }),
  );
  const statuses = (await Promise.all(guesses)).map((answer) => answer?.status);
  assert.equal(statuses.filter((status) => status === 404).length, 5);
  assert.equal(lookUps.mock.callCount(), 5);
});

test("a gateway counts failed attempts and warns once", async () => {
  const here = await startGatewayHere();
  try {
    const account = await here.account();
    const url = `${here.adminUrl}/admin/v1/accounts/${account.name}/redemptions`;
    const headers = { authorization: `Bearer ${here.gateway.adminToken}`, "content-type": "application/json" };
    const statuses = [];
    for (let i = 0; i < 8; i++) {
      const body = JSON.stringify({ code: newCode(0, randomBytes).text });
      statuses.push((await fetch(url, { method: "POST", headers, body })).status);
    }
    assert.deepEqual(statuses, [404, 404, 404, 404, 404, 429, 429, 429]);
    const { body: page } = await here.gateway.metrics.page();
    assert.match(page, /^tollgate_code_failures_total\{outcome="failed"\} 5$/m);
    assert.match(page, /^tollgate_code_failures_total\{outcome="blocked"\} 3$/m);
    const warnings = here.log.filter((line) => line.level === "warn" && line.account === `acct_${account.tag}`);
    assert.equal(warnings.length, 1);
  } finally {
    await here.close();
  }
});

test("the failure count is bounded: the oldest accounts are dropped in a flood, and failures expire after a minute and a day", () => {
  const clock = new HandClock();
  const budget = new GuessBudget(clock, { failuresPerMinute: 2, failuresPerDay: 3, namesMax: 100 });
  assert.equal(budget.failed("a"), false);
  assert.equal(budget.waitMs("a"), 0);
  clock.advance(10_000);
  assert.equal(budget.failed("a"), true);
  assert.equal(budget.waitMs("a"), 50_000);
  clock.advance(49_999);
  assert.equal(budget.waitMs("a"), 1);
  clock.advance(1);
  assert.equal(budget.waitMs("a"), 0);
  assert.equal(budget.failed("a"), true, "it is the third failure of the day");
  assert.equal(budget.waitMs("a"), 24 * HOUR_MS - MINUTE_MS);
  clock.advance(24 * HOUR_MS - MINUTE_MS);
  assert.equal(budget.waitMs("a"), 0);
  for (let i = 0; i < 1_000; i++) budget.failed(`name ${i}`);
  assert.equal(budget.size, 100);
  // Of the accounts that it tracks, the one whose last failure is the oldest is dropped, whichever failed first.
  assert.deepEqual([budget.failed("name 900"), budget.failed("another")], [true, false]);
  assert.deepEqual([budget.size, budget.waitMs("name 900"), budget.failed("name 901")], [100, MINUTE_MS, false]);
});
