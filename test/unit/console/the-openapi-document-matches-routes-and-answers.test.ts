/** The OpenAPI document is current, has every route and no other, and real answers have the documented forms. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import Schema from "typebox/schema";
import { openApiFileText } from "../../../src/console/openapi-file.ts";
import { type GatewayHere, startGatewayHere } from "../../rig/gateway.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly description?: string }[];
  readonly responses: Record<string, { content: Record<string, { schema: object }> }>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}

const TOKEN = { authorization: "Bearer test-admin-token", connection: "close" };
const published = readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8");

test("docs/openapi.json matches the routes (npm run openapi writes it)", async () => {
  assert.equal(published, await openApiFileText());
});

test("the server returns the whole document to clients with the token", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const url = `${here.adminUrl}/admin/v1/openapi.json`;
  const answer = await fetch(url, { headers: TOKEN });
  assert.deepEqual(await answer.json(), JSON.parse(published));
  assert.equal((await fetch(url, { headers: { connection: "close" } })).status, 401);
});

test("every operation has an id of its own, descriptions, and the refusals of missing and wrong tokens", () => {
  const { openapi, paths } = JSON.parse(published) as Document;
  assert.equal(openapi, "3.1.0");
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
  for (const { operationId, summary, security, responses, parameters } of operations) {
    assert.ok(summary.length > 10, operationId);
    for (const { name, description } of parameters ?? []) assert.ok(description, `${operationId}: ${name}`);
    if (security === undefined)
      for (const status of [401, 403, 429, 500, 503]) assert.ok(responses[status], operationId);
  }
});

test("real answers of every operation have the documented form", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const document = (await (
    await fetch(`${here.adminUrl}/admin/v1/openapi.json`, { headers: TOKEN })
  ).json()) as Document;
  const asker = new Asker(here, document);
  await driveAll(asker, here);
  const all = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
  assert.deepEqual(
    [...asker.seen].sort(),
    all.sort(),
    "each operation was asked, and each path asked is in the document",
  );
});

/** Calls every operation at least once, with good answers and refusals. */
async function driveAll(asker: Asker, here: GatewayHere): Promise<void> {
  const { ask } = asker;
  for (const path of ["/healthz", "/readyz", "/metrics"]) await ask("GET", path, 200);
  await ask("POST", "/admin/v1/accounts", 201, { name: "alice" });
  await ask("POST", "/admin/v1/accounts", 200, { name: "alice" });
  await ask("POST", "/admin/v1/accounts", 409, { name: "alice", plan: "pro" });
  await ask("POST", "/admin/v1/accounts", 400, { name: "!" });
  await ask("PUT", "/admin/v1/accounts/{name}/plan", 200, { plan: "pro" }, { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/{name}/notify", 200, { below_usd: "5.00" }, { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/{name}/notify", 404, { below_usd: null }, { name: "nobody" });
  await ask("GET", "/admin/v1/notices", 200);
  await ask("POST", "/admin/v1/notices/test", 409);
  await ask("POST", "/admin/v1/notices/retry", 409);
  const payment = { usd: "10.00", id: "pay_1" };
  await ask("POST", "/admin/v1/accounts/{name}/topups", 201, payment, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/topups", 200, payment, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/topups", 404, payment, { name: "nobody" });
  await ask("POST", "/admin/v1/accounts/{name}/topups", 409, { ...payment, usd: "1.00" }, { name: "alice" });
  const adjustment = { usd: "-1.00", id: "adj_1", note: "typo" };
  await ask("POST", "/admin/v1/accounts/{name}/adjustments", 201, adjustment, { name: "alice" });
  const wanted = { group: "money", idempotency_id: "order-1" };
  const key = await ask("POST", "/admin/v1/accounts/{name}/keys", 201, wanted, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/keys", 409, wanted, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/keys", 201, { group: "limited-money" }, { name: "alice" });
  const id = String(key.id);
  await ask("GET", "/admin/v1/accounts/{name}/keys", 200, undefined, { name: "alice" }, "?limit=1");
  await chat(here, String(key.key));
  await ask("PUT", "/admin/v1/keys/{id}/group", 200, { group: "limited-money" }, { id });
  const codes = await ask("POST", "/admin/v1/codes", 201, { card: "day", count: 3, idempotency_id: "batch-1" });
  await ask("POST", "/admin/v1/codes", 409, { card: "day", count: 2, idempotency_id: "batch-1" });
  const [first, second, third] = codes.items as { id: string; code: string }[];
  await ask("POST", "/admin/v1/accounts/{name}/redemptions", 201, { code: first?.code }, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/redemptions", 200, { code: first?.code }, { name: "alice" });
  await ask("POST", "/admin/v1/codes/{id}/void", 200, undefined, { id: second?.id ?? "" });
  await ask("GET", "/admin/v1/codes/{id}", 200, undefined, { id: second?.id ?? "" });
  await ask("GET", "/admin/v1/codes", 200);
  const batch = await ask("POST", "/admin/v1/codes", 201, {
    card: "day",
    count: 2,
    label: "fair",
    redeem_by: "2099-12-31",
  });
  const inBatch = { id: String(batch.batch_id) };
  await ask("POST", "/admin/v1/codes", 400, { card: "day", count: 1, redeem_by: "2020-01-01" });
  await ask("GET", "/admin/v1/codes", 200, undefined, {}, `?batch=${inBatch.id}`);
  await ask("GET", "/admin/v1/code-batches", 200);
  await ask("GET", "/admin/v1/code-batches/{id}", 200, undefined, inBatch);
  await ask("GET", "/admin/v1/code-batches/{id}", 404, undefined, { id: "batch_0000000000000000" });
  await ask("POST", "/admin/v1/code-batches/{id}/void", 200, undefined, inBatch);
  await ask("GET", "/admin/v1/code-batches/{id}/report", 200, undefined, inBatch);
  const gift = { card: "day", id: "sorry-1" };
  await ask("POST", "/admin/v1/accounts/{name}/gifts", 201, gift, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/gifts", 200, gift, { name: "alice" });
  await ask("POST", "/admin/v1/accounts/{name}/gifts", 404, gift, { name: "nobody" });
  await ask("GET", "/admin/v1/accounts/{name}/cards", 200, undefined, { name: "alice" });
  await ask("GET", "/admin/v1/accounts/{name}", 200, undefined, { name: "alice" });
  await ask("GET", "/admin/v1/accounts", 200, undefined, {}, "?limit=1");
  const { items } = await ask("GET", "/admin/v1/accounts/{name}/ledger", 200, undefined, { name: "alice" });
  assert.deepEqual((items as { kind: string }[]).map(({ kind }) => kind).sort(), [
    "adjust",
    "card",
    "card",
    "topup",
    "usage",
  ]);
  const charged = (items as { kind: string; reference: string }[]).find(({ kind }) => kind === "usage");
  const ofRequest = { name: "alice", id: charged?.reference ?? "" };
  await ask("GET", "/admin/v1/accounts/{name}/requests/{id}", 200, undefined, ofRequest);
  await ask("GET", "/admin/v1/accounts/{name}/requests/{id}", 404, undefined, { ...ofRequest, name: "nobody" });
  await ask("GET", "/admin/v1/accounts/{name}/ledger/lines", 200, undefined, { name: "alice" });
  // Lines can be archived after four days; test/e2e/money/ledger checks the answer.
  const archive = { before: "2020-01-01", after: 0, through: 1, sha256: "0".repeat(64) };
  await ask("POST", "/admin/v1/accounts/{name}/ledger/archive", 409, archive, { name: "alice" });
  await ask("GET", "/admin/v1/ledger/verification", 200);
  await ask("GET", "/admin/v1/ledger/verification", 200, undefined, {}, "?account=alice");
  await ask("GET", "/admin/v1/ledger/marks", 200);
  await ask("GET", "/admin/v1/ledger/marks", 404, undefined, {}, "?account=nobody");
  for (const by of ["account", "group", "model", "key", "day", "upstream"]) {
    await ask("GET", "/admin/v1/usage", 200, undefined, {}, `?by=${by}`);
  }
  await ask("GET", "/admin/v1/upstreams/{upstream}/usage", 200, undefined, { upstream: "up-chat" });
  for (const model of ["chat-1", "messages-1", "nothing"]) {
    await ask("POST", "/admin/v1/explain", 200, { key_id: id, model, protocol: "chat" });
  }
  await ask("GET", "/admin/v1/store", 200);
  await ask("POST", "/admin/v1/store/confirm", 200, { confirm: "0".repeat(12) });
  await ask("GET", "/admin/v1/upstreams", 200);
  await ask("GET", "/admin/v1/version", 200);
  await ask("GET", "/admin/v1/configuration", 200);
  await ask("GET", "/admin/v1/live", 200, undefined, {}, "?snapshots=1");
  await ask("GET", "/admin/v1/live", 400, undefined, {}, "?snapshots=many");
  await ask("PUT", "/admin/v1/keys/{id}/name", 200, { name: "Laptop" }, { id });
  await ask("PUT", "/admin/v1/keys/{id}/expiry", 200, { expires_at: "2099-01-31T12:00:00Z" }, { id });
  await ask("POST", "/admin/v1/keys/{id}/rotate", 200, { overlap_seconds: 60 }, { id });
  await ask("GET", "/admin/v1/keys/{id}", 200, undefined, { id });
  const limits = { budgets_usd: { day: "5.00", total: "9.00" }, concurrency: 3, addresses: ["192.0.2.0/24"] };
  await ask("PUT", "/admin/v1/keys/{id}/limits", 200, limits, { id });
  await ask("PUT", "/admin/v1/keys/{id}/caps", 200, { models: ["*"] }, { id });
  await ask("GET", "/admin/v1/keys/{id}", 200, undefined, { id });
  await ask("PUT", "/admin/v1/accounts/{name}/limits", 200, { budgets_usd: { day: "5.00" } }, { name: "alice" });
  await ask("POST", "/admin/v1/keys/{id}/suspend", 200, undefined, { id });
  await ask("POST", "/admin/v1/keys/{id}/resume", 200, undefined, { id });
  await ask("POST", "/admin/v1/keys/{id}/revoke", 200, undefined, { id });
  const renamed = { name: "alice.b" };
  await ask("PUT", "/admin/v1/accounts/{name}/name", 200, renamed, { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/{name}/name", 404, renamed, { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/{name}/labels", 200, { labels: { team: "red" } }, renamed);
  await ask("GET", "/admin/v1/accounts", 200, undefined, {}, "?label=team%3Dred&status=normal");
  await ask("POST", "/admin/v1/accounts/{name}/invitations", 201, undefined, renamed);
  await ask("POST", "/admin/v1/accounts/{name}/invitations", 404, undefined, { name: "nobody" });
  await ask("GET", "/admin/v1/accounts/{name}/sessions", 200, undefined, renamed);
  await ask("GET", "/admin/v1/accounts/{name}/sessions", 404, undefined, { name: "nobody" });
  const out = await ask("POST", "/admin/v1/accounts/{name}/sign-out", 200, { passkeys: true }, renamed);
  assert.deepEqual(out, { account: "alice.b", sessions: 0, links: 1, passkeys: 0 });
  await ask("POST", "/admin/v1/accounts/{name}/suspend", 200, undefined, renamed);
  await ask("POST", "/admin/v1/accounts/{name}/resume", 200, undefined, renamed);
  await ask("POST", "/admin/v1/accounts/{name}/close", 200, undefined, renamed);
  await ask("POST", "/admin/v1/accounts/{name}/resume", 409, undefined, renamed);
  await ask("POST", "/admin/v1/accounts/{name}/redemptions", 409, { code: third?.code }, renamed);
  await ask("GET", "/admin/v1/audit", 200, undefined, {}, "?limit=5");
  await ask("GET", "/admin/v1/openapi.json", 200);
}

/** Serves a request of a client, so that there is a charge to show. */
async function chat(here: GatewayHere, key: string): Promise<void> {
  const answer = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model: "chat-1", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
  });
  assert.equal(answer.status, 200, await answer.text());
  await here.requestEnd(answer.headers.get("x-request-id") ?? "");
}

/** Sends a request and checks its answer against the document. */
class Asker {
  readonly seen = new Set<string>();
  readonly #here: GatewayHere;
  readonly #document: Document;

  constructor(here: GatewayHere, document: Document) {
    this.#here = here;
    this.#document = document;
  }

  readonly ask = async (
    method: string,
    template: string,
    status: number,
    body?: object,
    params: Readonly<Record<string, string>> = {},
    query = "",
  ): Promise<Record<string, unknown>> => {
    const what = `${method} ${template}`;
    const operation = this.#document.paths[template]?.[method.toLowerCase()];
    assert.ok(operation, `${what} is not in the document`);
    this.seen.add(operation.operationId);
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const answer = await fetch(this.#here.adminUrl + path + query, {
      method,
      headers: { ...TOKEN, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.equal(answer.status, status, `${what}: ${text}`);
    assert.match(answer.headers.get("x-request-id") ?? "", /^req_/);
    const [type = ""] = (answer.headers.get("content-type") ?? "").split(";");
    const schema = operation.responses[status]?.content[type]?.schema;
    assert.ok(schema, `${what}: ${status} ${type} is not in the document`);
    if (type !== "application/json") return {};
    const json = JSON.parse(text) as Record<string, unknown>;
    const { components } = this.#document;
    const [fits, errors] = Schema.Errors({ ...schema, components } as never, json);
    assert.ok(fits, `${what}: ${JSON.stringify(errors)}\n${text}`);
    return json;
  };
}
