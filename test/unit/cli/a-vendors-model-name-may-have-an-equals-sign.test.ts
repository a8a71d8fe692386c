/**
 * `--model THEIRS=OURS` gives a vendor's model the name of the route. Names of deployments and fine-tuned models may have
 * any sign; those of routes are the operator's own. So the last equals sign separates the two.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { run } from "./captured-run.ts";

test("a model name with an equals sign is mapped to the route's name", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-invoice-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const from = join(dir, "usage.csv");
  writeFileSync(from, "date,model,cost\n2026-08-01,ft:team=a,1.5\n");
  const item = { day: "2026-08-01", model: "big-1", cost_usd: "1.500000000" };
  const ran = await run(
    ["reconcile", "--from", from, "--upstream", "east", "--share", "0", "--model", "ft:team=a=big-1"],
    {
      env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
      fetch: (async () => Response.json({ items: [item], next: null })) as typeof fetch,
    },
  );
  assert.deepEqual([ran.status, ran.err], [0, ""]);
  assert.match(ran.out, /^2026-08-01 +big-1 +cost_usd +1\.50* +1\.50* +0/m);
  assert.doesNotMatch(ran.out, /Not compared, because the ledger/);
});
