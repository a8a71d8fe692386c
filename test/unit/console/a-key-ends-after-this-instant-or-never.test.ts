/** A key that is created, or given an end, at this very instant would be refused at once: the operator is told. */
import assert from "node:assert/strict";
import test from "node:test";
import { systemClock } from "../../../src/values/time.ts";
import { startConsole } from "./running-console.ts";

const NOW_MS = Date.parse("2026-11-29T12:00:00.000Z");

test("an end at this instant is refused, and one a second later is taken", async (t) => {
  const { ask } = await startConsole(t, { clock: { ...systemClock, wallMs: () => NOW_MS } });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const create = (end: string) => ask("POST", "/admin/v1/accounts/alice/keys", { group: "big", expires_at: end });
  const refused = await create("2026-11-29T12:00:00Z");
  assert.equal(refused.status, 400);
  assert.match(refused.json.error.message, /expires_at/);
  const created = await create("2026-11-29T12:00:01Z");
  assert.deepEqual([created.status, created.json.expires_at], [201, "2026-11-29T12:00:01.000Z"]);

  const change = (end: string) => ask("PUT", `/admin/v1/keys/${created.json.id}/expiry`, { expires_at: end });
  assert.equal((await change("2026-11-29T12:00:00Z")).status, 400);
  assert.equal((await change("2026-11-29T12:00:02Z")).status, 200);
});
