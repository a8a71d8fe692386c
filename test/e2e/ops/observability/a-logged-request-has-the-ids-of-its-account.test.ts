/** From a request's id to its sender: the log has ids, which an operator looks up, and never a name or a key. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { newKey } from "../../../../src/values/key.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";

test("a request's log line has the ids of account and key, even if it is refused, and no id for a key that does not exist", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const rich = await here.account();
  const poor = await here.account({ usd: "0" });
  const told = async (key: string, path?: string) => {
    const reply = path === undefined ? await ask(here, "chat", key) : await get(here.url + path, key);
    await reply.text();
    const {
      status,
      account_id: account,
      key_id: keyId,
    } = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
    return [status, account, keyId];
  };
  assert.deepEqual(await told(rich.key), [200, `acct_${rich.tag}`, rich.keyId]);
  assert.deepEqual(await told(rich.key, "/v1/models"), [200, `acct_${rich.tag}`, rich.keyId]);
  assert.deepEqual(await told(poor.key), [403, `acct_${poor.tag}`, undefined]);
  const madeUp = newKey(rich.tag, randomBytes);
  assert.deepEqual(
    await told(madeUp.text),
    [401, undefined, undefined],
    "a guessed key is not attributed to its account",
  );
});

function get(url: string, key: string): Promise<Response> {
  return fetch(url, { headers: { authorization: `Bearer ${key}` } });
}
