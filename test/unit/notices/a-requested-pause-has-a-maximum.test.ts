/**
 * A receiver may ask to wait with `Retry-After`, for a day at most: a receiver that asks for years by mistake would get no
 * notice any more, also after the mistake is corrected.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { send } from "../../../src/notices/send.ts";
import { Secret } from "../../../src/values/secret.ts";
import { systemClock } from "../../../src/values/time.ts";
import { startReceiver, webhookSecret } from "../../e2e/money/notices/receiver.ts";

const DAY_MS = 86_400_000;
const MESSAGE = { id: "msg_1", body: JSON.stringify({ type: "test", timestamp: new Date(0).toISOString(), data: {} }) };

test("a pause is kept up to a day, given in seconds or as a date, and one in the past is none", async (t) => {
  const receiver = await startReceiver(webhookSecret("one"));
  t.after(() => receiver.close());
  const settings = { url: new Secret(receiver.url), secrets: [new Secret(webhookSecret("one"))] };
  const pauseAfter = async (header: string) => {
    receiver.answer = () => ({ status: 503, headers: { "retry-after": header } });
    const parts = { clock: systemClock, fetch, signal: new AbortController().signal };
    return (await send(MESSAGE, settings, parts)).retryAfterMs;
  };
  assert.equal(await pauseAfter("86400"), DAY_MS);
  for (const header of ["86401", "999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
    assert.equal(await pauseAfter(header), DAY_MS, header);
  for (const header of ["0", "Thu, 01 Jan 1970 00:00:00 GMT", "soon"])
    assert.equal(await pauseAfter(header), 0, header);
});
