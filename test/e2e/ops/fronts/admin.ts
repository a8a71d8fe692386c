/** Accounts and keys of a gateway that runs as a separate process, over its admin API. */
import assert from "node:assert/strict";
import type { GatewayProcess } from "../../../rig/gateway.ts";

const HEADERS = { authorization: "Bearer test-admin-token", "content-type": "application/json" };

async function call(gateway: Pick<GatewayProcess, "adminUrl">, path: string, body?: object): Promise<unknown> {
  const reply = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
    headers: HEADERS,
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
  });
  assert.ok(reply.ok, `${path}: ${reply.status} ${await reply.clone().text()}`);
  return reply.json();
}

/** Creates an account with 10 USD. @returns its key. */
export async function keyOf(gateway: Pick<GatewayProcess, "adminUrl">, name: string, usd = "10.00"): Promise<string> {
  await call(gateway, "/accounts", { name });
  await call(gateway, `/accounts/${name}/topups`, { usd, id: `pay-${name}` });
  const made = (await call(gateway, `/accounts/${name}/keys`, { group: "money" })) as { key?: string };
  assert.ok(made.key);
  return made.key;
}

/** Reads from the admin API. */
export function adminGet(gateway: Pick<GatewayProcess, "adminUrl">, path: string): Promise<unknown> {
  return call(gateway, path);
}
