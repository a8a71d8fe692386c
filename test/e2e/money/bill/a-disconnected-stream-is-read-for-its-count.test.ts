/**
 * What happens to the upstream when the client disconnects (docs/decisions/what-a-disconnect-costs.md): the gateway keeps
 * reading until the upstream's count comes, as long as reading costs less than the hidden tokens that are in doubt.
 * With `on_client_gone: drain` it reads to the end. In both cases reading stops at the hold, and does not delay the
 * account's next request. Row D2 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener, ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import type { Settings } from "../../../../src/values/settings.ts";
import { type GatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { event, startBefore } from "../../../rig/own-upstream.ts";
import { ask, assertAtRest, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { card, sell } from "../cards/rig.ts";

/** How often the gateway checks a stream that it keeps reading. */
const LOOK_MS = 250;
/** Hidden tokens assumed per second for a model that has not been observed yet (src/settle/observed.ts). */
const HIDDEN_PER_S = 150;
const GRACE_MS = 10_000;
const SEARCH_PRICES = { web_search: "0.01", web_search_options: "0.01" };
const SEARCH_NANO = 10_000_000n;
/** How long the upstream is read after a stop string (src/request/relay.ts). */
const DRAIN_MS = 10_000;

function chunk(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null }];
  return `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "chat-1", choices, ...more })}\n\n`;
}

const STOP = chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const counted = (output: number) => {
  const usage = { prompt_tokens: 11, completion_tokens: output, total_tokens: 11 + output };
  return `${STOP}${chunk({}, { choices: [], usage })}data: [DONE]\n\n`;
};

const OPENING = event({ type: "response.created", sequence_number: 0, response: { id: "resp_1", output: [] } });

interface Scene {
  readonly here: GatewayHere;
  readonly clock: HandClock;
  readonly account: TestAccount;
  /** The upstream's responses, in the order of the streams. */
  upstream(): Promise<ServerResponse>;
  /** Starts a stream. @returns functions to read its next chunk and to disconnect. */
  stream(fields?: Fields): Promise<{ read(): Promise<void>; leave(): void; readonly id: string }>;
}

async function scene(
  t: TestContext,
  upstreamSettings = "",
  usd = "10",
  changes: Partial<Settings> = {},
): Promise<Scene> {
  const asked: ServerResponse[] = [];
  let waiting: ((response: ServerResponse) => void) | undefined;
  const answers: RequestListener = (request, response) => {
    request.resume();
    response.on("error", () => {});
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(request.url?.endsWith("/responses") ? OPENING : chunk({ role: "assistant" }));
    if (waiting) waiting(response);
    else asked.push(response);
    waiting = undefined;
  };
  const clock = new HandClock();
  const here = await startBefore(t, answers, {
    clock,
    config: (places) =>
      testConfig(places, ({ models, upstreams }) => ({
        upstreams: { "up-keeping": { ...upstreams["up-responses"], stateful: true } },
        models: {
          "responses-1": { price: { ...models["responses-1"].price, tools: SEARCH_PRICES } },
          "responses-alias": {
            price: { ...models["responses-alias"].price, tools: SEARCH_PRICES },
            routes: [{ upstream: "up-keeping" }],
            default_output_tokens: 100,
          },
        },
      })).replace("up-chat: {", `up-chat: {${upstreamSettings}`),
    settings: (settings) => ({ ...settings, heartbeatMs: 3_600_000, ...changes }),
  });
  const account = await here.account({ usd });
  return {
    here,
    clock,
    account,
    upstream: () => {
      const next = asked.shift();
      if (next) return Promise.resolve(next);
      return new Promise((resolve) => {
        waiting = resolve;
      });
    },
    async stream(fields = {}) {
      const leaving = new AbortController();
      const body = { stream: true, max_tokens: 32_000, ...fields };
      const reply = await ask(here, "chat", account.key, body, { signal: leaving.signal });
      assert.equal(reply.status, 200, reply.ok ? "" : await reply.text());
      const reader = reply.body?.getReader();
      return {
        id: reply.headers.get("x-request-id") ?? "",
        read: async () => void (await reader?.read()),
        leave: () => leaving.abort(),
      };
    },
  };
}

/** Resolves when the gateway has begun to read for a disconnected client. */
function readingOn({ clock }: Scene): Promise<void> {
  return clock.timerOf(LOOK_MS);
}

/** A stream that is silent for this long before its first word, and whose client disconnects after the word. */
async function leftAfter(one: Scene, silentMs: number): Promise<{ upstream: ServerResponse; id: string }> {
  const stream = await one.stream();
  const upstream = await one.upstream();
  await stream.read();
  one.clock.advance(silentMs);
  upstream.write(chunk({ content: "word" }));
  await stream.read();
  stream.leave();
  return { upstream, id: stream.id };
}

async function theLine({ here, account }: Scene) {
  await assertAtRest(here, account);
  const [line, ...more] = await usageLines(here, account);
  assert.deepEqual(more, []);
  return { line, memo: memoOf(line) };
}

test("a count that comes after the client disconnected is charged, even above the hold", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 5_000);
  await readingOn(one);
  upstream.end(counted(60_000));
  const { memo, line } = await theLine(one);
  assert.deepEqual(
    [memo.counted, memo.input, memo.output, memo.ended, memo.final, memo.surprise],
    ["upstream", 11, 60_000, "client_gone", true, "output_above_max"],
  );
  assert.ok(line && line.amount > BigInt(memo.hold as string));
});

test("after a long silence the upstream is read for ten more seconds, then the tokens that may have been hidden are charged", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 31_000);
  await readingOn(one);
  const closed = once(upstream, "close");
  one.clock.advance(GRACE_MS);
  await closed;
  const { memo } = await theLine(one);
  // The first second counts as network delay. The ten seconds after the disconnect were the gateway's choice, and are
  // not charged.
  assert.deepEqual([memo.counted, memo.output], ["estimate", 1 + 30 * HIDDEN_PER_S]);
});

test("a running count that comes after the client disconnected replaces the estimate of hidden tokens", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 31_000);
  await readingOn(one);
  // The stream breaks off after that, so there is no final count.
  upstream.end(chunk({ content: "more" }, { usage: { prompt_tokens: 11, completion_tokens: 900, total_tokens: 911 } }));
  const { memo } = await theLine(one);
  assert.deepEqual([memo.counted, memo.output], ["estimate", 900]);
});

test("reading stops when the text shown after the disconnect costs more than the hidden tokens in doubt", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 3_000);
  await readingOn(one);
  const closed = once(upstream, "close");
  // Two seconds of silence and half a second more are in doubt: 375 tokens.
  upstream.write(chunk({ content: "more ".repeat(290) }));
  await Promise.resolve();
  upstream.write(chunk({ content: "more ".repeat(20) }));
  await closed;
  const { memo } = await theLine(one);
  assert.equal(memo.counted, "estimate");
  assert.ok((memo.output as number) >= 1 + 2 * HIDDEN_PER_S + 363, `${memo.output}`);
});

test("a stop string that the gateway finds is charged like a disconnect: tokens that may have been hidden before it are charged", async (t) => {
  const one = await scene(t);
  // Responses has no stop strings, so the gateway looks for them and then reads for the upstream's count for ten
  // seconds.
  const reply = await ask(one.here, "chat", one.account.key, {
    model: "responses-1",
    stream: true,
    max_tokens: 32_000,
    stop: ["END"],
  });
  assert.equal(reply.status, 200);
  const upstream = await one.upstream();
  const closed = once(upstream, "close");
  const reader = reply.body?.getReader();
  one.clock.advance(31_000);
  const drain = one.clock.nextTimerOf(DRAIN_MS);
  upstream.write(event({ type: "response.output_text.delta", sequence_number: 1, output_index: 0, delta: "word END" }));
  await drain;
  one.clock.advance(DRAIN_MS);
  await closed;
  while (!(await reader?.read())?.done);
  const { memo } = await theLine(one);
  assert.deepEqual([memo.counted, memo.ended], ["estimate", "complete"]);
  const hidden = (memo.output as number) - 30 * HIDDEN_PER_S;
  assert.ok(hidden >= 1 && hidden <= 4, `${memo.output}`);
});

/** A response that makes this many searches and reports what it has found. */
const searching = (searches: number) => {
  const call = { type: "web_search_call", status: "completed", action: { type: "search", query: "q" } };
  const calls = Array.from({ length: searches }, (_, output_index) =>
    event({ type: "response.output_item.done", output_index, item: { ...call, id: `ws_${output_index}` } }),
  );
  return calls.join("") + event({ type: "response.output_text.delta", output_index: searches, delta: "found it END" });
};

test("searches already made are charged, even above the hold, to a client that disconnects before they are counted", async (t) => {
  const one = await scene(t);
  const leaving = new AbortController();
  const fields = { model: "responses-1", stream: true, max_output_tokens: 16, tools: [{ type: "web_search" }] };
  const reply = await ask(one.here, "responses", one.account.key, fields, { signal: leaving.signal });
  assert.equal(reply.status, 200);
  const upstream = await one.upstream();
  const reader = reply.body?.getReader();
  upstream.write(searching(20));
  let told = "";
  while (!told.includes("found it")) told += Buffer.from((await reader?.read())?.value ?? []).toString();
  leaving.abort();
  await readingOn(one);
  const closed = once(upstream, "close");
  one.clock.advance(GRACE_MS);
  await closed;
  const { memo, line } = await theLine(one);
  assert.deepEqual([memo.counted, memo.tool_calls], ["estimate", { web_search: 20 }]);
  assert.ok(line && line.amount > 20n * SEARCH_NANO && BigInt(memo.hold as string) < 11n * SEARCH_NANO);
});

test("searches are charged even if a stop string ends the stream after them", async (t) => {
  const one = await scene(t);
  const fields = { model: "responses-1", stream: true, stop: ["END"], web_search_options: {} };
  const reply = await ask(one.here, "chat", one.account.key, fields);
  assert.equal(reply.status, 200);
  const upstream = await one.upstream();
  const closed = once(upstream, "close");
  const drain = one.clock.nextTimerOf(DRAIN_MS);
  upstream.write(searching(20));
  await drain;
  one.clock.advance(DRAIN_MS);
  await closed;
  await reply.text();
  const { memo, line } = await theLine(one);
  assert.deepEqual([memo.ended, memo.tool_calls], ["complete", { web_search_options: 20 }]);
  assert.ok(line && line.amount > 20n * SEARCH_NANO);
});

/** A stream of an upstream that stores responses. Its client disconnects after it got the response's id. */
async function leftWithId(one: Scene, fields: Fields) {
  const leaving = new AbortController();
  const body = { model: "responses-alias", stream: true, ...fields };
  const reply = await ask(one.here, "responses", one.account.key, body, { signal: leaving.signal });
  assert.equal(reply.status, 200);
  const upstream = await one.upstream();
  const reader = reply.body?.getReader();
  await reader?.read();
  leaving.abort();
  return upstream;
}

const completed = (output: number) => {
  const usage = { input_tokens: 11, output_tokens: output, total_tokens: 11 + output };
  const response = { id: "resp_1", status: "completed", output: [], usage };
  return event({ type: "response.completed", sequence_number: 2, response });
};

test("a response that the server stores is read to its end and charged to the client that disconnected with its id", async (t) => {
  const one = await scene(t);
  const upstream = await leftWithId(one, { store: undefined });
  const stopped = once(upstream, "close").then(() => assert.fail("the upstream is not read to its end"));
  await Promise.race([readingOn(one), stopped]);
  // Longer than any other stream is read after a disconnect.
  one.clock.advance(3 * GRACE_MS);
  upstream.end(completed(4_000));
  const { memo, line } = await theLine(one);
  assert.deepEqual([line?.kind, memo.counted, memo.output, memo.ended], ["usage", "upstream", 4_000, "client_gone"]);
});

test("a response that can be retrieved later is charged for all results of its tools, however large", async (t) => {
  const one = await scene(t);
  const fields = { store: undefined, max_output_tokens: 16, tools: [{ type: "web_search" }] };
  const upstream = await leftWithId(one, fields);
  await readingOn(one);
  const search = (output_index: number, results: readonly object[]) => {
    const action = { type: "search", query: "q" };
    const item = { type: "web_search_call", id: `ws_${output_index}`, status: "completed", action, results };
    return event({ type: "response.output_item.done", output_index, item });
  };
  // More bytes than a reply of so few tokens has.
  for (const place of [0, 1, 2]) upstream.write(search(place, [{ type: "text_result", image: "x".repeat(100_000) }]));
  upstream.end(search(3, []) + completed(10));
  const { memo, line } = await theLine(one);
  assert.deepEqual([line?.kind, memo.counted, memo.tool_calls], ["usage", "upstream", { web_search: 4 }]);
});

test("a request refused for lack of funds does not end the reading of a response that can be retrieved later", async (t) => {
  const one = await scene(t, "", "0.05");
  const upstream = await leftWithId(one, { store: undefined, max_output_tokens: 4_000 });
  await readingOn(one);
  const next = await ask(one.here, "chat", one.account.key, {
    messages: [{ role: "user", content: "x".repeat(60_000) }],
  });
  assert.equal(next.status, 403);
  upstream.end(completed(3_000));
  const { memo, line } = await theLine(one);
  assert.deepEqual([line?.kind, memo.counted, memo.output, memo.ended], ["usage", "upstream", 3_000, "client_gone"]);
});

test("if the server breaks a stored response off, nothing is charged", async (t) => {
  const one = await scene(t);
  const upstream = await leftWithId(one, { store: undefined });
  await readingOn(one);
  const error = { type: "server_error", code: "server_error", message: "x" };
  upstream.end(
    event({ type: "response.failed", sequence_number: 1, response: { id: "resp_1", status: "failed", error } }),
  );
  const { line } = await theLine(one);
  assert.deepEqual([line?.kind, line?.debit], ["absorbed", "absorbed:client_gone"]);
});

test("if a stored response reaches the end of the hold, a client that has its id is charged what was written", async (t) => {
  const one = await scene(t);
  const upstream = await leftWithId(one, { store: undefined, max_output_tokens: 16 });
  await readingOn(one);
  const closed = once(upstream, "close");
  upstream.write(event({ type: "response.output_text.delta", output_index: 0, delta: "word ".repeat(1_000) }));
  await closed;
  const { memo, line } = await theLine(one);
  assert.deepEqual([line?.kind, memo.counted, memo.ended], ["usage", "estimate", "client_gone"]);
});

test("a response that is not stored is stopped, and not charged while the client has received nothing of it", async (t) => {
  const one = await scene(t);
  const upstream = await leftWithId(one, { store: false });
  await once(upstream, "close");
  const { line } = await theLine(one);
  assert.deepEqual([line?.kind, line?.debit], ["absorbed", "absorbed:client_gone"]);
});

test("without a silence the stream is stopped within half a second", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 900);
  await readingOn(one);
  const closed = once(upstream, "close");
  one.clock.advance(500);
  await closed;
  assert.deepEqual((await theLine(one)).memo.output, 1);
});

test("a stream whose client received nothing is not read any further and not charged", async (t) => {
  const one = await scene(t);
  const stream = await one.stream();
  const upstream = await one.upstream();
  await stream.read();
  one.clock.advance(20_000);
  const closed = once(upstream, "close");
  stream.leave();
  await closed;
  const { line } = await theLine(one);
  assert.deepEqual([line?.kind, line?.debit], ["absorbed", "absorbed:client_gone"]);
});

test("a model that is known to show everything it writes is stopped at once", async (t) => {
  const one = await scene(t);
  for (let reply = 0; reply < 20; reply++) {
    const stream = await one.stream();
    const upstream = await one.upstream();
    upstream.write(chunk({ content: "word ".repeat(1_000) }));
    upstream.end(counted(125));
    await one.here.requestEnd(stream.id);
  }
  const { upstream } = await leftAfter(one, 2_000);
  await once(upstream, "close");
  await assertAtRest(one.here, one.account);
  const line = (await usageLines(one.here, one.account)).at(-1);
  assert.deepEqual([memoOf(line).counted, memoOf(line).output], ["estimate", 1]);
  // One that has been silent this long is read all the same. What it hid is charged, and remembered for the model.
  const { upstream: silent } = await leftAfter(one, 30_000);
  await readingOn(one);
  silent.end(counted(3_000));
  await assertAtRest(one.here, one.account);
  const found = (await usageLines(one.here, one.account)).at(-1);
  assert.deepEqual([memoOf(found).counted, memoOf(found).output], ["upstream", 3_000]);
  const { upstream: next } = await leftAfter(one, 2_000);
  await readingOn(one);
  next.end(counted(500));
  await assertAtRest(one.here, one.account);
});

test("a request that asks for reasoning is assumed to hide tokens, even on a model that shows everything", async (t) => {
  const one = await scene(t);
  for (let reply = 0; reply < 20; reply++) {
    const stream = await one.stream();
    (await one.upstream()).end(`${chunk({ content: "word" })}${counted(1)}`);
    await one.here.requestEnd(stream.id);
  }
  const stream = await one.stream({ reasoning_effort: "high" });
  const upstream = await one.upstream();
  await stream.read();
  one.clock.advance(21_000);
  upstream.write(chunk({ content: "word" }));
  await stream.read();
  stream.leave();
  await readingOn(one);
  const closed = once(upstream, "close");
  one.clock.advance(GRACE_MS);
  await closed;
  await assertAtRest(one.here, one.account);
  assert.equal(memoOf((await usageLines(one.here, one.account)).at(-1)).output, 1 + 20 * HIDDEN_PER_S);
});

test("a refusal for lack of funds ends the reading, and the next request gets the freed funds", async (t) => {
  const one = await scene(t, "", "0.35");
  const { upstream } = await leftAfter(one, 5_000);
  await readingOn(one);
  const closed = once(upstream, "close");
  // The first request holds 0.32, so what is left would not cover a whole prompt; after its end nearly everything is
  // free.
  const next = await ask(one.here, "chat", one.account.key, {
    stream: true,
    max_tokens: 16,
    messages: [{ role: "user", content: "x".repeat(60_000) }],
  });
  assert.equal(next.status, 200, await (next.ok ? "" : next.text()));
  await closed;
  (await one.upstream()).end(`${chunk({ content: "word" })}${counted(1)}`);
  await next.text();
  await assertAtRest(one.here, one.account);
});

test("drain: the upstream is read until its count comes, however long that takes", async (t) => {
  const one = await scene(t, "on_client_gone: drain, ");
  const { upstream, id } = await leftAfter(one, 0);
  await readingOn(one);
  // Longer than any other stream is read after a disconnect, and shorter than the silence that ends one.
  one.clock.advance(100_000);
  upstream.end(counted(77));
  await one.here.requestEnd(id);
  const { memo } = await theLine(one);
  assert.deepEqual([memo.counted, memo.output, memo.ended], ["upstream", 77, "client_gone"]);
});

test("drain: the count of a reply that the client did not receive is charged beyond the allowance, but never if a card without a quota pays", async (t) => {
  for (const pays of ["money", "a card"]) {
    const one = await scene(t, "on_client_gone: drain, ", "10", { leftAllowanceNano: 0 });
    const { store } = one.here;
    if (pays === "a card") {
      const [code] = await sell(store, 1, card({ quota: undefined }));
      assert.ok(code);
      assert.equal((await store.redeem({ hash: code.hash, tag: one.account.tag })).outcome, "redeemed");
      await store.changeKey(one.account.tag, one.account.keyId, { group: "cards" });
    }
    const stream = await one.stream();
    const upstream = await one.upstream();
    stream.leave();
    await readingOn(one);
    upstream.end(`${chunk({ content: "word" })}${counted(77)}`);
    await one.here.requestEnd(stream.id);
    const { line, memo } = await theLine(one);
    assert.deepEqual([memo.counted, memo.output, memo.ended], ["upstream", 77, "client_gone"]);
    const told = pays === "money" ? ["usage", "allowance_used"] : ["absorbed", undefined];
    assert.deepEqual([line?.kind, memo.paid], told);
    const charged = pays === "money" ? 11n * 1_000n + 77n * 10_000n : 0n;
    assert.equal((await store.getAccount(one.account.tag))?.balance, 10_000_000_000n - charged);
  }
});

test("drain: reading stops at the hold", async (t) => {
  const one = await scene(t, "on_client_gone: drain, ");
  const stream = await one.stream({ max_tokens: 400 });
  const upstream = await one.upstream();
  await stream.read();
  upstream.write(chunk({ content: "word" }));
  await stream.read();
  const closed = once(upstream, "close");
  stream.leave();
  await readingOn(one);
  // Three times the limit that the hold covers, in few bytes; the upstream would continue.
  upstream.write(chunk({ content: "word ".repeat(20) }).repeat(60));
  await closed;
  const { memo, line } = await theLine(one);
  assert.deepEqual([memo.counted, String(line?.amount)], ["estimate", memo.hold]);
});

test("a gateway that stops does not wait for the reading to end", async (t) => {
  const one = await scene(t);
  const { upstream } = await leftAfter(one, 30_000);
  await readingOn(one);
  const closed = once(upstream, "close");
  await one.here.gateway.close();
  await closed;
  const line = one.here.log.findLast(({ msg }) => msg === "request");
  assert.deepEqual([line?.stream_end, line?.counted], ["client_gone", "estimate"]);
});
