/** Spans that a collector does not take are lost. Without a report, nobody notices a wrong address or token. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import { ask } from "../../e2e/protocol/whole/asking.ts";
import { startGatewayHere, testConfig } from "../../rig/gateway.ts";

const SPAN_TYPE = { "content-type": "application/x-protobuf" };

/** A collector that answers with this status. @returns its port. */
async function collectorWith(t: TestContext, status: number): Promise<number> {
  const collector = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(status, SPAN_TYPE).end());
  });
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  t.after(() => {
    collector.closeAllConnections();
    collector.close();
  });
  return (collector.address() as AddressInfo).port;
}

/** What is reported when one span is sent to this collector. */
async function reportedFor(port: number): Promise<string[]> {
  const reasons: string[] = [];
  const endpoint = `http://127.0.0.1:${port}/v1/traces`;
  const settings = { endpoint, headers: new Map(), serviceName: "test", sample: 1, exportEveryMs: 60_000 };
  const tracing = createTracing(
    settings as never,
    () => 0,
    "1",
    (reason) => reasons.push(reason),
  );
  tracing.emit("1".repeat(32), [
    { name: "a", kind: "server", spanId: "2".repeat(16), parentId: undefined, startMs: 1, endMs: 2, attributes: {} },
  ]);
  await tracing.close();
  return reasons;
}

test("a collector that refuses the spans is reported with its status, one that takes them is not", async (t) => {
  assert.deepEqual(await reportedFor(await collectorWith(t, 401)), ["status 401"]);
  assert.deepEqual(await reportedFor(await collectorWith(t, 200)), []);
});

test("the gateway's log says that the traces are lost", async (t) => {
  const traces = `traces: {endpoint: "http://127.0.0.1:${await collectorWith(t, 401)}/v1/traces", sample: 1}\n`;
  const here = await startGatewayHere({ config: (places) => testConfig(places) + traces });
  t.after(() => here.close());
  const { key } = await here.account();
  await (await ask(here, "chat", key, { stream: true })).text();
  const { level, reason } = await here.logged(({ event }) => event === "traces_lost");
  assert.deepEqual([level, reason], ["warn", "status 401"]);
});
