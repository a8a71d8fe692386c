/**
 * docs/failure-model.md rows C8, 63 and 69: interim responses are skipped, and anything that is neither an answer nor
 * an error is never passed on.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { JSON_HEAD, rawUpstream, WHOLE, withUpstreams } from "./rig.ts";

let answer: (socket: Socket, connection: number) => void;
const upstream = await rawUpstream((socket, _text, connection) => answer(socket, connection));
let visits = 0;
const target = await rawUpstream(() => {
  visits += 1;
});
let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: withUpstreams({ raw: { url: upstream.url } }) });
});
after(async () => {
  await here.close();
  await upstream.close();
  await target.close();
});

function good(protocol: Protocol): string {
  const body = JSON.stringify(WHOLE[protocol]);
  return `${JSON_HEAD}content-length: ${body.length}\r\n\r\n${body}`;
}

const INTERIM: readonly (readonly [string, string])[] = [
  ["102", "HTTP/1.1 102 Processing\r\n\r\n"],
  ["103 with links", "HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n"],
  ["a thousand 102 responses", "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000)],
];

for (const protocol of PROTOCOL_LIST) {
  for (const [name, bytes] of INTERIM) {
    test(`${protocol}: ${name} before the answer is skipped`, async () => {
      const account = await here.account();
      answer = (socket) => socket.write(bytes + good(protocol));
      const reply = await ask(here, protocol, account.key, { model: `${protocol}-raw` });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("link"), null);
      await reply.text();
      await assertAtRest(here, account);
    });
  }

  test(`${protocol}: an unrequested 100 Continue is upstream_invalid, and the next request uses a new connection`, async () => {
    const account = await here.account();
    const used: number[] = [];
    answer = (socket, connection) => {
      used.push(connection);
      socket.write((used.length === 1 ? "HTTP/1.1 100 Continue\r\n\r\n" : "") + good(protocol));
    };
    const reply = await ask(here, protocol, account.key, { model: `${protocol}-raw` });
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "upstream_invalid"]);
    const line = await here.requestEnd(reply.headers.get("x-request-id") as string);
    assert.match(String(line.attempt_reasons), /100 Continue/);
    const next = await ask(here, protocol, account.key, { model: `${protocol}-raw` });
    assert.equal(next.status, 200);
    await next.text();
    assert.equal(new Set(used).size, 2, "the connection of the 100 is not used again");
    await assertAtRest(here, account);
  });

  for (const [status, more] of [
    ["201 Created", ""],
    ["202 Accepted", ""],
    ["204 No Content", ""],
    ["205 Reset Content", ""],
    ["206 Partial Content", "content-range: bytes 0-1/9\r\n"],
    ["300 Multiple Choices", "location: TARGET\r\n"],
    ["301 Moved Permanently", "location: TARGET\r\n"],
    ["302 Found", "location: TARGET\r\n"],
    ["303 See Other", "location: TARGET\r\n"],
    ["304 Not Modified", "etag: x\r\n"],
    ["307 Temporary Redirect", "location: TARGET\r\n"],
    ["308 Permanent Redirect", "location: TARGET\r\n"],
    ["399 Odd", "refresh: 0; url=TARGET\r\n"],
  ] as const) {
    test(`${protocol}: ${status} counts as an upstream failure, and is not followed`, async () => {
      const account = await here.account();
      const head = `HTTP/1.1 ${status}\r\n${more.replace("TARGET", target.url)}content-type: application/json\r\n`;
      answer = (socket) => socket.write(`${head}content-length: 0\r\n\r\n`);
      for (const stream of [false, true]) {
        const reply = await ask(here, protocol, account.key, { model: `${protocol}-raw`, stream });
        assert.equal(reply.status, 403);
        assert.match((await errorOf(reply)).cause, /^upstream_(unavailable|invalid)$/);
        for (const header of ["location", "refresh", "etag", "content-range"])
          assert.equal(reply.headers.get(header), null);
      }
      await assertAtRest(here, account);
      const charged = (await usageLines(here, account)).filter((line) => line.kind === "usage");
      assert.deepEqual(charged, []);
      assert.equal(visits, 0);
    });
  }
}
