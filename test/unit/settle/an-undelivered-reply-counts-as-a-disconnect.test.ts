/**
 * ARCHITECTURE.md promise 3: a complete reply whose client disconnected before it could be written counts as a disconnect, in
 * the ledger and in the log. Earlier it was logged as answered with 200, and its line said `complete`.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { Answered } from "../../../src/dispatch/ask.ts";
import { relayWhole } from "../../../src/request/answer.ts";
import type { AttemptConversion } from "../../../src/request/conversion.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { Observed } from "../../../src/settle/observed.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import type { Group, Route } from "../../../src/values/catalog.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { systemClock } from "../../../src/values/time.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const ROUTE = MODEL.routes[0] as Route;
const PERMIT = {
  ...{ requestId: "whole", tag: "whole", keyId: "key", model: MODEL, group: CATALOG.groups.get("money") as Group },
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
  ...{ tokensTaken: 10, hold: nanoUsd(900_000_000n), outputMost: 100, unmetered: false, storeTimeMs: 0, limits: {} },
} as unknown as Permit;

/** Relays a reply of 20 tokens. @param leaves when the client disconnects. */
async function relayed(leaves: "before" | "while it is settled" | "never") {
  const told: string[] = [];
  const asks: SettleAsk[] = [];
  const reply = {
    gone: leaves === "before",
    whole: (status: number) => void (reply.gone || told.push(`sent ${status}`)),
  };
  const attempts = [{ upstream: ROUTE.upstream, model: ROUTE.upstreamModel, outcome: "ok", status: 200 }];
  const run = {
    ...{ reply, permit: PERMIT, attempts, settled: false, protocol: "chat", asksToThink: false, streamed: false },
    endpoint: { pathSuffix: undefined },
    record: {
      answeredBy() {},
      charged() {},
      settled() {},
      answered: (status: number) => told.push(`answered ${status}`),
    },
  } as unknown as Run;
  const usage = { ...NO_USAGE, input: 10, output: 20 };
  const whole = {
    body: Buffer.from("{}"),
    counts: { usage, final: true, produced: { bytes: 80, tokens: 20, deltas: 1 } },
  };
  const answered = { route: ROUTE, attempts, token: { whole, exchange: {} } } as unknown as Answered<AttemptConversion>;
  const parts = {
    ...{ clock: systemClock, cut: new AbortController().signal, observed: new Observed() },
    settings: () => ({ leftAllowanceNano: 1_000_000_000 }),
    settler: {
      async settle(ask: SettleAsk) {
        asks.push(ask);
        if (leaves === "while it is settled") reply.gone = true;
      },
    },
  } as unknown as PipelineParts;
  await relayWhole(run, PERMIT, answered, parts);
  const [ask] = asks;
  assert.ok(ask && asks.length === 1);
  const { ended, attempts: notes } = JSON.parse(ask.memo);
  return { told, ended, voided: ask.voided, cause: ask.absorbedCause, why: notes[0].why };
}

test("a client that disconnects before it is charged has left the request", async () => {
  assert.deepEqual(await relayed("before"), {
    ...{ told: [], ended: "client_gone", voided: true, cause: "client_gone", why: "client_gone" },
  });
});

test("a client that disconnects while it is charged pays, and is not logged as answered", async () => {
  assert.deepEqual(await relayed("while it is settled"), {
    ...{ told: [], ended: "complete", voided: false, cause: undefined, why: "answered" },
  });
});

test("a client that stays connected is answered", async () => {
  assert.deepEqual(await relayed("never"), {
    told: ["answered 200", "sent 200"],
    ...{ ended: "complete", voided: false, cause: undefined, why: "answered" },
  });
});
