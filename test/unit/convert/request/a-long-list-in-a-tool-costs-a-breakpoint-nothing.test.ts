/**
 * Where a cache breakpoint may be depends on how much text is before it. Counting that ends when it is enough, and copies no list of a
 * tool's schema, which can have 190,000 values: translation is one turn of the event loop (docs/failure-model.md invariant 27).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { settleBreakpoints } from "../../../../src/convert/messages/request/breakpoints.ts";
import { workTimer } from "../../../rig/stopwatch.ts";

type Parts = Parameters<typeof settleBreakpoints>[0];
const RUNS = 20;

test("breakpoints of a request with a long list in a tool are settled faster than the list is written", () => {
  const list = Array.from({ length: 190_000 }, (_, at) => at);
  const tool = { name: "look", input_schema: { enum: list } } as unknown as Parts["tools"][number];
  const hub = { promptCache: {} } as Parameters<typeof settleBreakpoints>[1];
  const route = { capabilities: { promptCacheMinTokens: 1_000 } } as Parameters<typeof settleBreakpoints>[2];
  const timeOf = (work: () => void) => {
    const took = workTimer();
    for (let run = 0; run < RUNS; run++) work();
    return took();
  };
  const settlingMs = timeOf(() => {
    const settled = { ...tool };
    settleBreakpoints({ tools: [settled], system: [], messages: [] }, hub, route);
    assert.deepEqual(settled.cache_control, { type: "ephemeral" });
  });
  const writingMs = timeOf(() => JSON.stringify(tool));
  assert.ok(settlingMs < writingMs, `${settlingMs} ms, and ${writingMs} ms to write it`);
});
