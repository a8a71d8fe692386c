/** The place of one worker, with processes and a clock that the test plays: when it starts another one, and when it kills. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import test from "node:test";
import { createLog } from "../../src/telemetry/log.ts";
import type { MetricsSnapshot } from "../../src/telemetry/metrics.ts";
import type { ToWorker } from "../../src/worker-messages.ts";
import { WorkerSlot } from "../../src/worker-slot.ts";
import { HandClock } from "../whole/hand-clock.ts";

class PlayedProcess extends EventEmitter {
  readonly pid = 1;
  connected = true;
  readonly told: ToWorker[] = [];
  readonly signals: string[] = [];

  send(message: ToWorker): void {
    this.told.push(message);
  }

  kill(signal: string): void {
    this.signals.push(signal);
    this.end(null, signal);
  }

  serve(): void {
    this.emit("message", { kind: "serving", listen: { kind: "tcp", host: "127.0.0.1", port: 1 } });
  }

  end(code: number | null, signal: string | null = null): void {
    this.connected = false;
    this.emit("exit", code, signal);
  }
}

const figures = (name: string) => ({ metrics: [{ name }], upstreams: [] });

function scene() {
  const clock = new HandClock();
  const started: PlayedProcess[] = [];
  const ended: MetricsSnapshot[] = [];
  const slot = new WorkerSlot({
    worker: 1,
    fork() {
      started.push(new PlayedProcess());
      return started.at(-1) as unknown as ChildProcess;
    },
    startMessage: () => ({ kind: "start", worker: 1, file: "tollgate.yaml", startText: "", text: "", pretty: false }),
    clock,
    log: createLog({ level: "silent" }),
    async onEnded(last) {
      ended.push(last);
    },
  });
  return { clock, slot, started, ended, newest: () => started.at(-1) as PlayedProcess };
}

test("each time later up to a limit, and at once again after a good while", async () => {
  const { clock, slot, started, newest } = scene();
  const first = slot.start();
  newest().serve();
  assert.equal((await first).kind, "tcp");
  assert.deepEqual(slot.reasons(), []);
  for (const waitMs of [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]) {
    const before = started.length;
    newest().end(1);
    assert.deepEqual(slot.reasons(), ["worker 1 is not running"]);
    clock.advance(waitMs - 1);
    assert.equal(started.length, before, `not before ${waitMs} ms`);
    clock.advance(1);
    assert.equal(started.length, before + 1);
  }
  newest().serve();
  clock.advance(30_000);
  newest().end(null, "SIGKILL");
  clock.advance(200);
  newest().serve();
  assert.deepEqual(slot.reasons(), []);
  assert.equal(started.length, 10);
});

test("a first start that fails says why", async () => {
  const { slot, newest } = scene();
  const first = slot.start();
  newest().emit("message", { kind: "failed", reason: "the port is taken" });
  newest().end(1);
  await assert.rejects(first, /the port is taken/);
  await slot.stop("close", 1);
});

test("told to end it is not started again, and killed only when it does not", async () => {
  const { clock, slot, started, ended, newest } = scene();
  void slot.start();
  newest().serve();
  newest().emit("message", { kind: "metrics", figures: figures("last") });
  const stopped = slot.stop("drain", 60_000);
  assert.deepEqual(newest().told.at(-1), { kind: "stop", how: "drain" });
  clock.advance(59_999);
  assert.deepEqual(newest().signals, []);
  clock.advance(1);
  assert.deepEqual(newest().signals, ["SIGKILL"]);
  await stopped;
  clock.advance(60_000);
  assert.equal(started.length, 1);
  assert.deepEqual(ended, [[{ name: "last" }]], "its last figures are kept");
});

test("a worker that is slow to tell its figures is represented by its last ones", async () => {
  const { clock, slot, newest } = scene();
  void slot.start();
  newest().serve();
  const asked = slot.figures();
  newest().emit("message", { kind: "metrics", figures: figures("old") });
  assert.deepEqual(await asked, figures("old"));
  const again = slot.figures();
  clock.advance(1_000);
  assert.deepEqual(await again, figures("old"));
  assert.deepEqual(slot.reasons(), []);
  const stuck = slot.figures();
  clock.advance(1_000);
  await stuck;
  assert.deepEqual(slot.reasons(), ["worker 1 does not answer"]);
  newest().emit("message", { kind: "metrics", figures: figures("new") });
  assert.deepEqual(slot.reasons(), []);
});
