/** Ledgers written by real requests, for tests that read, export, verify and damage them. */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { type Ran, run } from "../../../unit/cli/captured-run.ts";
import { ask, assertAtRest, type Fields } from "../../protocol/whole/asking.ts";

/** Runs a command against the gateway's admin API. */
export function tollgate(here: GatewayHere, ...argv: string[]): Promise<Ran> {
  return run(argv, { env: { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" } });
}

/** Sends a request, reads the answer to its end and waits until it is in the ledger. */
export async function served(
  here: GatewayHere,
  account: TestAccount,
  protocol: Protocol = "chat",
  fields: Fields = {},
): Promise<void> {
  const reply = await ask(here, protocol, account.key, fields);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  // A store in another process may get the charge after the answer was read.
  while ((await here.store.getAccount(account.tag))?.held !== 0n) await setImmediate();
  await assertAtRest(here, account);
}
