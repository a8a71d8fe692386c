/** An upstream that is out of rotation for less than a second, or asked for half a minute, is shown with whole seconds, rounded up. */
import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

test("the rest of an ejection and of a model's pause is rounded up to seconds", async (t) => {
  const east = {
    name: "east",
    health: "ejected",
    reason: "errors",
    restMs: 1,
    inFlight: 0,
    maxConcurrency: 10,
    queued: 0,
    limitedModels: new Map([["large", 29_001]]),
    outcomes: { ok: 3 },
  } as const;
  const { ask } = await startConsole(t, { upstreams: () => [east, { ...east, name: "west", restMs: 0 }] });
  const { json } = await ask("GET", "/admin/v1/upstreams");
  assert.deepEqual(
    json.items.map(({ name, rest_seconds }: { name: string; rest_seconds: number }) => [name, rest_seconds]),
    [
      ["east", 1],
      ["west", 0],
    ],
  );
  assert.deepEqual(json.items[0].limited_models, [{ model: "large", rest_seconds: 30 }]);
});
