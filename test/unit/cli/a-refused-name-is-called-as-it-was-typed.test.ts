/** The API calls the account, and what a call creates in it, both `name`: a refusal names the option that has the fault. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGateway } from "./captured-run.ts";

test("a refusal of a name begins with the option or argument that it was typed as", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  const refusals: [argv: string[], fault: string][] = [
    [["key", "create", "--account", "a b", "--group", "big"], "--account"],
    [["key", "create", "--account", "a b", "--group", "big", "--name", "laptop"], "--account"],
    [["key", "create", "--account", "alice", "--group", "big", "--name", " laptop"], "--name"],
    [["key", "list", "--account", "a b"], "--account"],
    [["topup", "--account", "a b", "--usd", "1", "--id", "pay_1"], "--account"],
    [["ledger", "show", "--account", "a b"], "--account"],
    [["account", "rename", "a b", "bob"], "<name>"],
    [["account", "rename", "alice", "a b"], "<new-name>"],
    [["account", "create", "a b"], "<name>"],
  ];
  for (const [argv, fault] of refusals) {
    const { status, err } = await tollgate(...argv);
    assert.deepEqual([status, err.slice(0, `Refused: ${fault} must be `.length)], [1, `Refused: ${fault} must be `]);
  }
});

test("a refusal of a request's id begins with --request", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  const { err } = await tollgate("ledger", "show", "--account", "alice", "--request", "4711");
  assert.match(err, /^Refused: --request must be the id of a request/);
});
