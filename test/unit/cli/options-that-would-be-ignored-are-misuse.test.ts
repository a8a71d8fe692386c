/** Options that a command would ignore are misuse: the message names them, and no gateway is asked. */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

const unasked = () => Promise.reject(new Error("asked a gateway"));
const unused = () => Promise.reject(new Error("not expected to run"));
const WORLD = { fetch: unasked, env: { TOLLGATE_ADMIN_TOKEN: "t" }, schema: unused, simulate: unused };

async function refused(command: string, words: string): Promise<void> {
  const ran = await run(command.split(" "), WORLD);
  assert.deepEqual([ran.status, ran.out], [2, ""], command);
  assert.ok(ran.err.includes(words), `${command}: ${ran.err}`);
}

test("--json and another --format are misuse", async () => {
  for (const [command, format] of [
    ["account list --json --format csv", "csv"],
    ["--json account list --format table", "table"],
    ["ledger show --account a --format csv --json", "csv"],
    ["ledger show --account a --follow --format csv --json", "csv"],
    ["usage --format csv --json", "csv"],
    ["code create --card day --count 1 --format html --json", "html"],
  ] as const) {
    await refused(command, `--json and --format ${format} are two forms of the same output; use one of them`);
  }
  await refused("serve --json --pretty", "--json and --pretty are two forms of the log; use one of them");
});

test("--json is accepted with the default format, with --format json, and with the format of a file", async () => {
  for (const command of [
    "account list --json",
    "account list --json --format json",
    "code create --card day --count 1 --format csv --json --output /dev/null/codes.csv",
  ]) {
    const ran = await run(command.split(" "), WORLD);
    assert.equal(ran.status, 1, `${command}: ${ran.err}`);
  }
});

test("--every without --follow is misuse", async () => {
  for (const command of ["audit --every 5s", "ledger show --account a --every 5s", "audit --last 3 --every 1s"]) {
    await refused(command, "--every says how often --follow checks for new lines; use it with --follow");
  }
});

test("--before without an order in which it counts is misuse", async () => {
  for (const command of ["ledger show --account a --before 7", "ledger show --account a --before 7 --format csv"]) {
    await refused(command, "--before is for newest first; use it with --last or --since.");
  }
});

test("--cap without a cap is misuse", async () => {
  await refused("key limit key_1 --cap", "--cap changes caps; give at least one of them, or --clear.");
});

test("--admin and --data with --version are misuse without --json, because only the JSON names the running gateway", async () => {
  for (const option of ["admin", "data"]) {
    await refused(`--version --${option} x`, `--version uses --${option} only with --json`);
    await refused(`--${option} x -V`, `--version uses --${option} only with --json`);
    await refused(`--version --${option}`, "argument missing");
  }
});

test("a command refuses global options that it does not use, and its help does not show them", async () => {
  for (const [command, options] of [
    ["init", ["data"]],
    ["health", ["data"]],
    ["store backup", ["admin"]],
    ["schema", ["admin", "data"]],
    ["simulator", ["admin", "data", "json"]],
    ["completion bash", ["admin", "data", "json"]],
    ["man", ["admin", "data", "json"]],
  ] as const) {
    const name = command.replace(" bash", "");
    const { out: help } = await run([...name.split(" "), "--help"], WORLD);
    for (const option of options) {
      const value = option === "json" ? "" : " x";
      const typed = name === "store backup" ? `${command} copy.db` : command;
      await refused(`${typed} --${option}${value}`, `${name} does not use --${option}`);
      await refused(`--${option}${value} ${typed}`, `${name} does not use --${option}`);
      assert.doesNotMatch(help, new RegExp(`^ +--${option}`, "m"));
    }
  }
});
