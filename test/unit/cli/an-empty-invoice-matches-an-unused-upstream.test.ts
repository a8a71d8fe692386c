/**
 * An upstream may not have been used for a month, and its vendor's export then has a heading only. `tollgate reconcile`
 * succeeds if the ledger has nothing either; it fails if the file has usage of which nothing was compared.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { run } from "./captured-run.ts";

test("no usage on both sides is a match, and usage of models that the ledger does not have is none", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-invoice-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const from = join(dir, "usage.csv");
  const reconcile = (rows: string) => {
    writeFileSync(from, `date,model,cost\n${rows}`);
    const days = ["--since", "2026-08-01", "--until", "2026-08-31"];
    return run(["reconcile", "--from", from, "--upstream", "east", ...days], {
      env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
      fetch: (async () => Response.json({ items: [], next: null })) as typeof fetch,
    });
  };
  const unused = await reconcile("");
  assert.deepEqual([unused.status, unused.err], [0, ""]);
  const foreign = await reconcile("2026-08-02,other,1.5\n");
  assert.equal(foreign.status, 1);
  assert.match(foreign.err, /^Nothing was compared/);
});
