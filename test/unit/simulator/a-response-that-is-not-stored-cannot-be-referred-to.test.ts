/** A stateful server keeps a response unless the client said `store: false`: that one is gone as soon as it is answered. */
import assert from "node:assert/strict";
import test from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";

test("a response with store: false is not kept, every other one is", async (t) => {
  const simulator = await startSimulator({ stateful: true });
  t.after(() => simulator.close());
  const ask = async (members: object) => {
    const response = await fetch(`${simulator.url}/responses`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "simulated-small", input: "hi", ...members }),
    });
    return { status: response.status, json: (await response.json()) as { id?: string; error?: { code: string } } };
  };
  const unstored = await ask({ store: false });
  assert.equal(unstored.status, 200);
  assert.deepEqual(simulator.keptIds(), []);
  const refused = await ask({ previous_response_id: unstored.json.id });
  assert.deepEqual([refused.status, refused.json.error?.code], [400, "previous_response_not_found"]);

  const stored = await ask({ input: "hello" });
  const storedToo = await ask({ input: "good day", store: true });
  assert.deepEqual(simulator.keptIds(), [stored.json.id, storedToo.json.id]);
  assert.equal((await ask({ previous_response_id: stored.json.id })).status, 200);
});
