/** docs/failure-model.md rows G3 and G4 under load: a small run of `npm run reloads`. */
import assert from "node:assert/strict";
import test from "node:test";
import { faultsOf, reloadEndurance } from "./endurance.ts";

const RELOADS = 60;

test("requests are charged at a price that was in force when they were admitted", async (t) => {
  const figures = await reloadEndurance((undo) => t.after(undo), { workers: 3, reloads: RELOADS, clients: 6, seed: 3 });
  assert.deepEqual(faultsOf(figures), []);
  assert.ok(figures.reloads >= RELOADS && figures.answered > 0 && figures.prices > 1, JSON.stringify(figures));
  assert.ok(figures.kills + figures.stops + figures.drains > 0, JSON.stringify(figures));
  t.diagnostic(JSON.stringify(figures));
});
