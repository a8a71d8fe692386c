/**
 * docs/failure-model.md row C3: servers that queue a request or think for minutes send only comments or blank lines meanwhile
 * (docs/configuration.md). These keep a stream beyond `idle`, and only until the request's own end.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { ask, assertAnswered, chunked, FakeClock, rawServer, rig, route, SSE_HEAD, timeouts, upstream } from "./rig.ts";

const IDLE_MS = 1_000;
const TOTAL_MS = 10_000;

for (const [what, sign] of [
  ["comments", ": keep-alive\n\n"],
  ["blank lines", "\n"],
] as const) {
  test(`a stream of nothing but ${what} goes on beyond idle, until the request's time is over`, async (t) => {
    const clock = new FakeClock();
    const opened = Promise.withResolvers<Socket>();
    const base = await rawServer(t, ({ socket }) => {
      socket.write(`${SSE_HEAD}transfer-encoding: chunked\r\n\r\n${chunked("data: first\n\n")}`);
      opened.resolve(socket);
    });
    const { dispatcher } = rig(t, [upstream("east", base, timeouts({ idleMs: IDLE_MS }))], clock);
    const endMs = clock.monotonicMs() + TOTAL_MS;
    const result = await dispatcher.run(ask([route("east")], { deadlineMs: endMs }));
    assertAnswered(result);
    const ended = Promise.withResolvers<string>();
    let said = Promise.withResolvers<string>();
    result.body?.consume({
      data: (chunk) => said.resolve(Buffer.from(chunk).toString()),
      end: () => ended.resolve("end"),
      error: ({ cause, reason }) => ended.resolve(`${cause}: ${reason}`),
    });
    const socket = await opened.promise;
    while (clock.monotonicMs() + IDLE_MS < endMs) {
      said = Promise.withResolvers<string>();
      socket.write(chunked(sign));
      assert.equal(await Promise.race([said.promise, ended.promise]), sign);
      clock.advance(IDLE_MS - 1);
    }
    clock.advance(endMs - clock.monotonicMs());
    assert.equal(await ended.promise, "upstream_timeout: the request's time is over");
  });
}
