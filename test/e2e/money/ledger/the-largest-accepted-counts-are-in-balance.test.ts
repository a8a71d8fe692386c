/**
 * An upstream may count up to 1,000,000,000 tokens of each kind (docs/usage-forms.md rule 6). The ledger of an account
 * with a request that has several kinds at that size is in balance, and shows what its attempt cost.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { served, tollgate } from "./rig.ts";

const MOST = 1_000_000_000;

test("the largest counts of input that are accepted, of several kinds at once, are in balance and shown with their attempt", async () => {
  const here = await startGatewayHere();
  try {
    const account = await here.account();
    const usage = { input: MOST, cached: MOST, cacheWrite: MOST, cacheWrite1h: 0, output: 100 };
    here.simulator.program({ usage });
    await served(here, account, "messages");

    const verified = await tollgate(here, "ledger", "verify", "--account", account.name);
    assert.equal(verified.status, 0, verified.err);
    const shown = await tollgate(here, "--json", "ledger", "show", "--account", account.name, "--attempts");
    const [attempt] = JSON.parse(shown.out).items;
    assert.deepEqual([attempt?.input_tokens, attempt?.output_tokens, attempt?.cost_usd], [3 * MOST, 100, "2350.001"]);
  } finally {
    await here.close();
  }
});
