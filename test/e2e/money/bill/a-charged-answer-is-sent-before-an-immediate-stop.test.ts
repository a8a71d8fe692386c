/**
 * ARCHITECTURE.md promise 3, docs/failure-model.md row A6: an answer whose charge is being written when the gateway is stopped at once is sent before its connection
 * is closed. A stream is ended as its protocol requires, and then charged for what it showed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, framesOf } from "../../protocol/whole/asking.ts";

/** Nothing else tells that an upstream's answer has arrived and its charge is still being written. */
async function untilSettling({ gateway }: GatewayHere, requests: number): Promise<void> {
  const inFlight = () => gateway.upstreams().find(({ name }) => name === "up-chat")?.inFlight;
  while (inFlight() !== requests) await new Promise((resolve) => setImmediate(resolve));
}

test("a whole answer that is being charged arrives", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { key } = await here.account();
  here.simulator.hold();
  const answer = ask(here, "chat", key);
  await untilSettling(here, 1);
  here.simulator.release();
  await untilSettling(here, 0);
  const closed = here.gateway.close();
  const { status, headers } = await answer;
  const text = await (await answer).text();
  assert.deepEqual([status, headers.get("connection")], [200, "close"]);
  assert.equal(JSON.parse(text).object, "chat.completion");
  await closed;
  const line = here.log.findLast((one) => one.msg === "request");
  assert.deepEqual([line?.status, line?.cause], [200, "none"]);
  assert.ok(Number(line?.charged_nano_usd) > 0);
});

test("a stream is ended as its protocol requires", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { key } = await here.account();
  here.simulator.program({ text: "one two three four", deltaChars: 4, fault: { stallAfterEvents: 4 } });
  const reply = await ask(here, "chat", key, { stream: true });
  const stream = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await stream?.read())?.value ?? "";
  const closed = here.gateway.close();
  for (let next = await stream?.read(); next && !next.done; next = await stream?.read()) text += next.value;
  assert.match(framesOf(text).at(-1)?.data ?? "", /"cause":"draining"/);
  await closed;
  const line = here.log.findLast((one) => one.msg === "request");
  assert.deepEqual([line?.status, line?.stream_end], [200, "draining"]);
  assert.ok(Number(line?.charged_nano_usd) > 0);
});
