/**
 * A gateway that ends aborts the notice that it is sending. Its receiver has not failed, so neither the metrics nor the
 * log say so, and the notice waits for the next gateway.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startRig } from "./rig.ts";

test("a notice in flight while its gateway stops is not counted as a failure, and stays", async (t) => {
  let stopped: Promise<void> | undefined;
  const { clock, notices, store, tag, addNotice, metrics, log } = await startRig(t, {
    fetch: (_, { signal } = {}) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
        stopped = notices.stop();
      }),
  });
  await addNotice("a");
  while (stopped === undefined) await clock.advance(100);
  await stopped;
  assert.deepEqual(
    (await store.readNotices(tag, 10)).notices.map(({ ref }) => ref),
    ["a"],
  );
  assert.doesNotMatch((await metrics.page()).body, /^tollgate_notice_failures_total\{.*\} [1-9]/m);
  assert.deepEqual(
    log.filter(({ event }) => event === "notice_failed"),
    [],
  );
});
