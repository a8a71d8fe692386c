/**
 * A gateway of several processes: the workers charge and call upstreams, and the parent delivers the notices that
 * result.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { testConfig } from "../../../rig/config.ts";
import { spawnGateway } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { ask, chat, openAccount } from "../shared/rig.ts";
import { startReceiver, webhookSecret } from "./receiver.ts";

test("the parent delivers notices about charges and upstreams of its workers", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-notices-"));
  const [redis, simulator, receiver] = [
    await startRedis(),
    await startSimulator(),
    await startReceiver(webhookSecret("one")),
  ];
  const gateway = await spawnGateway(
    testConfig(
      { upstreamUrl: simulator.url, dir, store: redis.url },
      {
        workers: 2,
        upstreams: { "up-chat": { health: { failures: 1 } } },
        notices: { url: receiver.url, secrets: [webhookSecret("one")], balance_below: "1" },
      },
    ),
  );
  try {
    const { key, name } = await openAccount(gateway, { funds: 1_000_000_000n });
    const answer = await ask(gateway, key, chat({ maxTokens: 16 }));
    assert.equal(answer.status, 200);
    await receiver.until(() => receiver.log.length === 1);
    const { type, account, reference } = receiver.log[0] ?? {};
    assert.deepEqual([type, account, reference], ["balance_low", name, answer.headers["x-request-id"]]);
    await simulator.close();
    assert.notEqual((await ask(gateway, key, chat())).status, 200);
    await receiver.until(() => receiver.log.length === 2);
    assert.equal(receiver.log[1]?.type, "upstream_out");
  } finally {
    await gateway.stop();
    await receiver.close();
    await simulator.close().catch(() => undefined);
    await redis.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
