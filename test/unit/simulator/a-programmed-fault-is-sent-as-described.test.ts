import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test from "node:test";
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import type { Fault, Simulator } from "../../../src/simulator/server.ts";
import {
  anthropicOf,
  openaiOf,
  PROTOCOL_NAMES,
  type ProtocolName,
  post,
  requestBody,
  withSimulator,
} from "./clients.ts";

const EVENTS = /^data: /gm;

function streamed(simulator: Simulator, protocol: ProtocolName, fault: Fault): Promise<Response> {
  simulator.program({ text: "a text of several deltas, whatever they are", fault });
  return post(simulator, protocol, { stream: true });
}

/** Everything that arrives until the body breaks off or ends. */
async function readUntilBroken(response: Response): Promise<{ text: string; broken: boolean }> {
  assert.ok(response.body);
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of response.body) text += decoder.decode(piece, { stream: true });
    return { text, broken: false };
  } catch {
    return { text, broken: true };
  }
}

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: an error status has the protocol's body, retry-after and other headers`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ fault: { status: 429, retryAfter: 7, headers: { "x-canary": "1" }, message: "slow down" } });
      const response = await post(simulator, protocol);
      assert.equal(response.status, 429);
      assert.equal(response.headers.get("retry-after"), "7");
      assert.equal(response.headers.get("x-canary"), "1");
      const body = (await response.json()) as { type?: string; error: { type: string; message: string } };
      assert.deepEqual([body.error.type, body.error.message], ["rate_limit_error", "slow down"]);
      assert.equal(body.type, protocol === "messages" ? "error" : undefined);
      assert.equal((await post(simulator, protocol)).status, 200);
    }));

  test(`${protocol}: a stream is reset, ended or stalled after the given number of events`, () =>
    withSimulator(async (simulator) => {
      const reset = await readUntilBroken(await streamed(simulator, protocol, { resetAfterEvents: 3 }));
      assert.deepEqual([reset.broken, reset.text.match(EVENTS)?.length], [true, 3]);
      const ended = await readUntilBroken(await streamed(simulator, protocol, { endAfterEvents: 2 }));
      assert.deepEqual([ended.broken, ended.text.match(EVENTS)?.length], [false, 2]);
      const stalled = await streamed(simulator, protocol, { stallAfterEvents: 1 });
      const reader = stalled.body?.getReader();
      assert.match(new TextDecoder().decode((await reader?.read())?.value), /^(event: |data: )/);
      await reader?.cancel();
      assert.equal(await simulator.requests[0]?.finished, "broken");
      assert.equal(await simulator.requests[1]?.finished, "complete");
      assert.equal(await simulator.requests[2]?.finished, "aborted");
      assert.equal(simulator.requests[2]?.aborted, true);
    }));

  test(`${protocol}: the terminal event can be missing`, () =>
    withSimulator(async (simulator) => {
      const terminal = /\[DONE\]|event: message_stop|event: response\.completed/;
      assert.match(await (await streamed(simulator, protocol, {})).text(), terminal);
      assert.doesNotMatch(await (await streamed(simulator, protocol, { noTerminal: true })).text(), terminal);
    }));

  test(`${protocol}: garbage, empty events and a huge event are sent at the given position`, () =>
    withSimulator(async (simulator) => {
      const garbage = Buffer.from(await (await streamed(simulator, protocol, { garbageAfterEvents: 2 })).arrayBuffer());
      assert.ok(garbage.subarray(-6).includes(0xff));
      const own = await streamed(simulator, protocol, { garbageAfterEvents: { n: 1, text: "data: {oops\n\n" } });
      assert.match(await own.text(), /data: \{oops\n\n$/);
      const empty = await (await streamed(simulator, protocol, { emptyEvents: 1000 })).text();
      assert.equal(empty.match(/^data:$/gm)?.length, 1000);
      const huge = await (await streamed(simulator, protocol, { hugeEvent: 5_000_000 })).text();
      assert.ok(huge.split("\n").some((line) => line.length > 5_000_000));
      simulator.program({ fault: { hugeEvent: 5_000_000 } });
      assert.ok((await (await post(simulator, protocol)).text()).length > 5_000_000);
    }));

  test(`${protocol}: a whole reply is cut in half`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ fault: { resetAfterEvents: 1 } });
      const reset = await readUntilBroken(await post(simulator, protocol));
      assert.ok(reset.broken && reset.text.length > 10);
      simulator.program({ fault: { endAfterEvents: 1 } });
      const ended = await readUntilBroken(await post(simulator, protocol));
      assert.ok(!ended.broken);
      assert.throws(() => JSON.parse(ended.text));
    }));

  test(`${protocol}: HTML, an error in a 200 and a wrong content type are sent`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ fault: { html: true } });
      const html = await post(simulator, protocol);
      assert.deepEqual([html.status, html.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
      simulator.program({ fault: { jsonErrorIn200: true } });
      const error = await post(simulator, protocol, { stream: true });
      assert.equal(error.status, 200);
      assert.ok("error" in ((await error.json()) as object));
      const wrong = await streamed(simulator, protocol, {
        wrongContentType: true,
        extraHeaders: { "x-a": ["1", "2"] },
      });
      assert.equal(wrong.headers.get("content-type"), "application/octet-stream");
      assert.equal(wrong.headers.get("x-a"), "1, 2");
      await wrong.body?.cancel();
    }));

  test(`${protocol}: a connection is reset or stalled before the headers`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ fault: { resetBeforeHeaders: true } });
      await assert.rejects(post(simulator, protocol));
      simulator.program({ fault: { stallBeforeHeaders: true } });
      const leave = new AbortController();
      const waiting = fetch(`${simulator.url}/${protocol === "chat" ? "chat/completions" : protocol}`, {
        method: "POST",
        body: JSON.stringify(requestBody(protocol)),
        signal: leave.signal,
      });
      await simulator.waitFor(2);
      leave.abort();
      await assert.rejects(waiting);
      assert.equal(await simulator.requests[1]?.finished, "aborted");
    }));

  test(`${protocol}: raw bytes are sent instead of a response`, () =>
    withSimulator(async (simulator) => {
      const raw = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\nsmuggled";
      simulator.program({ fault: { rawResponse: Buffer.from(raw).toString("base64") } });
      const body = JSON.stringify(requestBody(protocol));
      const path = protocol === "chat" ? "chat/completions" : protocol;
      const socket = connect(simulator.port, "127.0.0.1");
      socket.write(`POST /v1/${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      let seen = "";
      socket.on("data", (piece: Buffer) => {
        seen += piece.toString();
      });
      await once(socket, "end");
      socket.destroy();
      assert.equal(seen, raw);
    }));
}

test("the protocol's own error event makes the SDKs throw", () =>
  withSimulator(async (simulator) => {
    const fault = { errorEventAfter: { n: 3, message: "burst pipe" } };
    const user = [{ role: "user" as const, content: "hi" }];
    simulator.program({ fault }, { times: 3 });
    const openai = openaiOf(simulator);
    await assert.rejects(
      openai.chat.completions.stream({ model: "m", messages: user }).finalChatCompletion(),
      /burst pipe/,
    );
    const message = anthropicOf(simulator).messages.stream({ model: "m", max_tokens: 9, messages: user });
    await assert.rejects(message.finalMessage(), /overloaded_error.*burst pipe/);
    await assert.rejects(openai.responses.stream({ model: "m", input: "hi" }).finalResponse(), /burst pipe/);
    simulator.program({ fault: { errorEventAfter: { n: 4, code: "rate_limit_exceeded", failed: true } } });
    const failed = await openai.responses.stream({ model: "m", input: "hi" }).finalResponse();
    assert.deepEqual([failed.status, failed.error?.code], ["failed", "rate_limit_exceeded"]);
  }));

test("bodies are compressed even if the client did not ask for it", () =>
  withSimulator(async (simulator) => {
    const decoders = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync, zstd: zstdDecompressSync };
    for (const [name, decode] of Object.entries(decoders)) {
      for (const stream of [false, true]) {
        simulator.program({ text: "squeezed", fault: { compress: name as "gzip" } });
        const bytes = await rawBody(simulator, stream);
        assert.match(decode(bytes).toString(), /squeezed/, name);
      }
    }
  }));

test("informational responses come before the final one", () =>
  withSimulator(async (simulator) => {
    simulator.program({ fault: { informational: [100, 102, 103] } });
    const head = (await rawAnswer(simulator, false)).toString("latin1");
    assert.match(head, /^HTTP\/1\.1 100 [\s\S]*HTTP\/1\.1 102 [\s\S]*HTTP\/1\.1 103 [\s\S]*HTTP\/1\.1 200 /);
  }));

test("a fault with `times` stops after that many attempts of a request", () =>
  withSimulator(async (simulator) => {
    const content = 'simulate: {"text":"at last", "fault":{"status":503, "times":2}}';
    const statuses: number[] = [];
    for (const _ of [1, 2, 3]) {
      const response = await post(simulator, "chat", { messages: [{ role: "user", content }] });
      statuses.push(response.status);
      await response.body?.cancel();
    }
    assert.deepEqual(statuses, [503, 503, 200]);
  }));

/** The bytes of the response on the wire. The connection is closed after it. */
async function rawAnswer(simulator: Simulator, stream: boolean): Promise<Buffer> {
  const body = JSON.stringify(requestBody("chat", { stream }));
  const socket = connect(simulator.port, "127.0.0.1");
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}`;
  socket.write(`${head}\r\n\r\n${body}`);
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** The body as it was sent, without its chunk framing. */
async function rawBody(simulator: Simulator, stream: boolean): Promise<Buffer> {
  const answer = await rawAnswer(simulator, stream);
  let at = answer.indexOf("\r\n\r\n") + 4;
  const pieces: Buffer[] = [];
  for (;;) {
    const lineEnd = answer.indexOf("\r\n", at);
    const size = Number.parseInt(answer.subarray(at, lineEnd).toString(), 16);
    if (!size) return Buffer.concat(pieces);
    pieces.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
