/** A count never fails because of the upstream: what the upstream cannot or will not count is estimated. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import { COUNT_REST_MS, NATIVE_COUNTS_MAX } from "../../../../src/endpoints/count-tokens.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { errorOf } from "../whole/asking.ts";
import { type OtherUpstream, post, type SeenByUpstream, sendJson, startUpstream } from "./side-rig.ts";

/** The counts that Claude Code sends at once. */
const ASKED = 25;
const HELLO = [{ role: "user", content: "hello" }];

interface Scene {
  readonly here: GatewayHere;
  readonly upstream: OtherUpstream;
  count(headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
}

async function scene(
  t: TestContext,
  answer: (seen: SeenByUpstream, res: ServerResponse) => void,
  change: Parameters<typeof testConfig>[1] = {},
): Promise<Scene> {
  const upstream = await startUpstream(answer);
  const here = await startGatewayHere({ config: ({ dir }) => testConfig({ upstreamUrl: upstream.url, dir }, change) });
  t.after(async () => {
    await here.close();
    await upstream.close();
  });
  const { key } = await here.account({ usd: "0" });
  return {
    here,
    upstream,
    count: (headers, signal) =>
      post(`${here.url}/v1/messages/count_tokens`, key, { model: "messages-alias", messages: HELLO }, headers, signal),
  };
}

async function assertEstimated(reply: Response): Promise<void> {
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("x-tollgate-origin"), "gateway");
  assert.deepEqual(Object.keys((await reply.json()) as object), ["input_tokens"]);
}

for (const [what, answer] of [
  ["has no such endpoint", (res: ServerResponse) => sendJson(res, 404, { error: { message: "no such path" } })],
  ["refuses our credential", (res: ServerResponse) => sendJson(res, 401, { error: { message: "bad key" } })],
  ["is overloaded", (res: ServerResponse) => sendJson(res, 529, { error: { type: "overloaded_error" } })],
  ["limits the rate", (res: ServerResponse) => sendJson(res, 429, { error: { type: "rate_limit_error" } })],
  ["answers with a page", (res: ServerResponse) => res.writeHead(200, { "content-type": "text/html" }).end("<p>")],
  ["answers with something else", (res: ServerResponse) => sendJson(res, 200, { input_tokens: -1 })],
  ["cuts the connection", (res: ServerResponse) => res.socket?.destroy()],
] as const) {
  test(`if an upstream ${what}, the count is estimated and the upstream is not called for a while`, async (t) => {
    const { upstream, count, here } = await scene(t, (_seen, res) => answer(res));
    await assertEstimated(await count());
    const asked = upstream.seen.length;
    assert.ok(asked >= 1);
    await assertEstimated(await count());
    assert.equal(upstream.seen.length, asked);
    // A missing endpoint is nothing to alert the operator about.
    const alarm = here.log.find(
      (line) => line.msg === "an upstream needs the operator" && line.kind === "model_not_found",
    );
    assert.equal(alarm, undefined);
  });
}

test("an upstream is called again after the pause", async (t) => {
  const { NativeCounts } = await import("../../../../src/endpoints/count-tokens.ts");
  let nowMs = 0;
  const counts = new NativeCounts({ monotonicMs: () => nowMs, wallMs: () => nowMs, after: () => () => {} });
  const route = { upstream: "east", upstreamModel: "m" };
  counts.failed(route);
  assert.equal(counts.mayAsk(route), false);
  assert.equal(counts.mayAsk({ ...route, upstreamModel: "other" }), true);
  nowMs = COUNT_REST_MS;
  assert.equal(counts.mayAsk(route), true);
  t.diagnostic(`rested for ${COUNT_REST_MS} ms`);
});

test("an upstream's refusal of the body is passed to the client", async (t) => {
  const { count, upstream } = await scene(t, (_seen, res) =>
    sendJson(res, 400, {
      type: "error",
      error: { type: "invalid_request_error", message: "messages.0: no such role" },
    }),
  );
  for (const asked of [1, 2]) {
    const reply = await count();
    assert.equal(reply.status, 400);
    assert.equal((await errorOf(reply)).message, "messages.0: no such role");
    assert.equal(upstream.seen.length, asked, "the upstream can count, but refuses this request");
  }
});

test("a client that disconnects does not count against the upstream, which is called for the next count", async (t) => {
  const waiting: ServerResponse[] = [];
  const asked = Promise.withResolvers<void>();
  const { count, here } = await scene(t, (_seen, res) => {
    if (waiting.push(res) === 1) asked.resolve();
    else sendJson(res, 200, { input_tokens: 5 });
  });
  const leaving = new AbortController();
  const left = count({}, leaving.signal).catch(() => "left");
  await asked.promise;
  leaving.abort();
  assert.equal(await left, "left");
  const line = await here.logged(({ msg, endpoint }) => msg === "request" && endpoint === "count_tokens");
  assert.deepEqual([line.status, line.cause], [499, "client_gone"]);
  assert.deepEqual(
    here.log.filter(({ level }) => level === "error"),
    [],
    "no error is logged",
  );
  const reply = await count();
  assert.equal(reply.headers.get("x-tollgate-origin"), "upstream");
});

test("the upstream's slot is released, whatever the outcome of the count", async (t) => {
  const answers = [200, 400, 200];
  const { count, upstream } = await scene(t, (_seen, res) =>
    sendJson(res, answers[upstream.seen.length % answers.length] as number, { input_tokens: 5 }),
  );
  for (let n = 1; n <= 2 * NATIVE_COUNTS_MAX; n++) {
    await (await count()).text();
    assert.equal(upstream.seen.length, n);
  }
});

test("the number of concurrent counts at an upstream is limited", async (t) => {
  const waiting: ServerResponse[] = [];
  const full = Promise.withResolvers<void>();
  const { count, upstream } = await scene(t, (_seen, res) => {
    waiting.push(res);
    if (waiting.length === NATIVE_COUNTS_MAX) full.resolve();
  });
  const others = Promise.withResolvers<void>();
  let answered = 0;
  const replies = Array.from({ length: ASKED }, async () => {
    const reply = await count();
    answered += 1;
    if (answered === ASKED - NATIVE_COUNTS_MAX) others.resolve();
    return reply;
  });
  await full.promise;
  // Those above the cap do not wait for the ones upstream.
  await others.promise;
  for (const res of waiting) sendJson(res, 200, { input_tokens: 5 });
  const origins = (await Promise.all(replies)).map((reply) => reply.headers.get("x-tollgate-origin"));
  assert.equal(origins.filter((origin) => origin === "upstream").length, NATIVE_COUNTS_MAX);
  assert.equal(upstream.seen.length, NATIVE_COUNTS_MAX);
});

test("counts take up room like requests: an account that fills the process gets an error, and others are served", async (t) => {
  const waiting: ServerResponse[] = [];
  const full = Promise.withResolvers<void>();
  const answer = (_seen: SeenByUpstream, res: ServerResponse): void => {
    waiting.push(res);
    if (waiting.length === NATIVE_COUNTS_MAX) full.resolve();
  };
  const { here, count } = await scene(t, answer, { overload: { in_flight_max: NATIVE_COUNTS_MAX + 2 } });
  const flood = Array.from({ length: NATIVE_COUNTS_MAX }, () => count());
  await full.promise;
  const refused = await count();
  assert.equal(refused.status, 429);
  assert.equal((await errorOf(refused)).cause, "concurrency");
  const { key } = await here.account({ usd: "0" });
  await assertEstimated(
    await post(`${here.url}/v1/messages/count_tokens`, key, { model: "messages-alias", messages: HELLO }),
  );
  for (const res of waiting) sendJson(res, 200, { input_tokens: 5 });
  for (const reply of await Promise.all(flood)) assert.equal(reply.status, 200);
  await assertEstimated(await count());
});

test("the upstream receives its own model name, the operator's credential, and the client's version and betas", async (t) => {
  const { count, upstream } = await scene(t, (_seen, res) =>
    sendJson(res, 200, { input_tokens: 9, context_management: {} }),
  );
  const reply = await count({
    "anthropic-version": "2026-10-21",
    "anthropic-beta": "one-2026-01-01, bad value,two, one-2026-01-01",
  });
  assert.deepEqual(await reply.json(), { input_tokens: 9, context_management: {} });
  const [seen] = upstream.seen;
  assert.equal(seen?.path, "/v1/messages/count_tokens");
  assert.deepEqual(seen?.json, { model: "messages-1-2026-08", messages: HELLO });
  assert.equal(seen?.headers["x-api-key"], "upstream-canary-messages");
  assert.equal(seen?.headers.authorization, undefined);
  assert.equal(seen?.headers["anthropic-version"], "2026-10-21");
  assert.equal(seen?.headers["anthropic-beta"], "one-2026-01-01,two");
});
