/** An upstream that breaks the connection before its answer has a head: the span shows how long the attempt has taken. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { systemClock } from "../../../../src/values/time.ts";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { attributesOf, startCollector } from "../../../rig/otel-collector.ts";
import { ask } from "../../protocol/whole/asking.ts";

const SPENT_MS = 20_000n;
const NS_PER_MS = 1_000_000n;

test("the span of an attempt without an answer lasts until the attempt has failed", async (t) => {
  let aheadMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  const broken = createServer((req) => {
    aheadMs += Number(SPENT_MS);
    req.socket.destroy();
  });
  broken.listen(0, "127.0.0.1");
  await once(broken, "listening");
  t.after(() => broken.close());
  const base_url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
  const collector = await startCollector();
  t.after(() => collector.stop());
  const here = await startGatewayHere({
    clock,
    config: (places) =>
      `${testConfig(places, {
        upstreams: { broken: { protocol: "chat", base_url, api_key: "a-key-of-the-test" } },
        models: {
          "chat-1": {
            routes: [
              { upstream: "broken", priority: 1 },
              { upstream: "up-chat", priority: 2 },
            ],
          },
        },
      })}traces: {endpoint: "${collector.endpoint}/v1/traces", sample: 1}\n`,
  });
  const { key } = await here.account();
  const reply = await ask(here, "chat", key);
  await reply.text();
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  await here.close();
  const failed = collector.spans().find((span) => attributesOf(span)["tollgate.upstream"] === "broken");
  assert.ok(failed);
  const lastsMs = (BigInt(failed.endTimeUnixNano) - BigInt(failed.startTimeUnixNano)) / NS_PER_MS;
  assert.ok(lastsMs >= SPENT_MS, `${lastsMs} ms`);
});
