/**
 * docs/failure-model.md row B3: the lookup of the key before a large body is read is refused in time, and not retried
 * after the body.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { scene } from "./rig.ts";

test("half of a large body gets 503 while the store is unreachable, and 100 Continue when it is back", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  const readings = () => s.metric('store_seconds_count{operation="readKey"}');
  const send = () =>
    new RawSocket({ port: s.here.port }).send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n",
      `Authorization: Bearer ${s.account.key}\r\nContent-Length: 32000000\r\n\r\n`,
    );
  s.proxy.blackHole(true);
  const [refused] = await send().responsesUntilClosed();
  assert.deepEqual([refused?.status, refused?.headers.connection], [503, "close"]);
  assert.equal(JSON.parse(refused?.body ?? "{}").error.cause, "store_unavailable");
  assert.equal(await readings(), 1);
  s.proxy.blackHole(false);
  const waiting = send();
  await waiting.until((text) => text.includes("\r\n\r\n"));
  assert.match(waiting.text, /^HTTP\/1\.1 100 Continue/);
  waiting.close();
});
