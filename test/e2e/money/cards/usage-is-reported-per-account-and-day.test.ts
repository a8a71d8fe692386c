// What was spent, from the sums per day: for an operator by command, for a key's owner at GET /v1/usage.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { utcDay } from "../../../../src/values/time.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { run } from "../../../unit/cli/captured-run.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { ask, errorOf, usageLines } from "../../protocol/whole/asking.ts";
import { card, DAY_MS, sell } from "./rig.ts";

let here: GatewayHere;

/** Retries while the store is too slow for the gateway: a request that is refused for this was never admitted. */
async function patiently(send: () => Promise<Response>): Promise<Response> {
  for (let tries = 0; ; tries++) {
    const reply = await send();
    if (reply.status !== 503 || tries === 1_000) return reply;
    await reply.text();
    // As long as one answer of the store takes.
    await here.store.check().catch(() => undefined);
  }
}

async function answered(account: TestAccount, model: string): Promise<bigint> {
  const reply = await patiently(() => ask(here, "chat", account.key, { model }));
  assert.equal(reply.status, 200);
  await reply.text();
  // On Redis the charge may still be on its way when the answer arrives.
  while ((await here.store.readFigures(account.tag, { holds: true }))?.holds?.length !== 0) await setImmediate();
  return (await usageLines(here, account)).at(-1)?.amount ?? 0n;
}

function usage(key: string | undefined, query = ""): Promise<Response> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return patiently(() => fetch(`${here.url}/v1/usage${query}`, { headers }));
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape and fail on the wrong one.
async function usageOf(account: TestAccount, query = ""): Promise<any> {
  const reply = await usage(account.key, query);
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("content-type"), "application/json");
  return reply.json();
}

const tollgate = (...argv: string[]) =>
  run(argv, { env: { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: here.gateway.adminToken } });

async function json(...argv: string[]) {
  const ran = await tollgate(...argv, "--json");
  assert.equal(ran.status, 0, ran.err);
  return JSON.parse(ran.out);
}

const nano = (usd: string): bigint => BigInt(Math.round(Number(usd) * 1e9));

for (const form of ["embedded", "redis"] as const) {
  describe(`usage on ${form}`, () => {
    let redis: TestRedis | undefined;
    before(async () => {
      if (form === "redis") redis = await startRedis();
      here = await startGatewayHere(redis ? { store: redis.url, storeTimes: PATIENT } : {});
    });
    after(async () => {
      await here?.close();
      await redis?.stop();
    });
    usageTests();
  });
}

function usageTests(): void {
  test("a key sees its own account: funds, cards, and sums by day, group and model", async () => {
    const account = await here.account({ usd: "10" });
    const stranger = await here.account({ usd: "10" });
    await answered(stranger, "chat-1");
    const one = await answered(account, "chat-1");
    const two = await answered(account, "chat-alias");
    const [code] = await sell(here.store, 1);
    await here.store.redeem({ hash: code?.hash as never, tag: account.tag });
    const seen = await usageOf(account);
    assert.equal(seen.object, "usage");
    assert.equal(seen.account.plan, "free");
    assert.equal(nano(seen.account.balance_usd), 10_000_000_000n - one - two);
    assert.deepEqual([seen.account.held_usd, seen.key.id, seen.key.group], ["0.00", account.keyId, "money"]);
    assert.equal(nano(seen.total_usd), one + two);
    assert.deepEqual(
      seen.by_day.map(({ day, usd }: { day: string; usd: string }) => [day, nano(usd)]),
      [[seen.until, one + two]],
    );
    assert.deepEqual(
      seen.by_model.map(({ model, usd }: { model: string; usd: string }) => [model, nano(usd)]),
      [
        ["chat-1", one],
        ["chat-alias", two],
      ],
    );
    assert.deepEqual(
      seen.by_group.map(({ group }: { group: string }) => group),
      ["money"],
    );
    const [line] = await usageLines(here, account);
    const { input, output } = JSON.parse(line?.memo ?? "{}");
    assert.deepEqual(
      [seen.by_model[0].requests, seen.by_model[0].input_tokens, seen.by_model[0].output_tokens],
      [1, input, output],
    );
    assert.deepEqual([seen.total.requests, seen.by_key[0].key, seen.by_key[0].requests], [2, account.keyId, 2]);
    const [entitlement] = seen.entitlements;
    assert.deepEqual(
      [entitlement.id, entitlement.group, entitlement.quota_usd, entitlement.running],
      [code?.id, "cards", "5.00", true],
    );
    assert.equal(Date.parse(seen.until) - Date.parse(seen.since), 29 * DAY_MS);
  });

  test("usage is still answered when money and card are used up, but not for a revoked key or without a key", async () => {
    const poor = await here.account({ usd: "0" });
    assert.equal((await ask(here, "chat", poor.key)).status, 403);
    assert.equal((await usageOf(poor)).account.balance_usd, "0.00");
    const holder = await here.account({ usd: "0", group: "cards" });
    const [code] = await sell(here.store, 1, card({ quota: 1n }));
    await here.store.redeem({ hash: code?.hash as never, tag: holder.tag });
    assert.equal((await ask(here, "chat", holder.key)).status, 403);
    assert.equal((await usageOf(holder)).entitlements[0].rest_usd, "0.000000001");
    await here.store.revokeKey(holder.tag, holder.keyId);
    assert.deepEqual([(await usage(holder.key)).status, (await usage(undefined)).status], [401, 401]);
    const posted = await fetch(`${here.url}/v1/usage`, {
      method: "POST",
      headers: { authorization: `Bearer ${poor.key}` },
    });
    assert.deepEqual([posted.status, posted.headers.get("allow")], [405, "GET"]);
  });

  test("a period is two days in UTC, at most 366 days long, and an invalid one is refused with its reason", async () => {
    const account = await here.account({ usd: "10" });
    const spent = await answered(account, "chat-1");
    const today = utcDay(Date.now());
    const dayAt = (offset: number) => utcDay(Date.parse(today) + offset * DAY_MS);
    const total = async (query: string) => nano((await usageOf(account, query)).total_usd);
    assert.equal(await total(`?since=${dayAt(-365)}&until=${today}`), spent);
    assert.equal(await total(`?since=${dayAt(-9)}&until=${dayAt(-2)}`), 0n);
    for (const query of [
      "?since=yesterday",
      "?until=",
      "?since=2026-02-30",
      `?since=${dayAt(-366)}&until=${today}`,
      `?since=${today}&until=${dayAt(-1)}`,
    ]) {
      const reply = await usage(account.key, query);
      assert.equal(reply.status, 400, query);
      assert.match((await errorOf(reply)).message, /since|until/);
    }
  });

  test("an operator sees all accounts or one, by any grouping, as table, CSV and JSON", async () => {
    const [alice, bob] = [await here.account({ usd: "10" }), await here.account({ usd: "10", group: "double-money" })];
    const [a, b] = [await answered(alice, "chat-1"), await answered(bob, "chat-1")];
    const all = await json("usage");
    const usdOf = (items: readonly Record<string, string>[], by: string, value: string) =>
      nano(items.find((item) => item[by] === value)?.usd ?? "0");
    assert.equal(usdOf(all.items, "account", alice.name), a);
    assert.equal(usdOf(all.items, "account", bob.name), b);
    const sum = (items: readonly Record<string, string>[]) =>
      items.reduce((total, { usd }) => total + nano(usd ?? "0"), 0n);
    for (const by of ["group", "model", "key", "day"]) {
      const grouped = await json("usage", "--by", by);
      assert.equal(grouped.total_usd, all.total_usd);
      assert.equal(sum(grouped.items), nano(all.total_usd), by);
    }
    const one = await json("usage", "--account", bob.name, "--by", "group");
    assert.deepEqual([one.items.length, usdOf(one.items, "group", "double-money")], [1, b]);
    const { items: keys } = await json("usage", "--account", alice.name, "--by", "key");
    assert.deepEqual(
      keys.map((item: Record<string, string>) => item.key),
      [alice.keyId],
    );

    const csv = await tollgate("usage", "--account", bob.name, "--by", "model", "--format", "csv");
    const heading =
      "model,usd,cost_usd,absorbed_usd,margin_usd,requests,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens";
    assert.equal(csv.out.split("\r\n")[0], heading);
    const row = csv.out.split("\r\n")[1] ?? "";
    assert.match(row, /^chat-1,[0-9.]+,[0-9.]+,[0-9.]+,[0-9.]+,1,[1-9][0-9]*,0,0,[1-9][0-9]*,0$/);
    const [usd, cost, absorbed, margin] = row.split(",").slice(1, 5).map(nano);
    // The group pays twice the price, which is what the upstream costs.
    assert.deepEqual([usd, cost, absorbed, margin], [b, b / 2n, 0n, b / 2n]);
    const table = await tollgate("usage", "--account", bob.name, "--by", "model");
    assert.match(
      table.out,
      /^From \S+ to \S+, UTC\nMODEL +CHARGED USD +COST USD +ABSORBED USD +MARGIN USD +REQUESTS +INPUT +CACHED .*\nchat-1( +[0-9.]+){4} +1 .*\ntotal( +[0-9.]+){4} +1 .*\n$/,
    );
    const text = await tollgate("usage", "--account", bob.name, "--format", "json");
    assert.equal(JSON.parse(text.out).items[0].account, bob.name);

    for (const misused of [
      ["--format", "xml"],
      ["--by", "colour"],
    ]) {
      assert.equal((await tollgate("usage", ...misused)).status, 2, misused.join(" "));
    }
    for (const wrong of [
      ["--since", "today"],
      ["--since", "2026-13-01"],
      ["--account", "nobody"],
    ]) {
      assert.equal((await tollgate("usage", ...wrong)).status, 1, wrong.join(" "));
    }
  });

  test("all accounts are paged through, however many", async () => {
    const accounts = [];
    for (let i = 0; i < 105; i++) accounts.push(await here.account({ usd: "0" }));
    const names = new Set((await json("usage")).items.map((item: Record<string, string>) => item.account));
    for (const { name } of accounts) assert.ok(names.has(name), name);
  });
}
