// ARCHITECTURE.md promise 4: admission itself reads a key's group and status, and its account's. So a change made on
// one process applies to the next request on any other process. Caches are warm: every process has just served the same
// key.
import assert from "node:assert/strict";
import test from "node:test";
import { printRequestId, type RequestId } from "../../../../src/values/request-id.ts";
import type { GatewayProcess } from "../../../rig/gateway.ts";
import {
  type Answer,
  admin,
  ask,
  chat,
  type Deployment,
  ledgerOf,
  type MoneyAccount,
  newKey,
  openAccount,
  startDeployment,
} from "./rig.ts";

const ACCOUNTS = 10;
const DECISIONS = 1_000;
/** One change out of this many is a revocation, after which the account continues with another key. */
const REVOKE_EVERY = 5;
/** One change out of this many suspends and resumes the account. */
const SUSPEND_EVERY = 7;
/** Two groups that may use the model, at different prices, and one that may not. */
const GROUPS = ["money", "elsewhere", "double-money"] as const;
const BODY = chat({ maxTokens: 16 });

interface Client {
  readonly account: MoneyAccount;
  /** Group by request id of the answered requests: the ledger must agree. */
  readonly expected: Map<string, string>;
  key: Pick<MoneyAccount, "key" | "keyId">;
}

/**
 * The result once the store is fast enough for a process. On a busy machine a process may refuse with `store_unavailable`, and then nothing was
 * decided, or answer a write with `not_confirmed`. Each write of this test has the same effect if it is repeated.
 */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const result = await call();
      if ((result as Partial<Answer>).cause !== "store_unavailable") return result;
    } catch (error) {
      if (!/store_unavailable|not_confirmed/.test(String(error))) throw error;
    }
  }
}

/** @returns whether the next request, on another process, was decided on the new value. */
async function change(deployment: Deployment, client: Client, step: number): Promise<boolean> {
  const { gateways } = deployment;
  const writer = gateways[step % gateways.length];
  // Never the process that wrote; which of the others alternates by round.
  const reader = gateways[(step + 1 + (Math.floor(step / gateways.length) % (gateways.length - 1))) % gateways.length];
  assert.ok(writer && reader && writer !== reader);
  const { key, keyId } = client.key;
  if (step % REVOKE_EVERY === REVOKE_EVERY - 1) {
    await patiently(() => admin(writer, "POST", `/keys/${keyId}/revoke`));
    const answer = await patiently(() => ask(reader, key, BODY));
    client.key = await patiently(() => newKey(writer, client.account.name, "money"));
    return answer.status === 401 && answer.cause === "revoked_key";
  }
  if (step % SUSPEND_EVERY === SUSPEND_EVERY - 1) {
    const path = `/accounts/${client.account.name}`;
    await patiently(() => admin(writer, "POST", `${path}/suspend`));
    const answer = await patiently(() => ask(reader, key, BODY));
    await patiently(() => admin(reader, "POST", `${path}/resume`));
    return answer.status === 401 && answer.cause === "suspended";
  }
  const group = GROUPS[step % GROUPS.length] as (typeof GROUPS)[number];
  await patiently(() => admin(writer, "PUT", `/keys/${keyId}/group`, { group }));
  const answer = await patiently(() => ask(reader, key, BODY));
  if (group === "elsewhere") return answer.cause === "group_mismatch" && answer.text.includes("elsewhere");
  client.expected.set(String(answer.headers["x-request-id"]), group);
  return answer.status === 200;
}

test("1,000 changes of group, suspensions and revocations: the next request is decided on the new value 1,000 times", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 4 });
  try {
    const [first] = deployment.gateways;
    assert.ok(first);
    const clients: Client[] = await Promise.all(
      Array.from({ length: ACCOUNTS }, async () => {
        const account = await patiently(() => openAccount(first, { funds: 10_000_000_000n }));
        return { account, key: account, expected: new Map() };
      }),
    );
    let right = 0;
    const wrong: string[] = [];
    await Promise.all(
      clients.map(async (client, offset) => {
        for (let step = 0; step < DECISIONS / ACCOUNTS; step++) {
          if (await change(deployment, client, step + offset)) right += 1;
          else wrong.push(`${client.account.name} step ${step}`);
        }
      }),
    );
    assert.deepEqual(wrong, []);
    assert.equal(right, DECISIONS);
    for (const { account, expected } of clients) {
      assert.deepEqual(await chargedGroups(first, account.name, expected.size), expected);
    }
  } finally {
    await deployment.close();
  }
});

/** The group of each charge by request id, as soon as this many are there. */
async function chargedGroups(gateway: GatewayProcess, name: string, count: number): Promise<Map<string, string>> {
  for (;;) {
    const lines = (await patiently(() => ledgerOf(gateway, name))).filter((line) => line.kind === "usage");
    if (lines.length >= count) return new Map(lines.map((line) => [printed(line.reference), line.group]));
  }
}

/** The request id of a ledger line in the form of the reply's header. */
function printed(reference: string): string {
  return reference.startsWith("req_") ? reference : printRequestId(reference as RequestId);
}
