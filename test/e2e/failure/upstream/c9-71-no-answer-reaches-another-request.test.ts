/**
 * docs/failure-model.md rows C9 and 71, invariant 19: even if an upstream sends too many bytes, sends them too early or
 * sends them twice, each request gets its own answer.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import test, { after, afterEach, before } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ByteProxy, startByteProxy } from "../../../rig/byte-proxy.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { endOf, JSON_HEAD, rawUpstream, WHOLE, withUpstreams } from "./rig.ts";

const simulator = await startSimulator();
let answer: (socket: Socket, text: string) => void = () => undefined;
const raw = await rawUpstream((socket, text) => answer(socket, text));
let proxy: ByteProxy;
let here: GatewayHere;
before(async () => {
  proxy = await startByteProxy(simulator.port);
  here = await startGatewayHere({ config: withUpstreams({ loud: { url: proxy.url }, raw: { url: raw.url } }) });
});
afterEach(() => proxy.clear());
after(async () => {
  await here.close();
  await proxy.close();
  await raw.close();
  await simulator.close();
});

const POISON_TEXT = "meant for nobody";

function poison(protocol: Protocol): string {
  const body = JSON.stringify(WHOLE[protocol]).replace('"hi"', `"${POISON_TEXT}"`);
  return `${JSON_HEAD}content-length: ${body.length}\r\n\r\n${body}`;
}

/** Requests an answer that contains this word. @returns what came. */
async function askFor(protocol: Protocol, account: TestAccount, word: string, stream: boolean): Promise<string> {
  const prompt = `simulate: {"text":"${word}"}`;
  const conversation = protocol === "responses" ? { input: prompt } : { messages: [{ role: "user", content: prompt }] };
  const reply = await ask(here, protocol, account.key, { model: `${protocol}-loud`, stream, ...conversation });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  if (stream) assert.equal(endOf(protocol, text), "complete");
  return text;
}

const SURPLUS: readonly (readonly [string, (protocol: Protocol) => string])[] = [
  ["a second answer", poison],
  ["loose bytes", () => "loose"],
  ["a blank line and a second answer", (protocol) => `\r\n${poison(protocol)}`],
  ["the beginning of an answer", (protocol) => poison(protocol).slice(0, 60)],
];

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    for (const [name, bytes] of SURPLUS) {
      test(`${protocol}, ${stream ? "streamed" : "whole"}: ${name} after each answer does not reach any client`, async () => {
        const account = await here.account();
        for (let round = 0; round < 10; round++) {
          proxy.spoil({ kind: "surplus", bytes: Buffer.from(bytes(protocol)) });
          const word = `word-${round}-own`;
          const text = await askFor(protocol, account, word, stream);
          assert.ok(text.includes(word) && !text.includes(POISON_TEXT), text);
        }
        const many = await Promise.all(
          Array.from({ length: 10 }, async (_, at) => {
            proxy.spoil({ kind: "surplus", bytes: Buffer.from(bytes(protocol)) });
            return [`word-${at}-many`, await askFor(protocol, account, `word-${at}-many`, stream)] as const;
          }),
        );
        for (const [word, text] of many) assert.ok(text.includes(word) && !text.includes(POISON_TEXT), text);
        await assertAtRest(here, account);
      });
    }
  }

  test(`${protocol}: an answer sent before the request's body was read serves that request only`, async () => {
    const early = `${JSON_HEAD}content-length: ${JSON.stringify(WHOLE[protocol]).length}\r\n\r\n${JSON.stringify(WHOLE[protocol])}`;
    const fast = await rawEarly(early);
    const mine = await startGatewayHere({ config: withUpstreams({ early: { url: fast.url } }) });
    try {
      const owner = await mine.account({ usd: "1000" });
      const prompt = "words ".repeat(2_500_000);
      const long = protocol === "responses" ? { input: prompt } : { messages: [{ role: "user", content: prompt }] };
      for (let round = 0; round < 3; round++) {
        const reply = await ask(mine, protocol, owner.key, { model: `${protocol}-early`, ...long });
        const text = await reply.text();
        assert.ok(reply.status === 200 ? text.includes("hi") : reply.status === 403, `${reply.status} ${text}`);
      }
      assert.equal(fast.connections(), 3, "a connection whose request was not read is not used again");
      await assertAtRest(mine, owner);
    } finally {
      await mine.close();
      await fast.close();
    }
  });

  for (const [name, bytes] of [
    ["two lengths", `${JSON_HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{} `],
    ["a length and chunks", `${JSON_HEAD}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ["a split header", `HTTP/1.1 200 OK\r\nx: a\rHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}`],
    ["a length that is too short", `${JSON_HEAD}content-length: 1\r\n\r\n{}`],
    ["a chunk of a wrong size", `${JSON_HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n`],
    ["an HTTP/0.9 answer", "{}"],
    ["an answer of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ] as const) {
    test(`${protocol}: ${name} is refused, and the next request is served`, async () => {
      const account = await here.account();
      answer = (socket) => socket.end(Buffer.from(bytes, "latin1"));
      const reply = await ask(here, protocol, account.key, { model: `${protocol}-raw` });
      await reply.text();
      assert.equal(reply.status, 403);
      const body = JSON.stringify(WHOLE[protocol]);
      answer = (socket) => socket.write(`${JSON_HEAD}content-length: ${body.length}\r\n\r\n${body}`);
      const next = await ask(here, protocol, account.key, { model: `${protocol}-raw` });
      assert.equal(next.status, 200);
      assert.match(await next.text(), /hi/);
      await assertAtRest(here, account);
    });
  }
}

/** A server that answers at the first byte of a connection, and reads no further. */
async function rawEarly(bytes: string) {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.pause();
      socket.write(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}
