/**
 * ARCHITECTURE.md promise 10: one account floods the process; it gets 429, the others get their answers, and no client
 * gets a 5xx.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { CHAT_END, chatFrame, chatStream, type HandRequest, startHandUpstream } from "../../ops/fronts/fronts.ts";
import { ask, assertAtRest, errorOf, usageLines } from "./asking.ts";

const IN_FLIGHT_MAX = 320;
const FLOOD = 300;
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const WHOLE = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "chat-1",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: USAGE,
};
const USAGE_FRAME = `data: ${JSON.stringify({ ...WHOLE, object: "chat.completion.chunk", choices: [] })}\n\n`;

test("300 requests of one account are partly refused while a few of five others are all answered", async (t) => {
  const upstream = await startHandUpstream(WHOLE);
  const here = await startGatewayHere({
    config: (places) =>
      testConfig(
        { ...places, upstreamUrl: upstream.url },
        {
          groups: { money: { limits: { concurrency: 1000 } } },
          upstreams: { "up-chat": { max_concurrency: 1000 } },
          overload: { in_flight_max: IN_FLIGHT_MAX, loop_delay: "60s" },
        },
      ),
  });
  t.after(async () => {
    await here.close();
    await upstream.close();
  });
  const busy = await here.account();
  const others = await Promise.all(Array.from({ length: 5 }, () => here.account()));
  const asked = Array.from({ length: FLOOD }, () => chatStream(here.url, busy.key));
  const opened: HandRequest[] = [];
  // Each request that goes upstream is held open there; refused ones are answered at once.
  const opening = (async () => {
    for (;;) {
      const next = await upstream.next();
      next.send(chatFrame("first."));
      opened.push(next);
    }
  })();
  const streams = await Promise.all(asked);
  const served = streams.filter(({ status }) => status === 200);
  const refused = streams.filter(({ status }) => status !== 200);
  for (const { status } of refused) assert.equal(status, 429);
  // At 0.8 its further requests are refused by their key, at 0.9 those that were accepted before that.
  assert.ok(served.length >= 0.8 * IN_FLIGHT_MAX && served.length <= 0.9 * IN_FLIGHT_MAX, `${served.length} served`);
  const told = await ask(here, "messages", busy.key);
  const error = await errorOf(told);
  assert.deepEqual([told.status, error.type, error.cause], [429, "rate_limit_error", "concurrency"]);
  assert.match(error.message, /your account has [0-9]+ requests running/);
  assert.ok(Number(told.headers.get("retry-after")) >= 1);

  for (const { key } of others) {
    for (let i = 0; i < 3; i++) {
      const reply = await ask(here, "chat", key);
      assert.equal(reply.status, 200, await reply.text());
    }
  }
  const { body: page } = await here.gateway.metrics.page();
  const shed = [...page.matchAll(/^tollgate_shed_total\{point="(\w+)"\} ([0-9]+)$/gm)];
  assert.equal(
    shed.reduce((sum, [, , count]) => sum + Number(count), 0),
    refused.length + 1,
  );
  assert.doesNotMatch(page, /status="5/);

  for (const request of opened) {
    request.send(chatFrame("", "stop") + USAGE_FRAME + CHAT_END);
    request.end();
  }
  for (const stream of served) assert.ok((await stream.end()).text.endsWith(CHAT_END));
  const again = await ask(here, "chat", busy.key);
  assert.equal(again.status, 200, "it recovers by itself");
  const ends = () => here.log.filter(({ msg }) => msg === "request").length;
  const all = FLOOD + 1 + 15 + 1;
  if (ends() < all) await here.logged((line) => line.msg === "request" && ends() >= all);
  for (const account of [busy, ...others]) await assertAtRest(here, account);
  assert.equal((await usageLines(here, busy)).length, served.length + 1, "what was refused is not charged");
  void opening;
});
