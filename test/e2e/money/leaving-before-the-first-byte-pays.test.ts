/**
 * ARCHITECTURE.md promise 3: whoever leaves before the first byte is let off within a bounded allowance per account and
 * day, and pays its input beyond it. Charged before: nothing for thirty requests of 200,000 tokens each, at 3 USD per
 * million 18.00 USD. Row D1 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { LedgerLine } from "../../../src/store/records.ts";
import { formatUsd, nanoUsd } from "../../../src/values/money.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { tollgate } from "../../ledger/house.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../rig/gateway.ts";
import { ask, assertAtRest, bodyOf, type Fields, memoOf, PROTOCOL_LIST } from "../../whole/asking.ts";
import { limited, pricedConfig } from "./house.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => {
  here.simulator.release();
  here.simulator.clearPrograms();
});
after(() => here.close());

/** A body whose input is reckoned at so many tokens: three bytes to each. */
function bodyOfTokens(client: Protocol, tokens: number, fields: Fields = {}): Fields {
  const said = (content: string) =>
    client === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
  const bytes = JSON.stringify(bodyOf(client, { ...limited(client, client, 400), ...said(""), ...fields })).length;
  return { ...limited(client, client, 400), ...said("a".repeat(3 * tokens - bytes)), ...fields };
}

/** Requests whose end this file has waited for. */
const ended = new Set<unknown>();

async function ends(many: number): Promise<void> {
  for (let i = 0; i < many; i++) {
    const line = await here.logged(({ msg, request }) => msg === "request" && !ended.has(request));
    ended.add(line.request);
  }
}

/** So many at once whose clients all leave when their upstream has them. @returns the account's lines from then on. */
async function leftAtOnce(client: Protocol, account: TestAccount, many: number, fields: Fields): Promise<LedgerLine[]> {
  here.simulator.hold();
  const before = here.simulator.requests.length;
  const leaving = new AbortController();
  const running = Array.from({ length: many }, () =>
    ask(here, client, account.key, fields, { signal: leaving.signal }),
  );
  const gone = Promise.allSettled(running);
  await here.simulator.waitFor(before + many);
  leaving.abort();
  await gone;
  await ends(many);
  here.simulator.release();
  await assertAtRest(here, account);
  return (await here.store.readLedger(account.tag, 0, 100)).filter(({ kind }) => kind !== "topup");
}

const sumOf = (lines: readonly LedgerLine[], kind: string) =>
  formatUsd(nanoUsd(lines.filter((line) => line.kind === kind).reduce((sum, { amount }) => sum + amount, 0n)));

/** The ledger is whole, and a charge says why it is one. */
async function assertTold(account: TestAccount, lines: readonly LedgerLine[]): Promise<void> {
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

test("thirty that leave 200,000 tokens of input each before the first byte pay 18.00", async () => {
  const account = await here.account({ usd: "40" });
  const lines = await leftAtOnce("chat", account, 30, bodyOfTokens("chat", 200_000, { stream: true }));
  assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [30, "18.00", "0.00"]);
  await assertTold(account, lines);
});

for (const client of PROTOCOL_LIST) {
  for (const stream of [true, false]) {
    const what = `${client}, ${stream ? "streamed" : "whole"}`;
    test(`${what}: of twelve at 0.06 each eight are let off within 0.50, and four are paid`, async () => {
      const account = await here.account({ usd: "5" });
      const lines = await leftAtOnce(client, account, 12, bodyOfTokens(client, 20_000, { stream }));
      assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [12, "0.24", "0.48"]);
      const causes = new Set(lines.filter(({ kind }) => kind === "absorbed").map(({ debit }) => debit));
      assert.deepEqual([...causes], ["absorbed:client_gone"]);
      assert.equal((await here.store.getAccount(account.tag))?.balance, 4_760_000_000n);
      await assertTold(account, lines);
    });
  }

  test(`${client}: a stream that is left between its head and its first word is paid as well`, async () => {
    const account = await here.account({ usd: "5" });
    for (let i = 0; i < 2; i++) {
      here.simulator.program({ text: "word", usage: { input: 200_000 }, fault: { stallAfterEvents: 1 } });
      const leaving = new AbortController();
      const fields = bodyOfTokens(client, 200_000, { stream: true });
      const reply = await ask(here, client, account.key, fields, { signal: leaving.signal });
      assert.equal(reply.status, 200);
      leaving.abort();
      await ends(1);
    }
    const lines = (await here.store.readLedger(account.tag, 0, 100)).filter(({ kind }) => kind !== "topup");
    assert.equal(lines.length, 2);
    for (const line of lines) {
      const { input, output, paid } = memoOf(line);
      assert.equal(paid, "allowance_used");
      assert.equal(line.amount, BigInt(input as number) * 3_000n + BigInt(output as number) * 15_000n);
    }
  });
}

test("what fails at the upstream is never charged, however dear it was", async () => {
  const account = await here.account({ usd: "5" });
  for (const fault of [{ resetBeforeHeaders: true }, { endAfterEvents: 1 }, { resetAfterEvents: 1 }]) {
    here.simulator.program({ fault }, { times: 2 });
    const reply = await ask(here, "chat", account.key, bodyOfTokens("chat", 200_000, { stream: true }));
    await reply.text();
    await assertAtRest(here, account);
  }
  const lines = (await here.store.readLedger(account.tag, 0, 100)).filter(({ kind }) => kind !== "topup");
  assert.equal(sumOf(lines, "usage"), "0.00");
  assert.ok(lines.length >= 3);
});
