import assert from "node:assert/strict";
import test from "node:test";
import { startGateway } from "./captured-run.ts";

test("a confirmation of a store that lost nothing says that there was nothing to confirm", async (t) => {
  const good = { state: "good", problem: null, waiting_charges: 0, differences: [], confirm: null } as const;
  const { tollgate } = await startGateway(t, { storeStatus: async () => good, confirmStore: async () => "nothing" });
  const ran = await tollgate("store", "confirm", "0123456789ab");
  assert.deepEqual([ran.status, ran.err], [0, ""]);
  assert.match(ran.out, /^There was nothing to confirm; nothing was changed\.\nThe store has all of its data\.\n/);

  const wrong = await tollgate("store", "confirm", "x");
  assert.deepEqual([wrong.status, wrong.out], [1, ""]);
  assert.match(wrong.err, /^Refused: <seen> must be the 12 characters that tollgate store status shows\.\n/);
  assert.match(wrong.err, /if there is anything to confirm/);
});
