/**
 * docs/failure-model.md rows C4, C5, C7 and 65, invariants 26 and 27: floods, decompression bombs and garbage end the
 * stream properly and cause no long turn of the event loop.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test, { after, before } from "node:test";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { Turns } from "../../../rig/turns.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { chargeOf, endOf, rawUpstream, SSE_HEAD, withUpstreams } from "./rig.ts";

/** Invariant 27. */
const TURN_MS_MAX = 250;

/** Large enough for the longest last frame, which on responses repeats the whole answer. */
const KEPT_BYTES = 1024 * 1024;

let pieces: Iterable<Buffer> = [];
let encoding: string | undefined;
const upstream = await rawUpstream((socket) => {
  const type = encoding === undefined ? "" : `content-encoding: ${encoding}\r\n`;
  socket.write(`${SSE_HEAD}${type}connection: close\r\n\r\n`);
  pour(socket, pieces[Symbol.iterator]());
});
let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: withUpstreams({ flood: { url: upstream.url } }) });
});
after(async () => {
  await here.close();
  await upstream.close();
});

/** Writes as long as the other side reads. */
function pour(socket: Socket, source: Iterator<Buffer>): void {
  for (let next = source.next(); !next.done; next = source.next()) {
    if (socket.destroyed) return;
    if (!socket.write(next.value)) {
      socket.once("drain", () => pour(socket, source));
      return;
    }
  }
  socket.end();
}

const CHUNK_BYTES = 65_536;

function* flood(first: string, unit: string, times: number, last: string): Generator<Buffer> {
  yield Buffer.from(first);
  const perChunk = Math.max(1, Math.floor(CHUNK_BYTES / unit.length));
  const chunk = Buffer.from(unit.repeat(perChunk));
  for (let left = times; left > 0; left -= perChunk) {
    yield left >= perChunk ? chunk : chunk.subarray(0, left * unit.length);
  }
  yield Buffer.from(last);
}

const delta = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const END = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } })}\n\ndata: [DONE]\n\n`;
const FIRST = delta("hello");

/** The floods, and how the client's stream ends. */
const FLOODS: readonly (readonly [string, () => Iterable<Buffer>, "complete" | "failed"])[] = [
  ["a million empty data lines", () => flood(FIRST, "data:\n\n", 1_000_000, END), "complete"],
  ["a million comments", () => flood(FIRST, ": hm\n\n", 1_000_000, END), "complete"],
  ["a million blank lines", () => flood(FIRST, "\n", 1_000_000, END), "complete"],
  ["a million lines that end in CR", () => flood(FIRST, "id: 1\r\r", 1_000_000, END), "complete"],
  ["a hundred thousand deltas of one letter", () => flood(FIRST, delta("x"), 100_000, END), "complete"],
  ["a line of 10 MB", () => flood(`${FIRST}data: "`, "x", 10_000_000, `"\n\n${END}`), "failed"],
  ["an event of a million data lines", () => flood(FIRST, "data: x\n", 1_000_000, `\n${END}`), "failed"],
  ["10 MB without a line end", () => flood(FIRST, "xy", 5_000_000, ""), "failed"],
  ["10 MB of zero bytes", () => flood(FIRST, "\0", 10_000_000, ""), "failed"],
];

for (const protocol of PROTOCOL_LIST) {
  for (const [name, made, end] of FLOODS) {
    test(`${protocol}: ${name} from a chat server: the stream ends properly, and no turn of the event loop is long`, async () => {
      const account = await here.account();
      encoding = undefined;
      pieces = made();
      const turns = new Turns();
      const reply = await ask(here, protocol, account.key, { model: "chat-flood", stream: true });
      assert.equal(reply.status, 200);
      const received = await lastOf(reply);
      const longestMs = turns.stop();
      assert.ok(longestMs < TURN_MS_MAX, `a turn of ${longestMs} ms`);
      assert.equal(endOf(protocol, received), end);
      await assertAtRest(here, account);
      await chargeOf(here, account);
    });
  }
}

const PACK = {
  gzip: (bytes: Buffer) => gzipSync(bytes),
  br: (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  zstd: (bytes: Buffer) => zstdCompressSync(bytes),
} as const;

for (const [name, pack] of Object.entries(PACK)) {
  test(`${name}: a stream that decompresses to one line of 64 MB ends as failed`, async () => {
    const account = await here.account();
    encoding = name;
    pieces = [pack(Buffer.concat([Buffer.from(FIRST), Buffer.from("data: "), Buffer.alloc(64 * 1024 * 1024, 0x78)]))];
    const turns = new Turns();
    const reply = await ask(here, "chat", account.key, { model: "chat-flood", stream: true });
    const received = reply.status === 200 ? await lastOf(reply) : undefined;
    const longestMs = turns.stop();
    if (received === undefined) assert.equal((await errorOf(reply)).cause, "upstream_invalid");
    else assert.equal(endOf("chat", received), "failed");
    assert.ok(longestMs < TURN_MS_MAX, `a turn of ${longestMs} ms`);
    await assertAtRest(here, account);
    await chargeOf(here, account);
  });
}

test("stacked encodings and an unknown encoding are upstream_invalid", async () => {
  const account = await here.account();
  for (const stacked of ["gzip, gzip", "br, gzip", "gzip, identity, br", "compress", "x-unknown", "gzip;q=1"]) {
    encoding = stacked;
    pieces = [gzipSync(gzipSync(Buffer.from(FIRST)))];
    const reply = await ask(here, "chat", account.key, { model: "chat-flood", stream: true });
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "upstream_invalid"], stacked);
  }
  await assertAtRest(here, account);
  assert.equal(await chargeOf(here, account), 0n);
});

/** Reads a stream to its end and keeps its last part, from the beginning of a frame on. */
async function lastOf(reply: Response): Promise<string> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const piece of reply.body as unknown as AsyncIterable<Uint8Array>) {
    kept = Buffer.concat([kept, piece]);
    if (kept.length > 2 * KEPT_BYTES) kept = kept.subarray(-KEPT_BYTES);
  }
  const text = kept.toString("latin1");
  return kept.length < KEPT_BYTES ? text : text.slice(text.indexOf("\n\n") + 2);
}
