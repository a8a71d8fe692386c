/**
 * ARCHITECTURE.md promise 3: a client that disconnects before the first byte is not charged within an allowance per
 * account and day; beyond it, it is charged its input. Before this, nothing was charged for thirty requests of 200,000
 * tokens each, which cost 18.00 USD at 3 USD per million. Row D1 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { LedgerLine } from "../../../../src/store/records.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  settledMetrics,
  startGatewayHere,
  type TestAccount,
} from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { card, sell } from "../cards/rig.ts";
import { tollgate } from "../ledger/rig.ts";
import { bodyOfTokens, endsFromNow, leaveAtOnce, linesOf, sumOf } from "./disconnecting-clients.ts";
import { pricedConfig } from "./rig.ts";

/** The chat model costs the operator half of what its clients pay. */
function withCost(places: ConfigPlaces): string {
  const cost = { input: "1.5", output: "7.5" };
  return pricedConfig(places, {
    models: { "chat-alias": { routes: [{ cost, upstream: "up-chat", model: "chat-1-2026-08" }] } },
  });
}

let here: GatewayHere;
before(async () => {
  // The clock does not move: waiting time is charged as well, and a busy machine must not add any.
  here = await startGatewayHere({ config: withCost, clock: new HandClock() });
});
afterEach(() => {
  here.simulator.release();
  here.simulator.clearPrograms();
});
after(() => here.close());

/**
 * Sends this many requests at once; all clients disconnect when the upstream has them. @returns the account's lines
 * written since then.
 */
async function leftAtOnce(client: Protocol, account: TestAccount, many: number, fields: Fields): Promise<LedgerLine[]> {
  await leaveAtOnce(here, client, account, many, fields);
  return linesOf(here, account);
}

/** Asserts that the ledger is consistent and that each charge names its reason. */
async function assertAllowanceRecorded(account: TestAccount, lines: readonly LedgerLine[]): Promise<void> {
  for (const line of lines) {
    const { paid, ended: how, counted, attempts } = memoOf(line);
    const charged = line.kind === "usage";
    assert.deepEqual([paid, how, counted], [charged ? "allowance_used" : undefined, "client_gone", "estimate"]);
    const payers = (attempts as { paid_by: string }[]).map((attempt) => attempt.paid_by);
    assert.deepEqual(payers, [charged ? "client" : "absorbed"]);
  }
  const verified = await tollgate(here, "ledger", "verify", "--account", account.name);
  assert.equal(verified.status, 0, verified.err + verified.out);
}

test("thirty clients that disconnect before the first byte, with 200,000 input tokens each, are charged 18.00", async () => {
  const account = await here.account({ usd: "40" });
  const lines = await leftAtOnce("chat", account, 30, bodyOfTokens("chat", 200_000, { stream: true }));
  assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [30, "18.00", "0.00"]);
  await assertAllowanceRecorded(account, lines);
});

test("text of one byte per token is charged by its real tokens when the client disconnects", async () => {
  const account = await here.account({ usd: "5" });
  const fields = bodyOfTokens("chat", 200_000, { stream: true });
  const dense = { ...fields, messages: [{ role: "user", content: "1,2,".repeat(45_000) }] };
  const lines = await leftAtOnce("chat", account, 3, dense);
  // 180,000 bytes at 3 USD: 0.54 each. At three bytes per token it would be 0.18.
  const owed = lines.reduce((sum, line) => sum + Number(memoOf(line).input) * 3e-6, 0);
  assert.ok(lines.length === 3 && owed > 1.2 && owed < 1.7, `${owed} USD`);
});

for (const client of PROTOCOL_LIST) {
  for (const stream of [true, false]) {
    const what = `${client}, ${stream ? "streamed" : "whole"}`;
    test(`${what}: of twelve disconnects at 0.06 each, eight are absorbed within 0.50 and four are charged`, async () => {
      const account = await here.account({ usd: "5" });
      const lines = await leftAtOnce(client, account, 12, bodyOfTokens(client, 20_000, { stream }));
      assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [12, "0.24", "0.48"]);
      const causes = new Set(lines.filter(({ kind }) => kind === "absorbed").map(({ debit }) => debit));
      assert.deepEqual([...causes], ["absorbed:client_gone"]);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 4_760_000_000n);
      await assertAllowanceRecorded(account, lines);
    });
  }

  test(`${client}: a stream whose client disconnects between the headers and the first word is charged as well`, async () => {
    const account = await here.account({ usd: "5" });
    for (let i = 0; i < 2; i++) {
      here.simulator.program({ text: "word", usage: { input: 200_000 }, fault: { stallAfterEvents: 1 } });
      const leaving = new AbortController();
      const ends = endsFromNow(here);
      const fields = bodyOfTokens(client, 200_000, { stream: true });
      const reply = await ask(here, client, account.key, fields, { signal: leaving.signal });
      assert.equal(reply.status, 200);
      leaving.abort();
      await ends(1);
    }
    const lines = await linesOf(here, account);
    assert.equal(lines.length, 2);
    for (const line of lines) {
      const { input, output, paid } = memoOf(line);
      assert.equal(paid, "allowance_used");
      assert.equal(line.amount, BigInt(input as number) * 3_000n + BigInt(output as number) * 15_000n);
    }
  });
}

test("a request that fails at the upstream is never charged, however expensive it was", async () => {
  const account = await here.account({ usd: "5" });
  for (const fault of [{ resetBeforeHeaders: true }, { endAfterEvents: 1 }, { resetAfterEvents: 1 }]) {
    here.simulator.program({ fault }, { times: 2 });
    const reply = await ask(here, "chat", account.key, bodyOfTokens("chat", 200_000, { stream: true }));
    await reply.text();
    await assertAtRest(here, account);
  }
  const lines = await linesOf(here, account);
  assert.equal(sumOf(lines, "usage"), "0.00");
  assert.ok(lines.length >= 3);
});

test("an account that pays by a time card without a quota is never charged for disconnects", async () => {
  const account = await here.account({ usd: "5", group: "cards" });
  const [code] = await sell(here.store, 1, card({ quota: undefined }));
  assert.ok(code);
  assert.equal((await here.store.redeem({ hash: code.hash, tag: account.tag })).outcome, "redeemed");
  for (const client of PROTOCOL_LIST) {
    for (const stream of [true, false]) {
      await leaveAtOnce(here, client, account, 12, bodyOfTokens(client, 20_000, { stream }));
    }
  }
  const lines = await linesOf(here, account);
  const kinds = new Set(lines.map(({ kind, debit }) => `${kind} ${debit}`));
  assert.deepEqual([lines.length, [...kinds]], [72, ["absorbed absorbed:client_gone"]]);
  assert.equal((await here.store.getAccount(account.tag))?.balance, 5_000_000_000n);

  // It has not used the allowance of the account's other keys either: 0.48 of the 0.50 is still there.
  await here.store.changeKey(account.tag, account.keyId, { group: "money" });
  const paid = await leftAtOnce("chat", account, 8, bodyOfTokens("chat", 20_000));
  assert.deepEqual([paid.length - lines.length, sumOf(paid, "usage")], [8, "0.00"]);
});

/** The current values of the series of one group and model. */
async function counted(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
  const text = await settledMetrics(here.adminUrl);
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const found = text.split("\n").filter((line) => line.startsWith(`${name}{`) && wanted.every((w) => line.includes(w)));
  assert.ok(found.length <= 1, found.join("\n"));
  return Number(found[0]?.split(" ").at(-1) ?? 0);
}

test("metrics count the cost of a disconnected client once, at the route's cost price, whether it is charged or absorbed", async () => {
  const account = await here.account({ usd: "5" });
  const group = "money";
  const seen = async () => [
    await counted("tollgate_cost_usd_total", { group, model: "chat-alias", upstream: "up-chat" }),
    await counted("tollgate_spend_usd_total", { group, model: "chat-alias" }),
    await counted("tollgate_absorbed_usd_total", { group, upstream: "up-chat", cause: "client_gone" }),
    await counted("tollgate_left_before_output_total", { group, paid_by: "absorbed" }),
    await counted("tollgate_left_before_output_total", { group, paid_by: "client" }),
  ];
  const fields = bodyOfTokens("chat", 160_000, { model: "chat-alias" });
  const rose = async () => {
    const before = await seen();
    await leftAtOnce("chat", account, 1, fields);
    return (await seen()).map((value, i) => Number((value - (before[i] as number)).toFixed(9)));
  };
  // 0.24 of 0.50 at cost, twice; a third does not fit.
  for (let i = 0; i < 2; i++) assert.deepEqual(await rose(), [0.24, 0, 0.24, 1, 0]);
  assert.deepEqual(await rose(), [0.24, 0.48, 0, 0, 1]);
});
