// docs/money.md, limits of a key and of an account: what an operator may set, and what is refused without a change.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { showAccountBudgets, showKeyBudgets } from "../../../src/console/answers/limits.ts";
import { limitsText } from "../../../src/store/limits/limits.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { settingsOf, testConfig } from "../../rig/gateway.ts";
import { startConsole } from "./running-console.ts";

/** @param factor the multiplier of the key's group. */
async function withKey(t: TestContext, factor = "1") {
  const groups = { money: { multiplier: factor } };
  const { catalog } = settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:9", dir: "unused" }, { groups }));
  const { ask } = await startConsole(t, { catalog: () => catalog });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "money" })).json;
  const read = async () => (await ask("GET", `/admin/v1/keys/${id}`)).json;
  const set = (limits: object, which = "limits") => ask("PUT", `/admin/v1/keys/${id}/${which}`, limits);
  return { ask, id, read, set };
}

const NONE = { day: null, week: null, month: null, total: null };
const NO_LIMITS = {
  budgets_usd: NONE,
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrency: null,
  models: null,
  addresses: null,
};

test("limits are shown as they were set, with the used part of each budget", async (t) => {
  const { ask, id, read, set } = await withKey(t);
  assert.deepEqual((await read()).limits, NO_LIMITS);
  const limits = {
    budgets_usd: { day: "5.00", total: "100.00" },
    requests_per_minute: 60,
    tokens_per_minute: null,
    concurrency: 3,
    models: ["*"],
    addresses: ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"],
  };
  const answer = await set(limits);
  assert.equal(answer.status, 200);
  const whole = { ...NO_LIMITS, ...limits, budgets_usd: { ...NONE, ...limits.budgets_usd } };
  assert.deepEqual(answer.json.limits, whole);
  assert.deepEqual((await read()).limits, whole);
  const [day, total] = (await read()).budgets;
  assert.deepEqual(
    [day.span, day.limit_usd, day.spent_usd, day.held_usd, day.rest_usd],
    ["day", "5.00", "0.00", "0.00", "5.00"],
  );
  assert.match(day.resets_at, /T00:00:00\.000Z$/);
  assert.equal(total.resets_at, null);
  // The stricter of both sets of limits applies.
  await set({ budgets_usd: { day: "3.00" } }, "caps");
  assert.equal((await read()).budgets[0].limit_usd, "3.00");
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/keys")).json.items[0].budgets[0].limit_usd, "3.00");
  await set({});
  await set({}, "caps");
  assert.deepEqual([(await read()).limits, (await read()).caps, (await read()).budgets], [NO_LIMITS, NO_LIMITS, []]);
  const account = await ask("PUT", "/admin/v1/accounts/alice/limits", { budgets_usd: { month: "400.00" } });
  assert.deepEqual(account.json.limits, { budgets_usd: { day: null, month: "400.00" } });
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.budgets[0].rest_usd, "400.00");
  assert.equal((await ask("PUT", "/admin/v1/accounts/nobody/limits", {})).status, 404);
  const other = id.replace(/.$/, (last: string) => (last === "x" ? "y" : "x"));
  assert.equal((await ask("PUT", `/admin/v1/keys/${other}/limits`, {})).status, 404);
});

test("a model that has been removed from the configuration does not prevent another limit from being set", async (t) => {
  const places = { upstreamUrl: "http://127.0.0.1:9", dir: "unused" };
  let { catalog } = settingsOf(testConfig(places));
  const { ask } = await startConsole(t, { catalog: () => catalog });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "money" })).json;
  const set = (limits: object, which = "limits") => ask("PUT", `/admin/v1/keys/${id}/${which}`, limits);
  const models = ["chat-1", "messages-1"];
  assert.equal((await set({ models })).status, 200);
  ({ catalog } = settingsOf(testConfig(places, { models: { "messages-1": undefined } })));
  assert.equal((await set({ models, concurrency: 2 })).status, 200);
  assert.equal((await set({ models }, "caps")).json.error.code, "unknown_model");
  // Also if it is the only one.
  ({ catalog } = settingsOf(testConfig(places)));
  assert.equal((await set({ models: ["messages-1"] })).status, 200);
  ({ catalog } = settingsOf(testConfig(places, { models: { "messages-1": undefined } })));
  assert.equal((await set({ models: ["messages-1"], concurrency: 3 })).status, 200);
});

test("the rest of a budget is what is neither spent nor held, and yesterday's figures are not shown today", () => {
  const day = 20_000;
  const noon = (day + 0.5) * 86_400_000;
  const counts = {
    now: { period: day, spent: 1_200_000_000n, held: 250_000_000n },
    before: { period: day - 1, spent: 7_000_000_000n, held: 0n },
  };
  const text = limitsText({ budgets: { day: nanoUsd(5_000_000_000n) } });
  const shown = (atMs: number) => [
    ...showKeyBudgets({ id: "key_1", limits: text, caps: "" }, new Map([["d/key_1", counts]]), atMs),
    ...showAccountBudgets(text, new Map([["D", counts]]), atMs),
  ];
  const today = { spent_usd: "1.20", held_usd: "0.25", rest_usd: "3.55", resets_at: "2024-10-05T00:00:00.000Z" };
  const tomorrow = { spent_usd: "0.00", held_usd: "0.00", rest_usd: "5.00", resets_at: "2024-10-06T00:00:00.000Z" };
  for (const one of shown(noon)) assert.deepEqual(one, { span: "day", limit_usd: "5.00", ...today });
  for (const one of shown(noon + 86_400_000)) assert.deepEqual(one, { span: "day", limit_usd: "5.00", ...tomorrow });
});

test("the minimum of a budget is the cost of the smallest request in the key's own group", async (t) => {
  const { ask, set, read } = await withKey(t, "2.5");
  const least = await set({ budgets_usd: { day: "0.000000001" } });
  assert.equal(least.json.error.code, "budget_too_small");
  const [, usd = ""] = /below ([0-9.]+) USD/.exec(least.json.error.message) ?? [];
  const { json } = await ask("POST", "/admin/v1/accounts/alice/keys", { group: "cards" });
  const plain = await ask("PUT", `/admin/v1/keys/${json.id}/limits`, { budgets_usd: { day: "0.000000001" } });
  const [, ofOther = ""] = /below ([0-9.]+) USD/.exec(plain.json.error.message) ?? [];
  assert.equal(Number(usd) * 1e9, Math.ceil(Number(ofOther) * 1e9 * 2.5));
  assert.equal((await set({ budgets_usd: { day: usd } })).status, 200);
  assert.equal((await read()).limits.budgets_usd.day, usd);
});

test("a budget is large enough if the cheapest of the models fits in it", async (t) => {
  const models = { "chat-1": { price: { input: "1000", output: "10000" } } };
  const { catalog } = settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:9", dir: "unused" }, { models }));
  const { ask } = await startConsole(t, { catalog: () => catalog });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { id } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "money" })).json;
  const set = (limits: object) => ask("PUT", `/admin/v1/keys/${id}/limits`, limits);
  const budgets_usd = { day: "0.01" };
  assert.equal((await set({ budgets_usd })).status, 200);
  assert.equal((await set({ budgets_usd, models: ["chat-1"] })).json.error.code, "budget_too_small");
});

test("limits that contradict each other or let no request pass are refused by name, and nothing is changed", async (t) => {
  const { ask, id, read, set } = await withKey(t);
  const refused = async (limits: object, status: number, code: string, words: RegExp) => {
    const answer = await set(limits);
    assert.deepEqual([answer.status, answer.json.error?.code], [status, code], JSON.stringify(limits));
    assert.match(`${answer.json.error.message} ${answer.json.error.remedy}`, words);
    assert.deepEqual((await read()).limits, NO_LIMITS);
    return answer.json;
  };
  const budget = (budgets_usd: object) => ({ budgets_usd });
  await refused(
    budget({ day: "5", week: "4" }),
    400,
    "limits_contradict",
    /budget per week is below the budget per day/,
  );
  await refused(budget({ day: "5", total: "4.999999999" }), 400, "limits_contradict", /4\.999999999/);
  await refused(
    budget({ day: "5", week: "10", month: "7" }),
    400,
    "limits_contradict",
    /budget per month is below the budget per week/,
  );
  // A longer budget of the same size can be used up by the shorter one, which is no contradiction.
  assert.equal((await set(budget({ day: "5", week: "5.00", total: "5" }))).status, 200);
  assert.equal((await set({})).status, 200);
  await refused(budget({ day: "0" }), 400, "malformed", /budgets_usd\.day/);
  await refused(budget({ day: "-1" }), 400, "malformed", /amount of US dollars above 0/);
  await refused(budget({ day: "1e3" }), 400, "malformed", /amount/);
  await refused(budget({ day: "0.000000001" }), 400, "budget_too_small", /the cost of the smallest request/);
  await refused(budget({ year: "1" }), 400, "unknown_member", /year/);
  await refused({ requests_per_minute: 0 }, 400, "malformed", /requests_per_minute/);
  await refused({ concurrency: 1.5 }, 400, "malformed", /concurrency/);
  await refused({ models: [] }, 400, "malformed", /models/);
  await refused(
    { models: ["nope-*"] },
    400,
    "unknown_model",
    /`models\[0\]` is `nope-\*`, which is not a model of the configuration/,
  );
  await refused(
    { models: ["chat-1", "mesages-1"] },
    400,
    "unknown_model",
    /`models\[1\]` .* Did you mean `messages-1`\?/,
  );
  await refused({ models: ["other-family"] }, 400, "limits_contradict", /no model that the key's group serves/);
  await refused({ models: ["*x"] }, 400, "malformed", /models/);
  for (const [none, why] of Object.entries({
    "10.0.0.1/8": /has bits set after its prefix/,
    "10.0.0.0/33": /not a prefix length/,
    "10.0.0.0/": /not a prefix length/,
    "10.0.0.999/8": /four numbers from 0 to 255/,
    "2001:db8::12345": /at most four hexadecimal digits/,
    x: /not an IP address/,
    "10.0.0.0/8,11.0.0.0/8": /not a prefix length/,
    "": /not an IP address/,
  })) {
    const body = await refused({ addresses: ["10.0.0.0/8", none] }, 400, "malformed", /`addresses\[1\]`/);
    assert.match(body.error.remedy, why, none);
    assert.ok(none.length < 4 || !JSON.stringify(body).includes(none), none);
  }
  const blocks = Array.from({ length: 64 }, (_, i) => `2001:db8:${i}::/128`);
  await refused({ addresses: blocks }, 400, "malformed", /at most 6000 characters/);
  const caps = { requests_per_minute: 7, tokens_per_minute: 900, concurrency: 5, budgets_usd: { day: "1.00" } };
  assert.equal((await set(caps, "caps")).status, 200);
  await refused({ requests_per_minute: 8 }, 409, "above_cap", /`requests_per_minute` is above the operator's cap of 7/);
  await refused({ tokens_per_minute: 901 }, 409, "above_cap", /`tokens_per_minute` is above the operator's cap of 900/);
  await refused({ concurrency: 6 }, 409, "above_cap", /`concurrency` is above the operator's cap of 5/);
  await refused(budget({ day: "1.000000001" }), 409, "above_cap", /above the operator's cap of 1\.00 USD/);
  // An existing limit above a new cap does not prevent another limit from being set.
  assert.equal((await set({ concurrency: 5 })).status, 200);
  assert.equal((await set({ concurrency: 4 }, "caps")).status, 200);
  assert.equal((await set({ concurrency: 5, requests_per_minute: 60 })).status, 200);
  assert.equal((await set({ concurrency: 6, requests_per_minute: 60 })).json.error.code, "above_cap");
  assert.equal((await set({})).status, 200);
  await ask("POST", `/admin/v1/keys/${id}/revoke`);
  await refused({ concurrency: 1 }, 409, "key_revoked", /revoked/);
  const account = await ask("PUT", "/admin/v1/accounts/alice/limits", budget({ day: "2", month: "1" }));
  assert.equal(account.json.error.code, "limits_contradict");
  assert.equal(
    (await ask("PUT", "/admin/v1/accounts/alice/limits", budget({ total: "1" }))).json.error.code,
    "unknown_member",
  );
});
