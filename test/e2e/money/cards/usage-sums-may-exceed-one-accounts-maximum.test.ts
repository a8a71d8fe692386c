// Sums over many accounts may exceed the most that one account can hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdminClient } from "../../../../src/cli/admin-client.ts";
import { Terminal } from "../../../../src/cli/output/terminal.ts";
import { showUsage } from "../../../../src/cli/usage-command.ts";
import type { JsonObject } from "../../../../src/values/json-object.ts";

test("pages are summed exactly, however large the sum", async () => {
  const page = (next: string | null): JsonObject => ({
    since: "2026-08-01",
    until: "2026-08-31",
    by: "group",
    items: [{ group: "=big, or so", usd: "8999999.999999999" }],
    next,
  });
  const pages = [page("one"), page("two"), page(null)];
  const paths: string[] = [];
  const admin: AdminClient = {
    command: "tollgate",
    async call(_method, path) {
      paths.push(path);
      return { status: 200, body: pages.shift() ?? assert.fail() };
    },
  };
  const { json, text } = await showUsage(
    admin,
    { by: "group", format: "csv" },
    new Terminal({ write: () => true }, async () => {}),
  );
  assert.equal(json.total_usd, "26999999.999999997");
  assert.match(text, /^group,usd,.*\r\n"'=big, or so",26999999\.999999997,.*\r\n$/);
  assert.deepEqual(paths, ["/usage?by=group", "/usage?by=group&cursor=one", "/usage?by=group&cursor=two"]);
});
