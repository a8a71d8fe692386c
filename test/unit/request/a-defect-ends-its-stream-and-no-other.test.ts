/**
 * A defect in any call of a stream ends only this stream: it is charged as cut, and nothing is thrown at the process.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { relayStream } from "../../../src/request/relay.ts";
import { turns } from "../settle/rig.ts";

type StreamParts = Parameters<typeof relayStream>[0];

/**
 * A stream that has begun.
 * @param defects the calls that fail.
 */
function begun(defects: Partial<Record<"leaving" | "failure" | "resume" | "end" | "write", () => never>>) {
  const calls: Record<"gone" | "drain", () => void> = { gone: () => {}, drain: () => {} };
  const settled: string[] = [];
  const cut = new AbortController();
  /** Set when its counts cannot be read any more. */
  const broken = { counts: false };
  let isStopped = false;
  const noCounts = { usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas: 0 } };
  const frame = { bytes: new Uint8Array(1), semantic: true };
  const parts = {
    headers: {},
    first: [frame],
    clock: { monotonicMs: () => 0, wallMs: () => 0, after: () => () => {} },
    askedAtMs: 0,
    heartbeatMs: 1_000,
    onFirstToken() {},
    cut: cut.signal,
    failure: defects.failure ?? (() => new Uint8Array()),
    reply: {
      gone: false,
      open() {},
      write: defects.write ?? (() => false),
      end: defects.end ?? (() => {}),
      destroy() {},
      onDrain(then: () => void) {
        calls.drain = then;
      },
      onGone(then: () => void) {
        calls.gone = then;
      },
    },
    converter: { fault: undefined, draining: false, counts: () => (broken.counts ? defect() : noCounts) },
    body: {
      consume() {},
      abort() {
        isStopped = true;
      },
      pause() {},
      resume: defects.resume ?? (() => {}),
      discardRest() {},
    },
    bill: {
      holdExtension: undefined,
      thinks: false,
      checkpoint() {},
      disconnectPlan: defects.leaving ?? (() => undefined),
      settle: async ({ reason }: { reason: string }) => void settled.push(reason),
    },
  };
  const ended = relayStream(parts as unknown as StreamParts).then(
    ({ reason }) => reason,
    (error: Error) => error.message,
  );
  return { calls, cut, settled, ended, broken, isStopped: () => isStopped };
}

const defect = (): never => {
  throw new Error("a defect");
};

test("a defect in handing over the first frames ends the stream and stops its upstream", async () => {
  const { settled, ended, isStopped } = begun({ write: defect });
  assert.equal(await ended, "a defect");
  assert.deepEqual([settled, isStopped()], [["internal"], true]);
});

test("a defect when the client disconnects ends the stream and stops its upstream", async () => {
  const { calls, settled, ended, isStopped } = begun({ leaving: defect });
  calls.gone();
  assert.equal(await ended, "a defect");
  assert.deepEqual([settled, isStopped()], [["internal"], true], "the upstream is cancelled");
});

test("a defect when a drain cuts the stream ends it, and is not thrown at the process", async () => {
  const thrown: Error[] = [];
  const note = (error: Error): void => void thrown.push(error);
  process.once("uncaughtException", note);
  const { cut, settled, ended } = begun({ failure: defect });
  cut.abort();
  assert.equal(await ended, "a defect");
  await turns(2);
  process.off("uncaughtException", note);
  assert.deepEqual([settled, thrown], [["internal"], []]);
});

test("a defect when the client reads again ends the stream", async () => {
  const { calls, settled, ended } = begun({ resume: defect });
  calls.drain();
  assert.equal(await ended, "a defect");
  assert.deepEqual(settled, ["internal"]);
});

test("a defect in reading the counts, even repeatedly, ends the stream with what was known before", async () => {
  const { calls, settled, ended, broken } = begun({});
  broken.counts = true;
  calls.gone();
  assert.equal(await ended, "a defect");
  assert.deepEqual(settled, ["internal"]);
});

test("a defect in handing over the last bytes leaves the charge as it is", async () => {
  const { cut, settled, ended } = begun({ end: defect });
  cut.abort();
  assert.equal(await ended, "a defect");
  assert.deepEqual(settled, ["draining"]);
});
