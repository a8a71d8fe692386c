/** Each page size of the OpenAPI document is a number whose bounds are those that the server accepts. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";

interface Parameter {
  readonly name: string;
  readonly schema: { readonly type?: string; readonly minimum?: number; readonly maximum?: number };
}
type Paths = Record<string, { readonly get?: { readonly parameters?: readonly Parameter[] } }>;

const TOKEN = { authorization: "Bearer test-admin-token", connection: "close" };
const { paths } = JSON.parse(readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8")) as {
  readonly paths: Paths;
};
const sized = Object.entries(paths).flatMap(([path, { get }]) => {
  const limit = get?.parameters?.find(({ name }) => name === "limit");
  return limit === undefined ? [] : [{ path, schema: limit.schema }];
});

test("each documented page size is accepted within its bounds only", async (t) => {
  assert.ok(sized.length >= 10);
  const here = await startGatewayHere();
  t.after(() => here.close());
  const post = { method: "POST", headers: { ...TOKEN, "content-type": "application/json" }, body: '{"name":"alice"}' };
  assert.equal((await fetch(`${here.adminUrl}/admin/v1/accounts`, post)).status, 201);
  const isMalformed = async (path: string, limit: number) => {
    const names = path.replace("{name}", "alice").replace("{upstream}", "nowhere");
    const more = path.includes("usage") ? "&since=2026-08-31" : "";
    const answer = await fetch(`${here.adminUrl}${names}?limit=${limit}${more}`, { headers: TOKEN });
    const { error } = (await answer.json()) as { readonly error?: { readonly code: string } };
    return error?.code === "malformed";
  };
  for (const { path, schema } of sized) {
    const { type, minimum = Number.NaN, maximum = Number.NaN } = schema;
    assert.equal(type, "integer", path);
    const tried = [minimum - 1, minimum, maximum, maximum + 1];
    const refused = [];
    for (const limit of tried) if (await isMalformed(path, limit)) refused.push(limit);
    assert.deepEqual(refused, [minimum - 1, maximum + 1], path);
  }
});
