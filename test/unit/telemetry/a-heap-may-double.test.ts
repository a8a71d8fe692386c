/** A process that serves goes through its heap when it has doubled, whatever V8 would make of the way in which it grows. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const GROWTH = new URL("../../../src/telemetry/heap.ts", import.meta.url);

/** Some 60 MB that stay, and a full collection. @returns by how much V8 then lets them grow. */
function factorOf(before: string): number {
  const script = `${before}
    globalThis.kept = Array.from({ length: 800_000 }, (_, i) => ({ i, text: "x" + i }));
    gc();
    gc();`;
  const flags = ["--expose-gc", "--trace-gc-nvp", "--input-type=module"];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, "-e", script], { encoding: "utf8" });
  const last = stdout.split("\n").findLast((line) => line.includes('"gc":"mc"'));
  assert.ok(last, stderr);
  const figure = (name: string) => Number(new RegExp(`"${name}":(\\d+)`).exec(last)?.[1]);
  return (figure("old_gen_allocation_limit") - figure("new_space_capacity")) / figure("end_object_size");
}

test("the heap may grow to twice of what was left", () => {
  const factor = factorOf(`(await import("${GROWTH}")).letHeapGrow();`);
  assert.ok(factor > 1.95 && factor < 2.05, `${factor}`);
});

test("V8 by itself would decide otherwise, so that the figure above is ours", () => {
  const factor = factorOf("");
  assert.ok(factor < 1.9 || factor > 2.1, `${factor}`);
});
