/**
 * ARCHITECTURE.md promises 8 and 13, docs/failure-model.md row D3: `timeouts.total` is the maximum age of a stream,
 * however active it is.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, memoOf, PROTOCOL_LIST, usageLines } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

const TOTAL_MS = 60_000;

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: a stream older than timeouts.total ends as failed, and is charged for what it produced`, async () => {
    const clock = new HandClock();
    const here = await startGatewayHere({
      clock,
      settings: (settings) => ({
        ...settings,
        heartbeatMs: 1_000_000,
        upstreams: new Map(
          [...settings.upstreams].map(([name, upstream]) => [
            name,
            { ...upstream, timeouts: { ...upstream.timeouts, idleMs: 100 * TOTAL_MS, totalMs: TOTAL_MS } },
          ]),
        ),
      }),
    });
    try {
      const account = await here.account();
      here.simulator.program({ text: "some words ".repeat(20), fault: { stallAfterEvents: 6 } });
      const reply = await ask(here, protocol, account.key, { stream: true });
      const reader = reply.body?.getReader();
      let text = "";
      while (!text.includes("some words")) text += Buffer.from((await reader?.read())?.value ?? []).toString();
      clock.advance(TOTAL_MS);
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        text += Buffer.from(piece.value).toString();
      }
      assert.match(text, /upstream_timeout/);
      assert.doesNotMatch(text, /\[DONE\]|message_stop|response\.completed/);
      await assertAtRest(here, account);
      const memo = memoOf((await usageLines(here, account))[0]);
      assert.deepEqual([memo.counted, memo.ended], ["estimate", "upstream_timeout"]);
    } finally {
      await here.close();
    }
  });
}
