import assert from "node:assert/strict";
import { test } from "node:test";
import { LedgerWalk } from "../../../src/store/ledger/walk.ts";
import { accountId } from "../../../src/store/names.ts";
import type { LedgerLine } from "../../../src/store/records.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { ridOf, tagOf } from "./asks.ts";

const TAG = tagOf("walk");
const REQUESTS = 20_000;

/** A complete answer without tokens. */
const MEMO = JSON.stringify({
  ...{ input: 0, cached_input: 0, cache_write: 0, cache_write_1h: 0, output: 0, reasoning: 0, tool_calls: {} },
  ...{ price_input: "1", price_cached_input: "1", price_cache_write: "1", price_cache_write_1h: "1" },
  ...{ price_output: "1", price_tools: {}, multiplier: "1000000", counted: "upstream", ended: "complete", hold: "1" },
  ...{ upstream: "east", upstream_model: "big", cost: "0" },
  attempts: [
    { upstream: "east", model: "big", outcome: "ok", status: 200, input: 0, output: 0, cost: "0", paid_by: "client" },
  ],
});

function charge(seq: number, request: number): LedgerLine {
  return {
    ...{ seq, atMs: 1, kind: "usage", debit: accountId(TAG), credit: "revenue:money", group: "money", model: "big" },
    ...{ amount: nanoUsd(0n), balance: nanoUsd(0n), reference: ridOf(request), key: "key_walk", memo: MEMO },
  };
}

test("A second charge is noticed among the last 20,000 requests, wherever it is.", () => {
  const walk = new LedgerWalk(TAG);
  const expected: string[] = [];
  const placesOf = new Map<number, number>();
  let seq = 0;
  const add = (request: number): number => {
    walk.add(charge(++seq, request));
    return seq;
  };
  for (let request = 1; request <= 2 * REQUESTS + 1; request++) {
    placesOf.set(request, add(request));
    if (request % (REQUESTS / 4) !== 1) continue;
    for (const again of [request, request - REQUESTS + 10]) {
      if (again < 1) continue;
      expected.push(`${seq + 1} charged_twice: Line ${placesOf.get(again)} already charged ${ridOf(again)}.`);
      placesOf.set(again, add(again));
    }
  }
  walk.end();
  assert.deepEqual(
    walk.findings.map(({ check, line, what }) => `${line} ${check}: ${what}`),
    expected,
  );
  assert.equal(walk.findingCount, 14);
});

test("A request is forgotten after twice as many later ones, so that a walk of any length needs bounded memory.", () => {
  const walk = new LedgerWalk(TAG);
  for (let request = 1; request <= 2 * REQUESTS; request++) walk.add(charge(request, request));
  walk.add(charge(2 * REQUESTS + 1, 1));
  walk.end();
  assert.deepEqual(walk.findings, []);
});
