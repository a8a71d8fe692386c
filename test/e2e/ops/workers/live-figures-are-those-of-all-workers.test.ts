/**
 * `GET /admin/v1/live` of a gateway of several processes: the workers' figures are combined, and the stream ends with
 * the drain.
 */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import test from "node:test";
import type { LiveAnswer } from "../../../../src/console/answers/live.ts";
import { workersScene } from "./rig.ts";

async function* snapshotsOf(response: Response): AsyncGenerator<LiveAnswer, void> {
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as never) }))
    if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length)) as LiveAnswer;
}

test("requests at either worker are counted together, and the stream ends when the gateway drains", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const response = await fetch(`${gateway.adminUrl}/admin/v1/live`, {
    headers: { authorization: "Bearer test-admin-token" },
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const snapshots = snapshotsOf(response);
  const first = await snapshots.next();
  assert.equal(first.done ? undefined : first.value.requests, 0);
  // Connections go to the workers in turn.
  for (let count = 0; count < 4; count++) {
    const refused = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${scene.account.key}`,
        "content-type": "application/json",
        connection: "close",
      },
      body: JSON.stringify({ model: "nothing", messages: [{ role: "user", content: "Hello" }] }),
    });
    assert.equal(refused.status, 404);
    await refused.text();
  }
  for (;;) {
    const next = await snapshots.next();
    assert.ok(!next.done, "the stream has ended");
    const { requests, refusals } = next.value;
    if (requests < 4) continue;
    assert.deepEqual(refusals, [{ cause: "unknown_model", requests: 4 }]);
    break;
  }
  const stopped = gateway.stop("SIGTERM");
  let last: LiveAnswer | undefined;
  // To its proper end: a connection that is cut would throw.
  for await (const snapshot of snapshots) last = snapshot;
  assert.equal(last?.in_flight, 0);
  assert.equal(await stopped, 0);
});
