/**
 * ARCHITECTURE.md promise 12: at the deadline of a drain a running stream gets its protocol's proper end, and is
 * charged exactly.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";

const BODIES = {
  chat: {
    path: "/v1/chat/completions",
    body: { model: "chat-1", stream: true, messages: [{ role: "user", content: "hi" }] },
  },
  messages: {
    path: "/v1/messages",
    body: { model: "messages-1", stream: true, max_tokens: 500, messages: [{ role: "user", content: "hi" }] },
  },
  responses: { path: "/v1/responses", body: { model: "responses-1", stream: true, input: "hi" } },
} as const;
const ENDS = {
  chat: /"code":"server_error"/,
  messages: /event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error"/,
  responses: /event: error\n[\s\S]*event: response\.failed\n/,
} as const;

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: a stream that outlasts the drain deadline is ended and charged for what it produced`, async () => {
    const here = await startGatewayHere({
      settings: (settings) => ({ ...settings, drain: { lameDuckMs: 1, deadlineMs: 1 } }),
    });
    const { key, tag } = await here.account();
    here.simulator.program({ text: "one two three four", deltaChars: 4, fault: { stallAfterEvents: 6 } });
    const { path, body } = BODIES[protocol];
    const reply = await fetch(here.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const stream = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await stream?.read())?.value ?? "";
    const drained = here.gateway.drain();
    for (let next = await stream?.read(); next && !next.done; next = await stream?.read()) text += next.value;
    assert.match(text, ENDS[protocol]);
    assert.doesNotMatch(text, /\[DONE\]|message_stop|response\.completed/);
    // The store is closed at the end of the drain, so the charge is read from the request's log line.
    await drained;
    const line = here.log.findLast((one) => one.msg === "request");
    assert.equal(line?.stream_end, "draining");
    assert.equal(line?.counted, "estimate");
    assert.ok(Number(line?.charged_nano_usd) > 0, tag);
    await here.close();
  });
}
