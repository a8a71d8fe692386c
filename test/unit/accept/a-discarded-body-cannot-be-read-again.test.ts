/**
 * A discarded body cannot be read again: its bytes are gone, so the reader would wait forever or see an empty body
 * (src/accept/body.ts).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { echo, request, startEcho } from "./echo.ts";

test("reading a discarded body throws, and only in the request that does it", async (t) => {
  const read: unknown[] = [];
  const { target, crashes } = await startEcho(t, {}, async (accepted, reply) => {
    const body = await accepted.readBody();
    assert.equal(await accepted.readBody(), body, "every call returns the same until then");
    if (accepted.query !== "") {
      accepted.forgetBody();
      read.push(await accepted.readBody());
    }
    return echo(accepted, reply);
  });
  const [failed] = await exchange(target, request({ line: "POST /v1/chat/completions?forget=1 HTTP/1.1" }));
  assert.equal(failed?.status, 500);
  assert.deepEqual(read, []);
  assert.match(String(crashes[0]), /not read again after it was forgotten/);
  const [served] = await exchange(target, request({}));
  assert.equal(served?.status, 200);
});
