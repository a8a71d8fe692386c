/** How much of a store's history is missing decides whether to restore a backup: it is shown with its two largest units. */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

test("counted times are shown in days and hours, hours and minutes, or minutes and seconds", async () => {
  const epoch = (id: string, counted_seconds: number) => ({ id, counted_seconds });
  const differences = [
    { part: 0, finding: "older", remembered: epoch("a", 97_200), found: epoch("a", 3_660) },
    { part: 1, finding: "older", remembered: epoch("b", 61), found: epoch("b", 0) },
  ];
  const { status, out } = await run(["store", "status"], {
    env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
    fetch: (async () =>
      Response.json({ state: "stopped", waiting_charges: 0, confirm: "seen", differences })) as typeof fetch,
  });
  assert.equal(status, 1);
  assert.match(out, /older +a \(1 d 3 h\) +a \(1 h 1 min\)$/m);
  assert.match(out, /older +b \(1 min 1 s\) +b \(0 s\)$/m);
});
