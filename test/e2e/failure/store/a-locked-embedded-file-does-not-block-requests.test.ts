/**
 * An embedded store whose file is locked by another process: an account that is short of funds is answered, and charged
 * once.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";

/** How long this test waits for the lock of the file: longer than other users of the file hold it. */
const BUSY_MS = 5_000;

test("a request that waits for its account's last charge gets store_unavailable after a while", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { store } = here.settings;
  assert.ok(store.kind === "embedded");
  const { key, tag } = await here.account({ usd: "0.0004" });
  const body = JSON.stringify({ model: "chat-1", max_tokens: 20, messages: [{ role: "user", content: "hello" }] });
  const ask = async (): Promise<string> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(`${here.url}/v1/chat/completions`, { method: "POST", headers, body });
    const { error } = (await response.json()) as { error?: { cause: string } };
    return `${response.status}${error ? ` ${error.cause}` : ""}`;
  };
  const file = new DatabaseSync(join(store.dir, "tollgate.db"), { timeout: BUSY_MS });
  file.exec("BEGIN IMMEDIATE");
  assert.equal(await ask(), "200");
  assert.equal(
    await ask(),
    "503 store_unavailable",
    "the charge of the first request is needed to know whether the funds suffice",
  );
  file.exec("ROLLBACK");
  file.close();
  let answer = await ask();
  // The store retries after a pause.
  while (answer.startsWith("503")) answer = await ask();
  assert.equal(answer, "403 insufficient_balance");
  const account = await here.store.getAccount(tag);
  assert.deepEqual([account?.held, account?.balance], [0n, 179_000n]);
});
