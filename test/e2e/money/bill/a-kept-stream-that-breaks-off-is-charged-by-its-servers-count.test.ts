/**
 * A server that keeps an answer may complete it after the gateway has given up its stream, and the client can retrieve it by its id.
 * So the server is asked for its count, and one that still writes is waited for
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import { event, startBefore } from "../../../rig/own-upstream.ts";
import { ask, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { pricedConfig } from "./rig.ts";

const IDLE_MS = 120_000;
const TOTAL_MS = 20 * 60_000;
/** How often a stream without a client is looked at. */
const READ_ON_LOOK_MS = 250;
const ID = "resp_0123456789abcdef";

const answer = (status: string, usage: object | null = null) => ({
  ...{ id: ID, object: "response", status, model: "responses-1", usage },
  output: usage ? [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "All of it." }] }] : [],
});
const USAGE = { input_tokens: 11, output_tokens: 4_000, total_tokens: 4_011 };
const OPENING = event({ type: "response.created", sequence_number: 0, response: answer("in_progress") });
const COMPLETED = event({ type: "response.completed", sequence_number: 1, response: answer("completed", USAGE) });

/** A server that begins every stream and then is silent. @param told what it says about the answer, in order. */
async function scene(t: TestContext, ...told: (object | undefined)[]) {
  const streams: ServerResponse[] = [];
  const asked: string[] = [];
  const answers: RequestListener = (request, response) => {
    request.resume();
    if (request.method === "GET") {
      asked.push(`${request.url} ${request.headers.authorization}`);
      const found = told.shift();
      response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(found ?? { error: { message: "no such response", type: "invalid_request_error" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(OPENING);
    streams.push(response);
  };
  const clock = new HandClock();
  const here = await startBefore(t, answers, {
    clock,
    config: (places) => pricedConfig(places, { upstreams: { "up-responses": { stateful: true, api_key: "up" } } }),
    settings: (settings) => ({ ...settings, heartbeatMs: 3_600_000 }),
  });
  const account = await here.account({ usd: "10" });
  const requestEnds = here.logged((line) => line.msg === "request" && line.key_id === account.keyId);
  const reply = await ask(here, "responses", account.key, {
    ...{ model: "responses-1", stream: true, max_output_tokens: 32_000, store: undefined },
  });
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.ok(reader);
  let text = "";
  const read = async (until: RegExp) => {
    while (!until.test(text)) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
    }
    assert.match(text, until);
  };
  await read(/response\.created/);
  return {
    ...{ clock, asked, read, stream: () => streams[0] },
    /** The client disconnects; the gateway has noticed it. */
    async leaves() {
      const isReadOn = clock.nextTimerOf(READ_ON_LOOK_MS);
      await reader.cancel();
      await isReadOn;
    },
    async bill() {
      await requestEnds;
      const lines = await usageLines(here, account);
      return lines.map((line) => {
        const { counted, output, ended } = memoOf(line);
        return [line.kind, counted, output, ended];
      });
    },
  };
}

test("a silent server that still writes is waited for", async (t) => {
  const { clock, asked, read, stream, bill } = await scene(t, answer("in_progress"), answer("queued"));
  for (let times = 1; times <= 2; times++) {
    const waits = clock.nextTimerOf(IDLE_MS);
    clock.advance(IDLE_MS);
    await waits;
    assert.equal(asked.length, times);
  }
  assert.deepEqual(asked, Array(2).fill(`/v1/responses/${ID} Bearer up`));
  stream()?.end(COMPLETED);
  await read(/response\.completed/);
  assert.deepEqual(await bill(), [["usage", "upstream", 4_000, "complete"]]);
});

test("an answer that the silent server has completed is charged by its count", async (t) => {
  const { clock, read, bill } = await scene(t, answer("completed", USAGE));
  clock.advance(IDLE_MS);
  await read(/response\.failed/);
  assert.deepEqual(await bill(), [["usage", "upstream", 4_000, "upstream_timeout"]]);
});

for (const [title, last] of [
  ["so is one whose connection broke", ": a comment\n\n"],
  ["also in the middle of an event", 'event: response.output_text.delta\ndata: {"type":"response.outp'],
] as const) {
  test(title, async (t) => {
    const { stream, read, bill } = await scene(t, answer("incomplete", USAGE));
    stream()?.write(last, () => stream()?.destroy());
    await read(/response\.failed/);
    assert.deepEqual(await bill(), [["usage", "upstream", 4_000, "upstream_unavailable"]]);
  });
}

test("so is one whose body ends in the middle of an event", async (t) => {
  const { stream, read, bill } = await scene(t, answer("incomplete", USAGE));
  stream()?.end(COMPLETED.slice(0, -40));
  await read(/response\.failed/);
  assert.deepEqual(await bill(), [["usage", "upstream", 4_000, "upstream_invalid"]]);
});

test("so is one whose last event is too large for the gateway", async (t) => {
  const { stream, read, bill } = await scene(t, answer("completed", USAGE));
  const image = { type: "image_generation_call", id: "ig_1", status: "completed", result: "A".repeat(5 * 1024 * 1024) };
  const response = { ...answer("completed", USAGE), output: [image] };
  stream()?.end(event({ type: "response.completed", sequence_number: 1, response }));
  await read(/response\.failed/);
  assert.deepEqual(await bill(), [["usage", "upstream", 4_000, "upstream_invalid"]]);
});

test("an answer that the server does not keep is not charged", async (t) => {
  const { clock, read, bill } = await scene(t, undefined);
  clock.advance(IDLE_MS);
  await read(/response\.failed/);
  assert.deepEqual(
    (await bill()).map(([kind]) => kind),
    ["absorbed"],
  );
});

for (const leaves of [false, true]) {
  const title = "one that takes longer than its request may is charged by the evidence";
  test(`${title}${leaves ? ", also if its client has disconnected" : ""}`, async (t) => {
    const told = Array.from({ length: TOTAL_MS / IDLE_MS + 1 }, () => answer("in_progress"));
    const { clock, read, leaves: leave, bill } = await scene(t, ...told);
    if (leaves) await leave();
    for (let ms = IDLE_MS; ms < TOTAL_MS; ms += IDLE_MS) {
      const waits = clock.nextTimerOf(Math.min(IDLE_MS, TOTAL_MS - ms));
      clock.advance(IDLE_MS);
      await waits;
    }
    clock.advance(IDLE_MS);
    if (!leaves) await read(/response\.failed/);
    const [line] = await bill();
    const ended = leaves ? "client_gone" : "upstream_timeout";
    assert.deepEqual([line?.[0], line?.[1], line?.[3]], ["usage", "estimate", ended]);
    assert.equal(line?.[2], 32_000, "the limit, because such a model may have thought all the time");
  });
}
