/**
 * A store that lost its data causes a notice although nothing may be written to it, and again after each restart of the
 * gateway.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { testConfig } from "../../../rig/config.ts";
import { spawnGateway } from "../../../rig/gateway.ts";
import { openAccount } from "../shared/rig.ts";
import { startReceiver, webhookSecret } from "./receiver.ts";

test("each start of a gateway on an emptied store sends a notice", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-notices-"));
  const receiver = await startReceiver(webhookSecret("one"));
  const notices = { url: receiver.url, secrets: [webhookSecret("one")] };
  const config = testConfig({ upstreamUrl: "http://127.0.0.1:9", dir }, { notices });
  try {
    const first = await spawnGateway(config);
    await openAccount(first, { funds: 1_000_000_000n });
    await first.stop();
    assert.equal(receiver.log.length, 0);
    for (const file of readdirSync(join(dir, "data"))) {
      if (file.startsWith("tollgate.db")) rmSync(join(dir, "data", file));
    }
    for (const told of [1, 2]) {
      const next = await spawnGateway(config);
      await receiver.until(() => receiver.log.length === told);
      assert.match(receiver.log.at(-1)?.body ?? "", /^\{"type":"books_off",.*"finding":"store_older","instance":"/);
      await next.stop();
    }
    assert.equal(new Set(receiver.log.map(({ id }) => id)).size, 2);
  } finally {
    await receiver.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
