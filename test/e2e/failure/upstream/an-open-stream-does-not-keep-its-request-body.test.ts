/**
 * ARCHITECTURE.md promise 13: the memory of a running stream does not depend on the size of its request. The body is
 * needed to try one upstream after another; once an answer has begun, it is released, for each pair of protocols.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { rawUpstream, requestBytes, SSE_HEAD, withUpstreams } from "./rig.ts";

const STREAMS = 8;
const PROMPT_BYTES = 400_000;
/**
 * Allows for both ends of a stream, the gateway between them in the same process, and code compiled meanwhile; a body
 * is larger.
 */
const BYTES_PER_STREAM_MAX = 250_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Garbage that is freed by another thread, or one turn of the loop later, is measured again. */
const LOOKS_MAX = 50;

type Used = () => number;
const allBytes: Used = () => process.memoryUsage().heapUsed + process.memoryUsage().external;
const bufferBytes: Used = () => process.memoryUsage().arrayBuffers;

/** The memory in use, as soon as it is at most `most`, or after garbage collection no longer reduces it. */
async function usedBytes(used: Used, most = 0): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let looks = 0; looks < (most === 0 ? 5 : LOOKS_MAX) && least > most; looks++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
    least = Math.min(least, used());
  }
  return least;
}

const message = { id: "m", type: "message", role: "assistant", model: "m", content: [], stop_reason: null };
const item = { type: "message", id: "i", role: "assistant", status: "in_progress", content: [] };
const part = { type: "output_text", text: "", annotations: [] };
const place = { item_id: "i", output_index: 0, content_index: 0 };

/** How each protocol's upstream begins a stream: up to its first text. */
const BEGINNINGS: Readonly<Record<Protocol, readonly object[]>> = {
  chat: [
    {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta: { content: "hi" } }],
    },
  ],
  messages: [
    { type: "message_start", message: { ...message, usage: { input_tokens: 7, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } },
  ],
  responses: [
    {
      type: "response.created",
      response: { id: "r", object: "response", model: "m", status: "in_progress", output: [] },
    },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.content_part.added", ...place, part },
    { type: "response.output_text.delta", ...place, delta: "hi" },
  ],
};

function framesOf(protocol: Protocol): string {
  return BEGINNINGS[protocol]
    .map((event) => {
      const { type } = event as { type?: string };
      return `${type && protocol !== "chat" ? `event: ${type}\n` : ""}data: ${JSON.stringify(event)}\n\n`;
    })
    .join("");
}

const upstreams = await Promise.all(
  PROTOCOL_LIST.map((protocol) =>
    rawUpstream((socket) => socket.write(`${SSE_HEAD}connection: close\r\n\r\n${framesOf(protocol)}`)),
  ),
);
let here: GatewayHere;
let account: TestAccount;

before(async () => {
  const urls = PROTOCOL_LIST.map((protocol, at) => [protocol, { url: upstreams[at]?.url ?? "" }]);
  here = await startGatewayHere({ config: withUpstreams(Object.fromEntries(urls)) });
  account = await here.account({ usd: "1000" });
});

after(async () => {
  await here.close();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

/** Streams that have begun, and will not end. */
async function begun(
  client: Protocol,
  upstream: Protocol,
  streams = STREAMS,
  bytes = PROMPT_BYTES,
): Promise<RawSocket[]> {
  const clients: RawSocket[] = [];
  for (let i = 0; i < streams; i++) {
    const content = `${i % 10}`.repeat(bytes);
    const conversation = client === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
    const socket = new RawSocket({ port: here.port });
    // A model of the rig is called over the protocol that its upstream speaks.
    socket.send(requestBytes(client, account.key, { model: `${upstream}-${upstream}`, stream: true, ...conversation }));
    await socket.until((text) => text.includes('"hi"') || text.includes("error"));
    assert.match(socket.text, /"hi"/);
    clients.push(socket);
  }
  return clients;
}

for (const client of PROTOCOL_LIST) {
  for (const upstream of PROTOCOL_LIST) {
    test(`${client} over ${upstream}: an open stream does not keep the body of its request`, async () => {
      // What is created only once exists before the measurement.
      const first = await begun(client, upstream);
      const before = await usedBytes(allBytes);
      const clients = await begun(client, upstream);
      const held = (await usedBytes(allBytes, before + STREAMS * BYTES_PER_STREAM_MAX)) - before;
      assert.ok(held <= STREAMS * BYTES_PER_STREAM_MAX, `${Math.round(held / STREAMS)} bytes for each stream`);
      for (const one of [...first, ...clients]) one.close(true);
    });
  }
}

test("a request that is sent in one piece is not kept either", async () => {
  const streams = 30;
  const bytes = 60_000;
  const first = await begun("chat", "chat", streams, bytes);
  const before = await usedBytes(bufferBytes);
  const clients = await begun("chat", "chat", streams, bytes);
  const most = (streams * bytes) / 2;
  const held = (await usedBytes(bufferBytes, before + most)) - before;
  assert.ok(held <= most, `${Math.round(held / streams)} bytes for each stream`);
  for (const one of [...first, ...clients]) one.close(true);
});
