import assert from "node:assert/strict";
import test from "node:test";
import { createLog } from "../../../src/telemetry/log.ts";

const NAMES = ["authorization", "apiKey", "key", "token", "password"];

function linesOf(write: (log: ReturnType<typeof createLog>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLog({ level: "debug", destination: { write: (line) => void lines.push(line) } }));
  return lines.map((line) => JSON.parse(line));
}

test("values under a secret's name in an object of a line are replaced by stars, at every log level", () => {
  const lines = linesOf((log) => {
    for (const level of ["info", "warn", "error", "debug"] as const) {
      for (const name of NAMES)
        log[level]({ what: { [name]: "sk-secret", other: "shown" }, many: ["a", "b"] }, "a line");
    }
  });
  assert.equal(lines.length, 4 * NAMES.length);
  assert.doesNotMatch(JSON.stringify(lines), /sk-secret/);
  for (const [i, line] of lines.entries()) {
    assert.deepEqual(line.what, { [NAMES[i % NAMES.length] as string]: "***", other: "shown" });
  }
});

test("a flat line is written unchanged, with its time and the name of its level", () => {
  const [line] = linesOf((log) => log.warn({ status: 200, reasons: ["a: b"], none: undefined }, "request"));
  const { time, ...rest } = line as { time: string };
  assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.deepEqual(rest, { level: "warn", status: 200, reasons: ["a: b"], msg: "request" });
});

test("a flat line has the same form as a nested one", () => {
  const facts = {
    text: 'a "b"\n\u2028\ud800',
    none: undefined,
    nothing: null,
    number: 1.5,
    infinite: Infinity,
    yes: true,
  };
  const lines: string[] = [];
  const log = createLog({ level: "info", destination: { write: (line) => void lines.push(line) } });
  log.info(facts, 'it says "so"');
  log.info({ ...facts, amount: 5n }, 'it says "so"');
  log.info({}, "nothing");
  log.debug(facts, "below the level");
  const [flat, other, empty] = lines.map((line) => JSON.parse(line));
  assert.equal(lines.length, 3);
  assert.deepEqual(Object.keys(flat), ["level", "time", "text", "nothing", "number", "infinite", "yes", "msg"]);
  assert.deepEqual({ ...flat, amount: 5, time: "" }, { ...other, time: "" });
  assert.deepEqual(Object.keys(empty), ["level", "time", "msg"]);
  assert.ok(lines.every((line) => line.endsWith("}\n") && line.indexOf("\n") === line.length - 1));
});

test("an error and a list of amounts can be logged", () => {
  const [error, list] = linesOf((log) => {
    log.error(new Error("it broke"), "a defect");
    log.info({ amounts: [5n] }, "a list");
  });
  assert.match(JSON.stringify(error), /it broke/);
  assert.deepEqual([error?.msg, list?.msg], ["a defect", "a list"]);
});
