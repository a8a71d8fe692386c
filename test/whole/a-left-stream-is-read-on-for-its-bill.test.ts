/** `on_client_gone: drain`: the upstream's own count stands in the bill of a stream whose client has left. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../rig/gateway.ts";
import { ask, assertAtRest, memoOf, usageLines } from "./asking.ts";
import { HandClock } from "./hand-clock.ts";

const DRAIN_MS = 10_000;

/** Tells when the gateway begins to read on: by its timer of ten seconds. */
class WatchedClock extends HandClock {
  readonly #draining = Promise.withResolvers<void>();
  readonly draining = this.#draining.promise;

  override after(ms: number, task: () => void): () => void {
    if (ms === DRAIN_MS) this.#draining.resolve();
    return super.after(ms, task);
  }
}

function chunk(delta: object, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: null }];
  return `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "chat-1", choices, ...more })}\n\n`;
}

interface Begun {
  readonly here: GatewayHere;
  readonly clock: WatchedClock;
  readonly account: { readonly tag: Parameters<GatewayHere["store"]["getAccount"]>[0]; readonly key: string };
  /** The upstream's side of the stream; its client has left. */
  readonly upstream: ServerResponse;
}

/** A stream whose client leaves behind the first word. */
async function left(t: TestContext): Promise<Begun> {
  const asked = Promise.withResolvers<ServerResponse>();
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ role: "assistant", content: "word" }));
    asked.resolve(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstreamUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const clock = new WatchedClock();
  const here = await startGatewayHere({
    clock,
    config: (places) =>
      testConfig({ ...places, upstreamUrl }).replace("up-chat: {", "up-chat: {on_client_gone: drain, "),
    settings: (settings) => ({ ...settings, heartbeatMs: 7_000 }),
  });
  t.after(async () => {
    await here.close();
    server.closeAllConnections();
    server.close();
  });
  const account = await here.account();
  const leaving = new AbortController();
  const reply = await ask(here, "chat", account.key, { stream: true }, { signal: leaving.signal });
  await reply.body?.getReader().read();
  leaving.abort();
  await clock.draining;
  return { here, clock, account, upstream: await asked.promise };
}

test("the upstream is read to its count, which is what the client pays", async (t) => {
  const { here, account, upstream } = await left(t);
  upstream.write(chunk({ content: " and more".repeat(50) }));
  upstream.write(chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
  const usage = { prompt_tokens: 11, completion_tokens: 77, total_tokens: 88 };
  upstream.end(`${chunk({}, { choices: [], usage })}data: [DONE]\n\n`);
  await assertAtRest(here, account);
  const [line, ...more] = await usageLines(here, account);
  assert.deepEqual(more, []);
  const { counted, input, output, ended } = memoOf(line);
  assert.deepEqual(
    { counted, input, output, ended },
    { counted: "upstream", input: 11, output: 77, ended: "client_gone" },
  );
});

test("for ten seconds and no longer: then it is charged for what was produced", async (t) => {
  const { here, clock, account, upstream } = await left(t);
  const closed = once(upstream, "close");
  clock.advance(DRAIN_MS);
  await closed;
  await assertAtRest(here, account);
  const { counted, output, ended } = memoOf((await usageLines(here, account))[0]);
  assert.deepEqual({ counted, output, ended }, { counted: "estimate", output: 1, ended: "client_gone" });
});

test("for four megabytes and no more", async (t) => {
  const { here, account, upstream } = await left(t);
  const closed = once(upstream, "close");
  const piece = chunk({ content: "x".repeat(64 * 1024) });
  upstream.on("error", () => {});
  const write = () => {
    while (!upstream.destroyed && upstream.write(piece));
    if (!upstream.destroyed) upstream.once("drain", write);
  };
  write();
  await closed;
  await assertAtRest(here, account);
  assert.equal(memoOf((await usageLines(here, account))[0]).counted, "estimate");
});

test("a gateway that stops does not wait for it", async (t) => {
  const { here, upstream } = await left(t);
  const closed = once(upstream, "close");
  await here.gateway.close();
  await closed;
  const line = here.log.findLast((one) => one.msg === "request");
  assert.deepEqual([line?.stream_end, line?.counted], ["client_gone", "estimate"]);
});
