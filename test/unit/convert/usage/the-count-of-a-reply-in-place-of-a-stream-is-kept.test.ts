/** docs/translation-rules.md rule 53: a server that answers a stream with one object has counted it, and that is billed. */
import assert from "node:assert/strict";
import test from "node:test";
import type { ClientFrames, StreamConverter } from "../../../../src/convert/exchange.ts";
import { StreamOrWhole } from "../../../../src/convert/whole-as-stream.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";

/** The stream that a protocol's own server would have made of this reply. */
function streamOf(protocol: Protocol, reply: object): string {
  const pieces: string[] = [];
  const none: readonly ClientFrames[] = [];
  const taking = {
    push(chunk: Uint8Array) {
      pieces.push(Buffer.from(chunk).toString());
      return none;
    },
    end: () => none,
  } as Partial<StreamConverter> as StreamConverter;
  const converter = new StreamOrWhole(protocol, taking);
  converter.push(Buffer.from(JSON.stringify(reply)));
  converter.end();
  assert.equal(converter.fault, undefined);
  return pieces.join("");
}

const REPLIES = {
  chat: {
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 11, completion_tokens: 7 },
  },
  messages: {
    type: "message",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 11, output_tokens: 7 },
  },
  responses: {
    object: "response",
    status: "completed",
    output: [],
    usage: { input_tokens: 11, output_tokens: 7 },
  },
} as const satisfies Record<Protocol, object>;

for (const [protocol, reply] of Object.entries(REPLIES)) {
  test(`${protocol}: the stream made of a whole reply has its usage`, () => {
    const stream = streamOf(protocol as Protocol, reply);
    assert.ok(stream.includes(JSON.stringify(reply.usage)), stream);
  });
}
