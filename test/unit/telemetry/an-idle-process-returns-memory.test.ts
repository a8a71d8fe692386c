/** Memory that the start or a peak has taken is returned once the process is idle, and requests never wait for it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { Session } from "node:inspector/promises";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { IdleHeap, watchHeap } from "../../../src/telemetry/heap.ts";
import { test } from "../../rig/together.ts";

const MB = 1024 * 1024;

/** An idle heap whose figures are set by the test. */
function idleHeap() {
  const looks: (() => void)[] = [];
  const is = { serving: false, cramped: false, needsMb: 140, spentMs: 0, mb: 180, collections: 0, fails: false };
  new IdleHeap({
    clock: {
      after(_ms, task) {
        looks.push(task);
        return () => {};
      },
    },
    isServing: () => is.serving,
    isCramped: () => is.cramped,
    spentMs: () => is.spentMs,
    residentBytes: () => is.mb * MB,
    async collect() {
      is.collections++;
      if (is.fails) throw new Error("no inspector");
      is.mb = Math.min(is.mb, is.needsMb);
    },
  }).start();
  const look = async (times = 1) => {
    for (let i = 0; i < times; i++) {
      looks.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(looks.length, 1, "the next check is scheduled");
    return is.collections;
  };
  return { is, look };
}

test("memory is returned once after the start, after a minute without work", async () => {
  const { is, look } = idleHeap();
  is.spentMs = 400;
  assert.equal(await look(), 0);
  is.spentMs = 410;
  assert.equal(await look(59), 0);
  assert.equal(await look(), 1);
  assert.equal(await look(100), 1, "the process has not grown since");
});

test("memory is returned after a peak, once the process has been idle for a minute", async () => {
  const { is, look } = idleHeap();
  await look(60);
  is.mb = 300;
  assert.equal(await look(59), 1);
  is.spentMs += 30;
  assert.equal(await look(60), 1, "the process has worked in the meantime");
  assert.equal(await look(), 2);
});

test("memory is not returned while a request is in flight, nor for a small amount", async () => {
  const { is, look } = idleHeap();
  is.serving = true;
  assert.equal(await look(100), 0);
  is.serving = false;
  assert.equal(await look(60), 1);
  is.mb = 140 + 31;
  assert.equal(await look(100), 1);
});

test("memory is returned at once while requests are refused for lack of memory, and repeatedly while that helps", async () => {
  const { is, look } = idleHeap();
  is.serving = true;
  is.cramped = true;
  assert.equal(await look(), 1);
  is.mb = 300;
  assert.equal(await look(2), 1);
  assert.equal(await look(), 2);
  assert.equal(await look(3 + 6 + 12), 5, "with growing intervals while all memory is in use");
  assert.equal(await look(23), 5);
  is.needsMb = 100;
  assert.equal(await look(), 6, "even if the process has not grown since the last time");
  is.mb = 300;
  assert.equal(await look(3), 7);
  is.cramped = false;
  assert.equal(await look(100), 7);
});

test("while memory is short and none can be returned, a collection is attempted every half minute", async () => {
  const { is, look } = idleHeap();
  is.serving = true;
  is.cramped = true;
  is.needsMb = is.mb;
  assert.equal(await look(), 1);
  assert.equal(await look(6 + 12 + 24), 4);
  assert.equal(await look(29), 4);
  assert.equal(await look(), 5);
  assert.equal(await look(30), 6);
});

test("of a large process, a collection that frees less than a tenth is not repeated soon", async () => {
  const { is, look } = idleHeap();
  is.serving = true;
  is.cramped = true;
  is.mb = 1_000;
  is.needsMb = 950;
  assert.equal(await look(), 1);
  is.mb = 1_000;
  assert.equal(await look(5), 1);
  assert.equal(await look(), 2);
});

test("if the collection fails, it is attempted again only after more growth", async () => {
  const { is, look } = idleHeap();
  is.fails = true;
  assert.equal(await look(100), 1);
  is.mb += 40;
  assert.equal(await look(100), 2);
});

test("a gateway with one stream is not idle, and a collection leaves no inspector session open", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const post = t.mock.method(Session.prototype, "post", async () => ({}));
  const disconnect = t.mock.method(Session.prototype, "disconnect");
  const upstreams = [{ inFlight: 0 }, { inFlight: 1 }];
  watchHeap({ upstreams: () => upstreams, isShortOfMemory: () => false });
  const look = async (): Promise<void> => {
    t.mock.timers.tick(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  for (let looks = 0; looks < 100; looks++) await look();
  assert.equal(post.mock.callCount(), 0);
  upstreams.pop();
  // A check during which this process itself was busy does not count.
  for (let looks = 0; looks < 1_000 && post.mock.callCount() === 0; looks++) await look();
  assert.deepEqual([post.mock.callCount(), disconnect.mock.callCount()], [1, 1]);
});

/** The sizes that a program reports before and after the collection. */
function sizesOf(program: string): { beforeBytes: number; afterBytes: number } {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8", timeout: 60_000 });
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}

test("a real process becomes smaller on its own", () => {
  const { beforeBytes, afterBytes } = sizesOf("heap-program.ts");
  assert.ok(afterBytes < beforeBytes - 64 * MB, `${beforeBytes} bytes, then ${afterBytes}`);
});

/** Whether this is a Node that can call C functions, with glibc. */
const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
const canTrim = isBuiltin("node:ffi") && header.glibcVersionRuntime !== undefined;

test("memory that malloc keeps between used blocks is returned as well", { skip: !canTrim }, () => {
  const { beforeBytes, afterBytes } = sizesOf("malloc-program.ts");
  assert.ok(afterBytes < beforeBytes - 48 * MB, `${beforeBytes} bytes, then ${afterBytes}`);
});
