/**
 * "This request was charged wrongly": one command shows, by the request's id, what it was charged for, however many
 * other requests there are.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { tollgate } from "./rig.ts";

test("ledger show --request prints the lines of one request and its attempts, or says that there are none", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { name, key } = await here.account();
  const ids: string[] = [];
  for (let n = 0; n < 3; n++) {
    const reply = await ask(here, "chat", key);
    await reply.text();
    const id = reply.headers.get("x-request-id") ?? "";
    await here.requestEnd(id);
    ids.push(id);
  }
  const show = (...options: string[]) => tollgate(here, "ledger", "show", "--account", name, "--request", ...options);
  const [, disputed = ""] = ids;
  const shown = await show(disputed);
  assert.deepEqual([shown.status, shown.err], [0, ""]);
  assert.match(shown.out, new RegExp(`^SEQ[^\\n]*\\n +3 [^\\n]* usage [^\\n]* ${disputed} [^\\n]*\\n$`));
  const { items, request } = JSON.parse((await show(disputed, "--format", "json")).out);
  assert.deepEqual([request, items.length, items[0].usage.counted], [disputed, 1, "upstream"]);
  assert.match((await show(disputed, "--attempts")).out, new RegExp(`^SEQ[^\\n]*\\n +3 [^\\n]*${disputed}[^\\n]*\\n$`));
  const unknown = await show(disputed.replace(/.{4}$/, "0000"));
  assert.equal(unknown.status, 1);
  assert.match(unknown.err, /^Refused: No ledger line of this account is about the request/);
  assert.match((await show("4711")).err, /the id of a request: req_ and 24 letters or digits/);
  assert.equal((await show(disputed, "--last", "3")).status, 2);
});
