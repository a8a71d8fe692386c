/** docs/log.md: reports of the console are logged as `info`, or as `warn` if they say so. */
import assert from "node:assert/strict";
import test from "node:test";
import { notificationsTo } from "../../../src/console/notifications.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";

test("a report has its own level, or info", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", destination: { write: (line) => void lines.push(line) } });
  const report = notificationsTo(log, createMetrics()).log;
  report({ event: "oidc_failed", kind: "refused" });
  report({ event: "oidc_failed", kind: "unreachable" }, "warn");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ level, kind }) => [level, kind]),
    [
      ["info", "refused"],
      ["warn", "unreachable"],
    ],
  );
});
