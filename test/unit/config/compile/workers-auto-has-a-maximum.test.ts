/** `workers: auto` starts one worker for each core, up to the largest number that may be written. */
import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import test from "node:test";
import { LIMITS } from "../../../../src/config/defaults.ts";
import { LEAST, settingsOf } from "./least.ts";

test("on a machine with many cores, auto is the largest number of workers", (t) => {
  const { availableParallelism } = os;
  t.after(() => {
    Object.assign(os, { availableParallelism });
    syncBuiltinESMExports();
  });
  const workersOn = (cores: number) => {
    os.availableParallelism = () => cores;
    // Also for modules that have imported it by name.
    syncBuiltinESMExports();
    return settingsOf(`store: redis://127.0.0.1:1\nsealing_keys: ["\${KEY}"]\nworkers: auto\n${LEAST}`).workers;
  };
  assert.equal(workersOn(6), 6);
  assert.equal(workersOn(LIMITS.workersMax + 1), LIMITS.workersMax);
});
