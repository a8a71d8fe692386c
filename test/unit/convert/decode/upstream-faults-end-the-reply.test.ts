/**
 * An upstream's errors become faults, never answers (docs/translation-rules.md rules 46, 49 and 50;
 * docs/failure-model.md rows C4 and C6).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { decodeBytes, decodePayloads, decodeWhole, outline, planFor, streamBytes } from "./decoding.ts";

const BAD_BODIES: Readonly<Record<Protocol, readonly object[]>> = {
  chat: [{}, { choices: [] }, { choices: null }, { choices: [null] }, { choices: [{ index: 0 }] }],
  messages: [{}, { type: "message" }, { type: "message", content: "text" }],
  responses: [{}, { output: null }, { status: "in_progress", output: [] }, { status: "queued", output: [] }],
};

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: a body of another shape is invalid`, () => {
    for (const body of BAD_BODIES[protocol]) {
      const decoded = decodeWhole(body, planFor(protocol));
      assert.equal("cause" in decoded && decoded.cause, "upstream_invalid", JSON.stringify(body));
    }
  });

  test(`${protocol}: an error body inside a 200 is a failure of the upstream`, () => {
    const body = { type: "error", error: { type: "overloaded_error", message: "sk-secret" } };
    const decoded = decodeWhole(body, planFor(protocol));
    assert.ok("cause" in decoded);
    assert.equal(decoded.cause, "upstream_unavailable");
    assert.doesNotMatch(decoded.reason, /secret/);
  });

  test(`${protocol}: an error event ends the stream, whatever follows`, () => {
    const fault = { errorEventAfter: { n: 3, type: "rate_limit_error", code: "rate_limit_exceeded", message: "slow" } };
    const bytes = streamBytes(protocol, { text: "some text", fault });
    const { events, decoder } = decodeBytes([bytes, streamBytes(protocol, {})], planFor(protocol));
    assert.deepEqual(events.at(-1), { type: "reply-error", code: "rate_limit_exceeded", message: "slow" });
    assert.equal(decoder.fault?.cause, "upstream_rate_limit");
  });

  test(`${protocol}: an error as the first event gives a failure without a start`, () => {
    const bytes = streamBytes(protocol, { fault: { errorEventAfter: { n: 0 } } });
    assert.deepEqual(outline(decodeBytes([bytes], planFor(protocol)).events), ["reply-error"]);
  });

  test(`${protocol}: garbage between events is a fault`, () => {
    const bytes = streamBytes(protocol, { text: "some text", fault: { garbageAfterEvents: 3 } });
    const { events, decoder } = decodeBytes([bytes], planFor(protocol));
    assert.equal(events.at(-1)?.type, "reply-error");
    assert.equal(decoder.fault?.cause, "upstream_invalid");
  });

  test(`${protocol}: a stream cut after any event ends properly only if it had its stop reason`, () => {
    const behavior = { thinking: "hm", text: "text", tools: [{ name: "f", arguments: { a: 1 } }] };
    const frames = streamBytes(protocol, behavior)
      .toString()
      .split(/(?<=\n\n)/);
    const marker = { chat: '"finish_reason":"tool_calls"', messages: "message_delta", responses: "response.completed" };
    for (let kept = 0; kept < frames.length; kept++) {
      const text = frames.slice(0, kept).join("");
      const { decoder } = decodeBytes([Buffer.from(text)], planFor(protocol));
      const isWhole = text.includes(marker[protocol]);
      assert.equal(decoder.fault?.code, isWhole ? undefined : "upstream_stream_truncated", `${kept} frames`);
      assert.equal(decoder.counts().final && decoder.fault !== undefined, false);
    }
  });

  test(`${protocol}: without usage the count is not final, and the output is measured`, () => {
    const { decoder } = decodeBytes([streamBytes(protocol, { text: "grüße", noUsage: true })], planFor(protocol));
    assert.deepEqual(decoder.counts(), {
      usage: undefined,
      final: false,
      produced: { bytes: 7, tokens: 2, deltas: 1 },
    });
  });
}

test("chat: a finish reason that reports a failure is a fault", () => {
  const choices = [
    { delta: { content: "x" }, message: { content: "x" }, finish_reason: "insufficient_system_resource" },
  ];
  const { decoder } = decodePayloads([{ choices }, "[DONE]"], planFor("chat"));
  assert.equal(decoder.fault?.cause, "upstream_unavailable");
  assert.equal("cause" in decodeWhole({ choices }, planFor("chat")), true);
});

test("chat: the usage of a failed reply is read after its finish reason", () => {
  const failed = { choices: [{ delta: { content: "x" }, finish_reason: "error" }] };
  const usage = { prompt_tokens: 30, completion_tokens: 500, total_tokens: 530 };
  for (const end of [["[DONE]"], []]) {
    const payloads = [failed, { choices: [], usage }, ...end];
    const { decoder, events } = decodePayloads(payloads, planFor("chat"));
    assert.equal(decoder.fault?.cause, "upstream_unavailable");
    assert.equal(events.at(-1)?.type, "reply-error");
    assert.equal(decoder.counts().usage?.output, 500);
  }
});

test("responses: a failure without a count keeps the count before it", () => {
  const usage = { input_tokens: 30, output_tokens: 500, total_tokens: 530 };
  const error = { code: "server_error", message: "x" };
  for (const failure of [
    { type: "response.failed", response: { id: "r", status: "failed", error } },
    { type: "error", ...error },
  ]) {
    const running = { type: "response.in_progress", response: { id: "r", usage } };
    const { decoder } = decodePayloads([running, failure], planFor("responses"));
    assert.equal(decoder.fault?.cause, "upstream_unavailable");
    const counts = decoder.counts();
    assert.deepEqual([counts.usage?.input, counts.usage?.output, counts.final], [30, 500, false], failure.type);
  }
});

test("responses: a last event with a status of failure is a fault, whatever its type", () => {
  for (const status of ["failed", "cancelled"]) {
    const response = { id: "r", status, output: [], usage: { input_tokens: 30, output_tokens: 5, total_tokens: 35 } };
    const { decoder, events } = decodePayloads([{ type: "response.completed", response }], planFor("responses"));
    assert.equal(events.at(-1)?.type, "reply-error", status);
    assert.deepEqual([decoder.counts().usage?.output, decoder.counts().final], [5, true]);
  }
});

test("chat: the count of an error is used", () => {
  const usage = { prompt_tokens: 30, completion_tokens: 500, total_tokens: 530 };
  const said = { choices: [{ delta: { content: "x" } }] };
  const { decoder } = decodePayloads([said, { error: { message: "x" }, usage }], planFor("chat"));
  assert.deepEqual([decoder.counts().usage?.output, decoder.counts().final], [500, true]);
});

test("chat: the count of a stream without a finish reason is final", () => {
  const usage = { prompt_tokens: 30, completion_tokens: 500, total_tokens: 530 };
  const said = { choices: [{ delta: { content: "x" } }] };
  const { decoder } = decodePayloads([said, { choices: [], usage }, "[DONE]"], planFor("chat"));
  assert.deepEqual([decoder.counts().usage?.output, decoder.counts().final], [500, true]);
});

test("chat: [DONE] before anything else is a fault", () => {
  assert.equal(decodePayloads(["[DONE]"], planFor("chat")).decoder.fault?.cause, "upstream_invalid");
});

test("messages, responses: content before the opening event is a fault", () => {
  const early = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } };
  assert.equal(decodePayloads([early], planFor("messages")).decoder.fault?.cause, "upstream_invalid");
  const delta = { type: "response.output_text.delta", item_id: "m", delta: "x" };
  assert.equal(decodePayloads([delta], planFor("responses")).decoder.fault?.cause, "upstream_invalid");
});

test("responses: the codes of a failed response keep their meaning", () => {
  const causeOf = (code: string) => {
    const decoded = decodeWhole({ status: "failed", error: { code } }, planFor("responses"));
    return "cause" in decoded ? decoded.cause : undefined;
  };
  assert.equal(causeOf("server_error"), "upstream_unavailable");
  assert.equal(causeOf("rate_limit_exceeded"), "upstream_rate_limit");
  assert.equal(causeOf("invalid_prompt"), "upstream_rejected");
  assert.equal(causeOf("image_too_large"), "upstream_rejected");
  assert.equal(causeOf("failed_to_download_image"), "upstream_rejected");
  assert.equal(causeOf("slow_down"), "upstream_unavailable");
  assert.equal("cause" in decodeWhole({ status: "cancelled", output: [] }, planFor("responses")), true);
});
