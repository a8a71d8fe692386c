/** Callers of one turn share a metrics page. A page that is asked for later is made anew. */
import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

test("two scrapes one after the other get two pages", async (t) => {
  let made = 0;
  const metrics = async () => ({ contentType: "text/plain; version=0.0.4", body: `made ${++made}\n` });
  const { ask } = await startConsole(t, { metrics });
  for (const expected of ["made 1\n", "made 2\n", "made 3\n"]) {
    assert.equal((await ask("GET", "/metrics")).text, expected);
  }
});
