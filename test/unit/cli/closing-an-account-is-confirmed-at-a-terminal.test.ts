/**
 * `tollgate account close` is final: at a terminal the user types the account's name once more, and a script is not
 * asked.
 */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { test } from "../../rig/together.ts";
import { run, startGateway } from "./captured-run.ts";

/**
 * Closes alice with a user at a keyboard.
 * @param typed the lines that the user types.
 */
async function closing(
  t: TestContext,
  typed: string,
  { argv = ["account", "close", "alice"], keyboard = true, screen = true, closed = false } = {},
) {
  const { console, env, tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  await tollgate("topup", "--account", "alice", "--usd", "12.5", "--id", "first");
  if (closed) await tollgate("account", "close", "alice");
  let said = "";
  const stdin = Object.assign(Readable.from([typed]), { isTTY: keyboard });
  const stderr = { write: (text: string) => (said += text), isTTY: screen };
  const { status } = await run(argv, { env, stdin, stderr });
  const isClosed = (await console.store.findAccount("alice"))?.status === "closed";
  return { status, said, isClosed };
}

test("typing the name closes the account, and the consequences are shown first", async (t) => {
  const { status, said, isClosed } = await closing(t, " alice \n");
  assert.deepEqual([status, isClosed], [0, true]);
  assert.match(said, /^Closing alice, which has 12\.5\d* USD, is final: .*\nType its name to confirm: $/);
});

test("another name or no name leaves the account open", async (t) => {
  const wrong = await closing(t, "alicia\n");
  assert.deepEqual([wrong.status, wrong.isClosed], [1, false]);
  assert.match(wrong.said, /: The typed name is not alice\. Nothing was done\.\n$/);
  const left = await closing(t, "");
  assert.deepEqual([left.status, left.isClosed], [1, false]);
  assert.match(left.said, /: \nNothing was done\.\n$/);
});

test("there is no question with --yes, in a script, without a terminal to show it, or for a closed account", async (t) => {
  const asked = [
    closing(t, "", { argv: ["account", "close", "alice", "--yes"] }),
    closing(t, "", { keyboard: false }),
    closing(t, "", { screen: false }),
    closing(t, "", { closed: true }),
  ];
  for (const outcome of asked) assert.deepEqual(await outcome, { status: 0, said: "", isClosed: true });
});

test("an unknown account is refused without a question", async (t) => {
  const { status, said } = await closing(t, "", { argv: ["account", "close", "nobody"] });
  assert.equal(status, 1);
  assert.match(said, /^Refused: .*no account named `nobody`/);
});
