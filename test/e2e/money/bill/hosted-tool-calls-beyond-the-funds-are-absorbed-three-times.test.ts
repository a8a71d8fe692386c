/**
 * ARCHITECTURE.md promise 1: a hold covers some calls of hosted tools, and the charge can be many times as high. A
 * client that keeps its balance, or its key's budget, just at what the hold needs gets away with that three times;
 * after that its requests are refused if the funds do not cover the highest possible cost. Row 64 of
 * docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { limitsText } from "../../../../src/store/limits/limits.ts";
import { formatUsd, nanoUsd } from "../../../../src/values/money.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { pricedConfig } from "./rig.ts";

const MICRO = 1_000n;

function config(places: ConfigPlaces): string {
  return pricedConfig(places, {
    models: {
      "messages-tools": {
        plans: ["free"],
        price: { input: "3", cache_write: "3", cache_write_1h: "3", output: "15", tools: { web_search: "0.05" } },
        context_tokens: 400_000,
        max_output_tokens: 32_000,
        routes: [{ upstream: "up-messages" }],
      },
    },
  });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const SEARCH: Fields = {
  model: "messages-tools",
  max_tokens: 100,
  tools: [{ type: "web_search_20250305", name: "web_search" }],
};
/** Just above the hold for ten searches and a hundred tokens. */
const HELD = 510_000n * MICRO;
/** 50 calls of each tool, a full context before the first and after each, and 16 tokens. */
const DEAREST = (50n * 50_000n + 51n * 1_200_000n + 240n) * MICRO;

let payments = 0;

async function bringTo(account: TestAccount, funds: bigint): Promise<void> {
  const { balance = 0n } = (await here.store.getAccount(account.tag)) ?? {};
  const payment = { id: `to-${payments++}`, amount: nanoUsd(funds - balance), kind: "adjust", note: "" } as const;
  assert.equal((await here.store.credit(account.tag, payment)).outcome, "credited");
}

/** @returns the status or the refusal's cause, and what was charged and absorbed. */
async function search(account: TestAccount, searches: number, input: number): Promise<readonly string[]> {
  const before = (await usageLines(here, account)).length;
  const usage = { input_tokens: input, output_tokens: 20, server_tool_use: { web_search_requests: searches } };
  const content = [{ type: "text", text: "found" }];
  const body = { id: "m", type: "message", role: "assistant", model: "m", content, stop_reason: "end_turn", usage };
  here.simulator.program({ body });
  const reply = await ask(here, "messages", account.key, SEARCH);
  here.simulator.clearPrograms();
  const said = reply.status === 200 ? "200" : (await errorOf(reply)).cause;
  if (reply.status === 200) await reply.text();
  await assertAtRest(here, account);
  const lines = (await usageLines(here, account)).slice(before);
  const sum = (kind: string) =>
    formatUsd(nanoUsd(lines.filter((line) => line.kind === kind).reduce((total, { amount }) => total + amount, 0n)));
  return [`${said}`, sum("usage"), sum("absorbed")];
}

for (const [name, searches, input, absorbed] of [
  ["fifty calls", 50, 1_000, "1.9933"],
  ["ten calls whose results are read many times", 10, 1_500_000, "4.4903"],
] as const) {
  test(`${name}: absorbed three times on funds for ten calls, then nothing more is absorbed`, async () => {
    const account = await here.account({ usd: "0.01" });
    for (let i = 0; i < 3; i++) {
      await bringTo(account, HELD);
      assert.deepEqual(await search(account, searches, input), ["200", "0.51", absorbed]);
    }
    for (const funds of [HELD, 10n * HELD, DEAREST - 1n]) {
      await bringTo(account, funds);
      assert.deepEqual(await search(account, searches, input), ["insufficient_balance", "0.00", "0.00"]);
    }
    await bringTo(account, DEAREST);
    const [status, , none] = await search(account, searches, input);
    assert.deepEqual([status, none], ["200", "0.00"]);
    const line = (await usageLines(here, account)).findLast(({ kind }) => kind === "usage");
    assert.equal(memoOf(line).held, "dearest");
  });
}

test("an owner who raises a budget by the price of ten calls before each request is charged in full", async () => {
  const account = await here.account({ usd: "80" });
  const spent = async () => 80_000_000n * MICRO - ((await here.store.getAccount(account.tag))?.balance ?? 0n);
  const raise = async () => {
    const total = nanoUsd((await spent()) + HELD);
    await here.store.changeKey(account.tag, account.keyId, { limits: limitsText({ budgets: { total } }) });
  };
  for (let i = 0; i < 3; i++) {
    await raise();
    assert.deepEqual(await search(account, 50, 1_000), ["200", "2.5033", "0.00"]);
    assert.deepEqual((await search(account, 50, 1_000))[0], "key_budget");
  }
  await raise();
  assert.deepEqual(
    await search(account, 50, 1_000),
    ["key_budget", "0.00", "0.00"],
    "the hold is the highest possible cost, for the budget too",
  );
});

test("a client whose funds cover its searches is never held at the highest possible cost", async () => {
  const account = await here.account({ usd: "20" });
  for (let i = 0; i < 5; i++) assert.deepEqual(await search(account, 8, 300_000), ["200", "1.3003", "0.00"]);
  const held = (await usageLines(here, account)).map((line) => memoOf(line).held);
  assert.deepEqual(
    held,
    Array.from({ length: 5 }, () => undefined),
  );
});
