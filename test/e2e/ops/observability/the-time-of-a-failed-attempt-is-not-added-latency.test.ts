/**
 * docs/metrics.md: the phases of `tollgate_added_latency_seconds` are time that the gateway itself adds. A request that
 * fails over is converted once for each upstream, and the time at the first one is not the gateway's.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { systemClock } from "../../../../src/values/time.ts";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";

const SPENT_MS = 20_000;

test("the conversion for the second upstream does not include the time at the first", async (t) => {
  let aheadMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  const slow = createServer((_req, res) => {
    aheadMs += SPENT_MS;
    res.writeHead(500).end();
  });
  slow.listen(0, "127.0.0.1");
  await once(slow, "listening");
  t.after(() => slow.close());
  const base_url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const here = await startGatewayHere({
    clock,
    config: (places) =>
      testConfig(places, {
        upstreams: { slow: { protocol: "chat", base_url, api_key: "a-key-of-the-test" } },
        models: {
          "chat-1": {
            routes: [
              { upstream: "slow", priority: 1 },
              { upstream: "up-chat", priority: 2 },
            ],
          },
        },
      }),
  });
  t.after(() => here.close());
  const { key } = await here.account();
  const reply = await ask(here, "chat", key);
  await reply.text();
  const line = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.deepEqual([reply.status, line.attempts], [200, 2]);
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  const shown = (figure: string) =>
    Number(new RegExp(`^tollgate_added_latency_seconds_${figure}\\{phase="convert"\\} (\\S+)$`, "m").exec(page)?.[1]);
  assert.equal(shown("count"), 2);
  assert.ok(shown("sum") < SPENT_MS / 1_000, `${shown("sum")} s`);
});
