/** The lines of one turn are written together: at the end of the turn, or when the process ends before. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import test from "node:test";
import { promisify } from "node:util";
import { createLog } from "../../../src/telemetry/log.ts";

const LOG = new URL("../../../src/telemetry/log.ts", import.meta.url).href;

/** A program that logs a line and then runs this code. */
const program = (then: string) => [
  "--input-type=module",
  "--eval",
  `const { createLog } = await import(${JSON.stringify(LOG)}); createLog({ level: "info" }).info({}, "said"); ${then}`,
];

test("a line is written while its process continues", async (t) => {
  const child = spawn(process.execPath, program("setInterval(() => {}, 1_000);"), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [chunk] = await once(child.stdout, "data");
  assert.equal(JSON.parse(String(chunk)).msg, "said");
});

test("a line is written if its process ends at once", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, program("process.exit(0);"));
  assert.equal(JSON.parse(stdout).msg, "said");
});

/** The output of a process that opens its log with these settings and then logs at two levels. */
async function printed(level: string, pretty: boolean): Promise<string> {
  const code = `const { openLog } = await import(${JSON.stringify(LOG)});
    const log = await openLog(${JSON.stringify(level)}, ${pretty});
    log.info({}, "an info");
    log.warn({ a: 1 }, "a warning");`;
  return (await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code])).stdout;
}

test("the log of a process is JSON, or readable lines on request, and has the given level", async () => {
  const lines = (await printed("info", false)).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ["an info", "a warning"],
  );
  assert.equal(JSON.parse((await printed("warn", false)).trimEnd()).msg, "a warning");
  assert.match(await printed("warn", true), /^\[[0-9:.]+\] WARN: a warning \{"a":1\}\n$/);
});

test("a log that is not read keeps 8 MiB of lines, plus warnings and errors, and reports the number of lost lines", async (t) => {
  const lines = 20_000;
  const code = `const { createLog, takeDroppedLines } = await import(${JSON.stringify(LOG)});
    const log = createLog({ level: "info" });
    for (let n = 0; n < ${lines}; n++) log.info({ n, text: "x".repeat(1_000) }, "said");
    log.error({ text: "x".repeat(2_000) }, "an error");
    log.warn({ text: "x".repeat(2_000) }, "a warning");
    process.on("exit", () => process.stderr.write([takeDroppedLines(), takeDroppedLines()].join()));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  const [output, dropped] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const said = output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const kept = said.filter(({ msg }) => msg === "said");
  const bytes = Buffer.byteLength(output);
  assert.ok(bytes > 8_000_000 && bytes < 8.5 * 1024 * 1024, `${bytes} bytes waited`);
  assert.deepEqual(
    kept.map(({ n }) => n),
    [...kept.keys()],
    "the oldest lines are kept, in order",
  );
  const others = said.slice(kept.length).map(({ level, msg, event, lines }) => [level, event ?? msg, lines]);
  assert.deepEqual(others, [
    ["error", "an error", undefined],
    ["warn", "a warning", undefined],
    ["warn", "log_lines_dropped", lines - kept.length],
  ]);
  assert.equal(dropped, `${lines - kept.length},0`);
});

test("each line has the time at which it was logged", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_000 });
  const times: string[] = [];
  const log = createLog({ level: "info", destination: { write: (line) => times.push(JSON.parse(line).time) } });
  log.info({ a: 1 }, "one");
  log.info({ a: 1 }, "another of the same millisecond");
  t.mock.timers.tick(1);
  log.info({ a: 1 }, "one of the next");
  log.info({ a: { b: 1 } }, "one that pino writes");
  const [first, second] = [1_800_000_000_000, 1_800_000_000_001].map((ms) => new Date(ms).toISOString());
  assert.deepEqual(times, [first, first, second, second]);
  const passed = [9, 10, 99, 100, 999, 1_000].map((ms) => 1_800_000_000_000 + ms);
  times.length = 0;
  for (const ms of passed) {
    t.mock.timers.setTime(ms);
    log.info({ a: 1 }, "one");
  }
  assert.deepEqual(
    times,
    passed.map((ms) => new Date(ms).toISOString()),
    "to the millisecond, in every part of a second",
  );
});
