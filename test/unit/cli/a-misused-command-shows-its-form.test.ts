/** Accounts and keys are arguments of some commands and options of others: the message shows which. */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

test("an error of usage shows the command with its arguments and the options that it needs", async () => {
  for (const [command, form] of [
    ["key list alice", "key list --account <name> [options]"],
    ["topup alice", "topup --account <name> --usd <amount> --id <payment-id> [options]"],
    ["usage alice", "usage [--account <name>] [options]"],
    ["account show --account alice", "account show <name> [options]"],
    ["account label alice", "account label <name> <labels...> [options]"],
    ["key rename", "key rename <key-id> [name] [options]"],
    ["explain key_1", "explain --key-id <id> --model <model> --protocol <protocol> [options]"],
  ] as const) {
    const ran = await run(command.split(" "));
    assert.deepEqual([ran.status, ran.out], [2, ""], command);
    assert.ok(ran.err.includes(`\nUsage: tollgate ${form}\n`), ran.err);
  }
});
