/** An operator who wants the same pause after each ejection sets `cool_down_max` to `cool_down`. */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig } from "../../../../src/config/config.ts";
import { LEAST } from "./least.ts";

test("the longest cool-down may be equal to the first one, and must not be shorter", () => {
  const loadedWith = (most: string) =>
    loadConfig({ text: LEAST.replace('/v1"}', `/v1", health: {cool_down: 30s, cool_down_max: ${most}}}`), env: {} });
  const equal = loadedWith("30s");
  assert.ok("settings" in equal);
  const { coolDownMs, coolDownMaxMs } = equal.settings.upstreams.get("east")?.health ?? {};
  assert.deepEqual([coolDownMs, coolDownMaxMs], [30_000, 30_000]);
  const shorter = loadedWith("29s");
  assert.ok("problems" in shorter);
  assert.match(shorter.problems.map(formatProblem).join(), /cool_down_max must not be shorter than cool_down/);
});
