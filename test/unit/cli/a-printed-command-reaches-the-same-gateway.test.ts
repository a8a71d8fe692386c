/** Commands print other commands to run next. They have the options with which the first one found its gateway. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { ADMIN_TOKEN } from "../console/running-console.ts";
import { codeHashOf } from "../store/asks.ts";
import { CODE } from "../store/hanging-replica.ts";
import { type Ran, run, startGateway } from "./captured-run.ts";

const BATCH = "batch_1000000000000000";

/** A gateway that is found by options only, and a function that runs a command with them. */
async function startElsewhere(t: TestContext) {
  const { console } = await startGateway(t);
  const parent = mkdtempSync(join(tmpdir(), "tollgate-"));
  t.after(() => rmSync(parent, { recursive: true }));
  // A shell needs quotes for it.
  const folder = join(parent, "its owner's data");
  mkdirSync(folder);
  writeFileSync(join(folder, "admin-token"), ADMIN_TOKEN);
  const options = ["--admin", console.url, "--data", folder];
  return { options, store: console.store, tollgate: (...argv: string[]) => run([...argv, ...options]) };
}

/** The words of the last printed command, as a shell splits them. */
function printed(text: string): string[] {
  const line = /^.*tollgate (-.*)$/m.exec(text)?.[1];
  assert.ok(line, text);
  const { stdout, status } = spawnSync("sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" });
  assert.equal(status, 0, line);
  return stdout.trimEnd().split("\n");
}

test("a printed command can be run as it is", async (t) => {
  const { options, store, tollgate } = await startElsewhere(t);
  for (const name of ["alice", "bob"]) assert.equal((await tollgate("account", "create", name)).status, 0);
  for (const id of ["one", "two"]) await tollgate("topup", "--account", "alice", "--usd", "1", "--id", id);
  const created = JSON.parse((await tollgate("key", "create", "--account", "alice", "--group", "big", "--json")).out);
  for (const batch of [BATCH, "batch_2000000000000000"]) {
    const codes = [1, 2].map((n) => ({ id: `code_${batch}_${n}`, hash: codeHashOf(`${batch} ${n}`) }));
    await store.createCodes({ ...CODE, batch }, codes, { label: "l", count: 2 });
  }
  const next: [string, (ran: Ran) => string][] = [
    ["account list --limit 1", ({ err }) => err],
    ["code list --limit 1", ({ err }) => err],
    [`code list --batch ${BATCH} --limit 1`, ({ err }) => err],
    ["code batch list --limit 1", ({ err }) => err],
    ["ledger show --account alice --limit 1", ({ err }) => err],
    ["ledger show --account alice --limit 1 --attempts", ({ err }) => err],
    ["ledger show --account alice --last 1", ({ err }) => err],
    ["ledger show --account alice --since 1h --last 1 --attempts", ({ err }) => err],
    ["audit --limit 1", ({ err }) => err],
    ["audit --since 1h --limit 1", ({ err }) => err],
    [`key suspend ${created.id}`, ({ out }) => out],
    ["account suspend alice", ({ out }) => out],
  ];
  for (const [command, where] of next) {
    const ran = await tollgate(...command.split(" "));
    assert.equal(ran.status, 0, `${command}: ${ran.err}`);
    const again = printed(where(ran));
    assert.deepEqual(again.slice(0, 4), options, command);
    const typed = /--.*$/.exec(command)?.[0] ?? "";
    assert.ok(again.join(" ").includes(typed), `${again.join(" ")} has the options of ${command}`);
    const second = await run(again);
    assert.equal(second.status, 0, `${again.join(" ")}: ${second.err}`);
  }
});

test("a command in a refusal of the gateway has the typed options, too", async (t) => {
  const { options, tollgate } = await startElsewhere(t);
  const refused = await tollgate("account", "show", "nobody");
  assert.equal(refused.status, 1);
  assert.deepEqual(printed(refused.err).slice(0, 4), options);
});

test("the next page of a search has the same filter and size", async (t) => {
  const { tollgate } = await startElsewhere(t);
  for (const name of ["alice", "bob"]) {
    await tollgate("account", "create", name);
    await tollgate("account", "label", name, "team=red and blue");
  }
  const { err } = await tollgate("account", "list", "--search", "red and", "--limit", "1");
  assert.match(err, / account list --search 'red and' --limit 1 --cursor /);
  const second = await run(printed(err));
  assert.equal(second.status, 0, second.err);
  assert.match(second.out, /^bob /m);
});
