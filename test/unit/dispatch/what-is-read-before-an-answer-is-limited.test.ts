/**
 * What is read before a reply counts as an answer has a limit. The same reply from another upstream would cost again,
 * so there is no other attempt.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, httpServer, refusalIn, replying, rig, route, upstream } from "./rig.ts";

const MIB = 1024 * 1024;
/** What one turn of the event loop may add. */
const TURN_BYTES = 128 * 1024;

for (const { what, stream, type, most } of [
  { what: "a stream without anything to accept", stream: true, type: "text/event-stream", most: 4 * MIB },
  { what: "a whole reply", stream: false, type: "application/json", most: 32 * MIB },
]) {
  test(`${what} is read up to ${most / MIB} MiB, and its connection is closed`, async (t) => {
    const closed = Promise.withResolvers<void>();
    const base = await httpServer(t, (_request, response) => {
      response.writeHead(200, { "content-type": type });
      response.once("close", closed.resolve).on("error", () => {});
      const piece = Buffer.alloc(TURN_BYTES / 2, 0x20);
      const more = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on("drain", more);
      more();
    });
    const { dispatcher } = rig(t, [
      upstream("east", base),
      upstream("west", await replying(t, "HTTP/1.1 500 No\r\n\r\n")),
    ]);
    const inspector = { chunk: () => "more" as const, end: () => "accept" as const, whole: () => "accept" as const };
    const routes = [route("east"), route("west", { priority: 1 })];
    const result = await dispatcher.run(ask(routes, { stream, inspector }));
    assert.equal(refusalIn(result).cause, "upstream_invalid");
    assert.equal(result.attempts.length, 1);
    const bytes = result.attempts[0]?.bytesReceived ?? 0;
    assert.ok(bytes > most && bytes <= most + TURN_BYTES, `${bytes} bytes`);
    assert.equal(result.attempts[0]?.askedFor, true, "the client may have caused it");
    await closed.promise;
  });
}
