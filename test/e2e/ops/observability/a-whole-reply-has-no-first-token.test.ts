/** The time to the first token is measured on streams. A whole reply takes as long as its text, which says nothing about it. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";

test("a whole reply is not counted in the time to the first token", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { key } = await here.account();
  const counted = async (name: string) => {
    const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
    const shown = page.split("\n").filter((line) => line.startsWith(`${name}_count{`));
    return shown.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  };
  const answer = async (stream: boolean) => {
    const reply = await ask(here, "chat", key, { stream });
    await reply.text();
    return here.requestEnd(reply.headers.get("x-request-id") ?? "");
  };

  assert.equal((await answer(false)).first_token_ms, undefined);
  assert.equal(await counted("tollgate_request_duration_seconds"), 1);
  assert.equal(await counted("tollgate_time_to_first_token_seconds"), 0);
  assert.equal(await counted("tollgate_upstream_time_to_first_token_seconds"), 0);

  assert.equal(typeof (await answer(true)).first_token_ms, "number");
  assert.equal(await counted("tollgate_time_to_first_token_seconds"), 1);
  assert.equal(await counted("tollgate_upstream_time_to_first_token_seconds"), 1);
});
