/** The parent is killed, and the workers with it; a gateway with fewer workers settles what all of them left. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { gone, openStreams, workerPids, workersScene } from "./rig.ts";

const STREAMS = 6;
const SETTLED = "what the last process left is settled";

for (const fewer of [2, 1]) {
  test(`a gateway restarted with ${fewer} instead of three workers settles the journals of all three`, async (t) => {
    const scene = await workersScene(t);
    const first = await scene.start(3);
    const pids = [...workerPids(first).values()];
    const streams = await openStreams(scene, first.url, STREAMS);
    const ends = streams.map(({ reader }) => reader.end());
    await first.stop("SIGKILL");
    await gone(pids);
    for (const end of ends) assert.ok((await end).cut);
    const folders = readdirSync(join(scene.dir, "journal")).filter((name) => name.startsWith("worker-"));
    assert.deepEqual(folders.sort(), ["worker-1", "worker-2", "worker-3"]);

    const second = await scene.start(fewer);
    await second.line(SETTLED, 3);
    const reply = await ask(second, "chat", scene.account.key);
    assert.equal(reply.status, 200, await reply.text());
    assert.equal(await second.stop("SIGTERM"), 0, second.output());
    const { ledger, holds, inFlight } = await scene.state();
    assert.deepEqual([holds, inFlight], [[], 0]);
    const usage = ledger.filter(({ kind }) => kind === "usage");
    const orphans = usage.filter(({ memo }) => (JSON.parse(memo) as { ended?: string }).ended === "orphaned");
    assert.deepEqual([usage.length, orphans.length], [STREAMS + 1, STREAMS], "each is charged once");
    for (const { amount } of usage) assert.ok(amount > 0n);
  });
}
