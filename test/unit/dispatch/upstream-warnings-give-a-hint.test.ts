/**
 * docs/runbook.md, upstreams: the warnings about an upstream that is unreachable, or that does not have the requested
 * path.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DispatchWarning } from "../../../src/dispatch/ask.ts";
import { watchUpstreams } from "../../../src/dispatch/upstream/watch.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";

const WARNING = { upstream: "east", model: "m", status: undefined, reason: "ECONNREFUSED", asked: "POST http://x/" };

function loggedFor(
  warning: Pick<DispatchWarning, "kind" | "status"> & Partial<DispatchWarning>,
): Record<string, unknown> {
  const lines: string[] = [];
  const log = createLog({ level: "warn", destination: { write: (line) => void lines.push(line) } });
  watchUpstreams({ metrics: createMetrics(), log }).onWarning({ ...WARNING, ...warning });
  assert.equal(lines.length, 1);
  return JSON.parse(lines[0] as string);
}

test("an unreachable upstream and a missing path get different hints", () => {
  for (const [warning, words] of [
    [{ kind: "unreachable", status: undefined }, /runs.*host and port/],
    [{ kind: "unreachable", status: undefined, reason: "EAI_AGAIN" }, /name servers/],
    [{ kind: "tls", status: undefined }, /speaks TLS.*http:\/\/.*certificate/],
    [{ kind: "model_not_found", status: 404 }, /base_url.*\/v1/],
    [{ kind: "unexpected_status", status: 405 }, /base_url.*\/v1/],
  ] as const) {
    const { upstream, kind, look_at: place } = loggedFor(warning);
    assert.deepEqual([upstream, kind], ["east", warning.kind]);
    assert.match(String(place), words);
  }
  assert.equal(loggedFor({ kind: "forbidden", status: 401 }).look_at, undefined);
});
