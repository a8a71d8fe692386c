/**
 * What happens to an account and what the ledger says about it, as finance reads it. Each row is one step, with the
 * ledger line that it must write; a row that begins with a bar is another line of the same step. All steps use real
 * commands and requests. Prices are in the tests' catalog: input 1, cached 0.10, cache write 1.25, output 10 USD per
 * million tokens, doubled in the group double-money.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { newKey } from "../../../../src/values/key.ts";
import { formatUsd, parseUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest } from "../../protocol/whole/asking.ts";
import { served, tollgate } from "./rig.ts";

const STEPS = `
  step                                    | kind     | from               | to                  | usd         | balance
  topup 1.00 pay-1                        | topup    | topup              | account             | 1.00        | 1.00
  topup 1.00 pay-1                        | -        |                    |                     |             | 1.00
  ask money in=1000 out=100               | usage    | account            | revenue:money       | 0.002       | 0.998
  ask money in=0 cached=1000              | usage    | account            | revenue:money       | 0.0001      | 0.9979
  ask money in=0 cacheWrite=1000          | usage    | account            | revenue:money       | 0.00125     | 0.99665
  ask money in=1 out=0                    | usage    | account            | revenue:money       | 0.000001    | 0.996649
  ask double in=1000 out=100              | usage    | account            | revenue:double-money| 0.004       | 0.992649
  fail money                              | -        |                    |                     |             | 0.992649
  refuse money                            | -        |                    |                     |             | 0.992649
  uncounted money 400                     | usage    | account            | revenue:money       | 0.001021    | 0.991628
  adjust -0.90 adj-1 overpaid             | adjust   | account            | adjust              | 0.90        | 0.091628
  adjust 0.008372 adj-2 rounding          | adjust   | adjust             | account             | 0.008372    | 0.10
  card 0.01                               | card     | cards:day          | card                | 0.01        | 0.10
  ask cards in=1000 out=100               | usage    | card               | revenue:cards       | 0.002       | 0.10
  over money in=1000 out=20000            | usage    | account            | revenue:money       | 0.10        | 0.00
                                          | absorbed | absorbed:over_hold | revenue:money       | 0.101       | 0.00
  refuse poor                             | -        |                    |                     |             | 0.00
  topup 0.50 pay-2                        | topup    | topup              | account             | 0.50        | 0.50
`;

interface AccountWithKeys {
  readonly here: GatewayHere;
  readonly account: TestAccount;
  /** The account's keys, by group. */
  readonly keys: ReadonlyMap<string, TestAccount>;
}

/** Runs one step; the first word names it. */
async function carryOut({ here, account, keys }: AccountWithKeys, step: string): Promise<void> {
  const [verb, ...words] = step.split(" ") as [string, ...string[]];
  const key = keys.get(words[0] as string) ?? account;
  const numbers = Object.fromEntries(words.slice(1).map((word) => [word.split("=")[0], Number(word.split("=")[1])]));
  const { in: input = 0, out: output = 0, cached = 0, cacheWrite = 0 } = numbers;
  switch (verb) {
    case "topup": {
      const [usd, id] = words as [string, string];
      const ran = await tollgate(here, "topup", "--account", account.name, "--usd", usd, "--id", id);
      assert.equal(ran.status, 0, ran.err);
      return;
    }
    case "adjust": {
      const [usd, id, note] = words as [string, string, string];
      const ran = await tollgate(here, "account", "adjust", account.name, `--usd=${usd}`, "--id", id, "--note", note);
      assert.equal(ran.status, 0, ran.err);
      return;
    }
    case "card": {
      const quota = parseUsd(words[0] as string);
      const facts = { plan: "pro", group: "cards", lastsMs: 86_400_000, afterPrevious: false };
      await here.store.grant(account.tag, { id: "code_1", card: "day", quota, reference: "code_1", ...facts });
      return;
    }
    case "ask":
      here.simulator.program({
        usage: { input, output, cached, cacheWrite, cacheWrite1h: 0, reasoning: 0 },
        // A server that counts no output must not send any; otherwise its count would be incomplete.
        ...(output === 0 ? { texts: [] } : {}),
      });
      return served(here, key);
    case "over":
      here.simulator.program({ usage: { input, output }, ignoreLimit: true });
      return served(here, key);
    case "uncounted":
      here.simulator.program({ noUsage: true, text: "x".repeat(Number(words[1])) });
      return served(here, key);
    case "fail":
      here.simulator.program({ fault: { status: 500 } }, { times: 2 });
      return refusedWith(here, key, 403, {});
    case "refuse":
      return refusedWith(here, key, words[0] === "poor" ? 403 : 404, words[0] === "poor" ? {} : { model: "no-model" });
    default:
      throw new Error(`no such step: ${verb}`);
  }
}

async function refusedWith(here: GatewayHere, key: TestAccount, status: number, fields: object): Promise<void> {
  const reply = await ask(here, "chat", key.key, { ...fields });
  assert.equal(reply.status, status, await reply.text());
  await assertAtRest(here, key);
}

function asRow({ kind, debit, credit, amount, balance }: LedgerLine, { tag }: TestAccount): string {
  const named = (name: string) => name.replace(`acct_${tag}`, "account").replace(/^ent_.*/, "card");
  return [kind, named(debit), named(credit), formatUsd(amount), formatUsd(balance)].join(" | ");
}

test("each step leaves the lines and the balance that finance expects, and the whole ledger balances", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const account = await here.account({ usd: "0" });
  const keys = new Map([["money", account]]);
  for (const [name, group] of [
    ["double", "double-money"],
    ["cards", "cards"],
  ] as const) {
    const { id, hash, text } = newKey(account.tag, randomBytes);
    await here.store.createKey(account.tag, { id, hash, group });
    keys.set(name, { ...account, key: text, keyId: id });
  }
  let seq = 0;
  let step = "";
  for (const row of STEPS.trim().split("\n").slice(1)) {
    const [next = "", ...cells] = row.split("|").map((cell) => cell.trim());
    if (next !== "") {
      step = next;
      await carryOut({ here, account, keys }, step);
    }
    const [line] = await here.store.readLedger(account.tag, seq, 1);
    if (cells[0] === "-") {
      assert.equal(line, undefined, `${step}: leaves no line`);
    } else {
      assert.ok(line, `${step}: leaves a line`);
      assert.equal(asRow(line, account), cells.join(" | "), step);
      seq += 1;
    }
    const more = await here.store.readLedger(account.tag, seq, 1);
    const follows = STEPS.split("\n")[STEPS.split("\n").indexOf(row) + 1] ?? "";
    if (!follows.trim().startsWith("|")) assert.deepEqual(more, [], `${step}: leaves nothing else`);
    const balance = (await here.store.getAccount(account.tag))?.balance ?? -1n;
    assert.equal(formatUsd(balance), cells.at(-1), `${step}: the balance`);
  }

  const one = await tollgate(here, "ledger", "verify", "--account", account.name);
  assert.equal(one.status, 0, one.err);
  assert.match(one.out, new RegExp(`^${account.name} +balanced +${seq} +0\\.50 +0\\.50 +0$`, "m"));
  const totals = [...one.out.matchAll(/^\S+ +(-?\d+\.\d+)$/gm)].map((match) =>
    parseUsd(match[1] as string, { signed: true }),
  );
  assert.ok(totals.length >= 6);
  assert.equal(
    totals.reduce<bigint>((sum, usd) => sum + (usd ?? 0n), 0n),
    0n,
    "debits equal credits",
  );
  assert.equal((await tollgate(here, "ledger", "verify")).out, "Accounts verified: 1; out of balance: 0.\n");
});
