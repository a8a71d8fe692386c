/** A collector that wants a token in a header gets it; without it, it would refuse every span. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import { Secret } from "../../../src/values/secret.ts";

test("the configured headers go with each export", async (t) => {
  const received: IncomingHttpHeaders[] = [];
  const collector = createServer((request, response) => {
    received.push(request.headers);
    request.resume();
    request.on("end", () => response.setHeader("content-type", "application/x-protobuf").end());
  });
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  t.after(() => {
    collector.closeAllConnections();
    collector.close();
  });
  const settings = {
    endpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`,
    headers: new Map([
      ["authorization", new Secret("Bearer of-the-collector")],
      ["x-tenant", new Secret("blue")],
    ]),
    serviceName: "test",
    sample: 1,
    propagate: new Set<string>(),
    exportEveryMs: 60_000,
  };
  const tracing = createTracing(settings, () => 0, "1");
  tracing.emit("1".repeat(32), [
    { name: "a", kind: "server", spanId: "2".repeat(16), parentId: undefined, startMs: 1, endMs: 2, attributes: {} },
  ]);
  await tracing.close();
  assert.deepEqual(
    received.map(({ authorization, "x-tenant": tenant }) => [authorization, tenant]),
    [["Bearer of-the-collector", "blue"]],
  );
});
