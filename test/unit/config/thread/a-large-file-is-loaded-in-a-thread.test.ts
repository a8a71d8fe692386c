/** A changed file is loaded in a thread if it is large, and everything that the watch promises is true meanwhile. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import test, { type TestContext } from "node:test";
import workerThreads, { Worker } from "node:worker_threads";
import { loadConfig, loadCopy } from "../../../../src/config/config.ts";
import { awaited, bad, better, good, large, watched } from "../watched.ts";

/** A watch on a large configuration. */
async function watchedLarge(t: TestContext, more: Parameters<typeof watched>[1] = {}) {
  const started = t.mock.method(Worker.prototype, "unref");
  const scene = await watched(t, { text: large(good), ...more });
  return {
    ...scene,
    threads: () => started.mock.calls.map((call) => call.this as Worker),
    heartbeats: () => scene.settings.map(({ heartbeatMs }) => heartbeatMs),
    /** Resolves when what has begun is reported. */
    reported: () => awaited(once(scene.clock, "armed")),
    looked: (times: number) => awaited(scene.look(times)),
  };
}

test("a large file is loaded in one thread, which then ends, and a small one in the process", async (t) => {
  const { file, threads, heartbeats, looked } = await watchedLarge(t);
  writeFileSync(file, large(better));
  await looked(2);
  assert.deepEqual(heartbeats(), [7_000]);
  const [thread] = threads();
  assert.ok(thread);
  if (thread.threadId !== -1) await awaited(once(thread, "exit"));
  writeFileSync(file, good);
  await looked(2);
  assert.deepEqual(heartbeats(), [7_000, 10_000]);
  assert.equal(threads().length, 1);
});

test("a copy carries the settings that the thread has made, and another build makes its own", async (t) => {
  const { file, settings, copies, looked } = await watchedLarge(t);
  writeFileSync(file, large(better));
  await looked(2);
  const [copy] = copies;
  assert.ok(copy?.made);
  const loadedFrom = (one: typeof copy) => {
    const loaded = loadCopy("tollgate.yaml", one);
    assert.ok("settings" in loaded);
    return loaded.settings;
  };
  // Another text shows which of the two is read.
  assert.deepEqual(loadedFrom({ ...copy, text: good }), settings[0]);
  const other = { ...copy, made: { ...copy.made, build: "another" } };
  assert.equal(loadedFrom({ ...other, text: good }).heartbeatMs, 10_000);
  assert.deepEqual(loadedFrom(other), settings[0]);
});

test("a large file with mistakes is refused with the problems that a start reports", async (t) => {
  const { file, problems, threads, looked } = await watchedLarge(t);
  for (const [at, text] of [large(bad), large(`${good}a: [1\n`), large(good.replace("chat", "chta"))].entries()) {
    writeFileSync(file, text);
    await looked(2);
    const atStart = loadConfig({ file, env: {} });
    assert.ok("problems" in atStart && atStart.problems.length > 0);
    assert.deepEqual(problems[at], atStart.problems);
    assert.equal(threads().length, at + 1);
  }
});

test("a file that changes while the thread loads is loaded again", async (t) => {
  const { file, heartbeats, threads, watch, reported, looked } = await watchedLarge(t);
  writeFileSync(file, large(better));
  watch.reload();
  writeFileSync(file, large(better.replace("7s", "8s")));
  await reported();
  assert.deepEqual(heartbeats(), [7_000]);
  await looked(2);
  assert.deepEqual(heartbeats(), [7_000, 8_000]);
  await looked(2);
  assert.equal(threads().length, 2);
});

test("however often a reload is asked for while the thread loads, the file is read once more afterwards", async (t) => {
  const { file, heartbeats, threads, watch, reported, looked } = await watchedLarge(t);
  watch.reload();
  writeFileSync(file, large(better));
  for (let i = 0; i < 5; i++) watch.reload();
  assert.equal(threads().length, 1);
  await reported();
  assert.deepEqual(heartbeats(), [10_000]);
  await reported();
  assert.deepEqual(heartbeats(), [10_000, 7_000]);
  await looked(2);
  assert.equal(threads().length, 2);
});

test("a small file that follows a large one at once is loaded after it", async (t) => {
  const { file, heartbeats, watch, reported } = await watchedLarge(t);
  watch.reload();
  writeFileSync(file, better);
  watch.reload();
  await reported();
  assert.deepEqual(heartbeats(), [10_000, 7_000]);
});

test("when the watch is closed, the thread is ended and nothing is reported", async (t) => {
  const { settings, problems, threads, watch } = await watchedLarge(t);
  watch.reload();
  const [thread] = threads();
  assert.ok(thread);
  const exited = once(thread, "exit");
  watch.close();
  await awaited(exited);
  assert.deepEqual([settings.length, problems.length], [0, 0]);
});

test("if the system has no thread left, the process loads the file", async (t) => {
  const { file, heartbeats, threads, watch, reported } = await watchedLarge(t);
  writeFileSync(file, large(better));
  const RealWorker = workerThreads.Worker;
  // What Node does when pthread_create fails with EAGAIN, as under a limit of processes.
  workerThreads.Worker = class {
    constructor() {
      throw Object.assign(new Error("Worker initialization failure: EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" });
    }
  } as unknown as typeof RealWorker;
  syncBuiltinESMExports();
  try {
    watch.reload();
  } finally {
    workerThreads.Worker = RealWorker;
    syncBuiltinESMExports();
  }
  await reported();
  assert.deepEqual([heartbeats(), threads().length], [[7_000], 0]);
});

const FAILURES: Readonly<Record<string, (thread: Worker) => unknown>> = {
  "ends early": (thread) => thread.terminate(),
  fails: (thread) => thread.emit("error", new Error("a defect")),
};

for (const [what, fail] of Object.entries(FAILURES)) {
  test(`if the thread ${what}, the process loads the file`, async (t) => {
    const { file, heartbeats, problems, threads, watch, reported } = await watchedLarge(t);
    writeFileSync(file, large(better));
    watch.reload();
    fail(threads()[0] as Worker);
    await reported();
    assert.deepEqual([heartbeats(), problems.length], [[7_000], 0]);
  });
}

test("an environment that cannot be read is reported as it is in the process", async (t) => {
  const env = {
    get BROKEN(): string {
      throw new Error("a defect");
    },
  };
  const { file, problems, watch, reported } = await watchedLarge(t, { env });
  writeFileSync(file, large(`${good}heartbeat: "\${BROKEN}"\n`));
  watch.reload();
  await reported();
  assert.equal(problems[0]?.[0]?.message, "the configuration cannot be loaded: a defect");
});
