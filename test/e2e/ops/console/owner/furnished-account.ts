/** An account with data of every kind that the pages Overview, Keys and Cards show. */
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../../rig/gateway.ts";
import { admin } from "./signed-in.ts";

/** Names as a user who attacks the page might choose them. */
export const HOSTILE_NAMES = [
  `<img src=x onerror=alert(1)>`,
  `"><script>alert(1)</script>`,
  "مفتاح العربية",
  "👩‍👩‍👧‍👦 Familie",
  "W".repeat(64),
] as const;

export function startOwnerGateway(config: Parameters<typeof testConfig>[1] = {}): Promise<GatewayHere> {
  return startGatewayHere({ config: (places) => testConfig(places, config) });
}

/** Sends a request to a model, and waits for the charge. */
export async function spend(gateway: GatewayHere, key: string, model = "chat-1"): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "user-agent": "codex/1.0" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  if (response.status !== 200) throw new Error(`asking was answered ${response.status}`);
  await gateway.requestEnd(response.headers.get("x-request-id") ?? "");
}

/** Redeemable codes of a card kind. */
export async function codes(gateway: GatewayHere, count: number, card = "day"): Promise<readonly string[]> {
  const made = await admin<{ readonly items: readonly { readonly code: string }[] }>(gateway, "POST", "/codes", {
    card,
    count,
  });
  return made.items.map(({ code }) => code);
}

/** Fills an account: keys with hostile names, spend, budgets nearly used, cards that follow one another. */
export async function furnish(gateway: GatewayHere, { name, key, keyId }: TestAccount): Promise<void> {
  const inTwoDays = new Date(Date.now() + 2 * 86_400_000).toISOString();
  await admin(gateway, "PUT", `/keys/${keyId}/name`, { name: "Laptop of Alice" });
  await admin(gateway, "PUT", `/keys/${keyId}/expiry`, { expires_at: inTwoDays });
  for (const hostile of HOSTILE_NAMES) {
    await admin(gateway, "POST", `/accounts/${name}/keys`, { group: "limited-money", name: hostile });
  }
  await admin(gateway, "PUT", `/accounts/${name}/limits`, { budgets_usd: { day: "5.00", month: "50" } });
  await admin(gateway, "PUT", `/keys/${keyId}/caps`, { budgets_usd: { month: "40.00" }, requests_per_minute: 600 });
  await spend(gateway, key);
  await spend(gateway, key);
  for (const card of ["gift-1", "gift-2"]) {
    await admin(gateway, "POST", `/accounts/${name}/gifts`, { card: "day", id: `${name}-${card}` });
  }
}
