/** Of two values of an option only the last one would count. */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

const unasked = () => Promise.reject(new Error("asked a gateway"));
const WORLD = { fetch: unasked, env: { TOLLGATE_ADMIN_TOKEN: "t" } };

test("an option with a value that is typed twice is misuse, wherever it is typed", async () => {
  for (const [command, option] of [
    ["key list --account a --account b", "--account <name>"],
    ["--data a account list --data b", "--data <dir>"],
    ["account list --admin 127.0.0.1:1 --admin 127.0.0.1:1", "--admin <address>"],
    ["serve --config a --config b", "--config <file>"],
  ] as const) {
    const ran = await run(command.split(" "), WORLD);
    assert.deepEqual([ran.status, ran.out], [2, ""], command);
    assert.ok(ran.err.includes(`option '${option}' is given more than once`), ran.err);
  }
});

test("options that take several values, and those without a value, may be repeated", async () => {
  const command = "reconcile --from no-such-file --upstream east --model a=b --model c=d --json --json";
  const ran = await run(command.split(" "), WORLD);
  assert.match(ran.err, /The file no-such-file does not exist/);
  const version = await run(["--version", "--json", "--data", "x"], WORLD);
  assert.equal(version.status, 0, version.err);
});
