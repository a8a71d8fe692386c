/**
 * Spans of real requests, as a collector's receiver decodes them: request, admission, attempts, first token,
 * settlement.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { attributesOf, type ReceivedSpan, startCollector } from "../../../rig/otel-collector.ts";
import { ask } from "../../protocol/whole/asking.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const FRONT_SPAN = "00f067aa0ba902b7";
const FRONT_REQUEST = "9f86d081884c7d659a2feaa0c55ad015";

function tracedConfig(endpoint: string, more = "") {
  return (places: Parameters<typeof testConfig>[0]) =>
    `${testConfig(places, { trust_proxy: ["127.0.0.1/32"] })}traces: {endpoint: "${endpoint}/v1/traces", sample: 1${more}}\n`;
}

const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const found = spans.filter((span) => span.name === name);
  assert.equal(found.length, 1, `${name} among ${spans.map((span) => span.name)}`);
  return found[0] as ReceivedSpan;
};

function traceparentSent(here: GatewayHere): string | undefined {
  const headers = here.simulator.requests.at(-1)?.headers ?? [];
  const at = headers.findIndex((word, index) => index % 2 === 0 && word.toLowerCase() === "traceparent");
  return at < 0 ? undefined : headers[at + 1];
}

test("a streamed request is one trace: it continues the front's, and each part is a child with its own time", async (t) => {
  const collector = await startCollector();
  t.after(() => collector.stop());
  const here = await startGatewayHere({ config: tracedConfig(collector.endpoint, ", propagate: [up-chat]") });
  const { key } = await here.account();
  here.simulator.program({ text: "some words", usage: { input: 20, output: 7, reasoning: 2, cached: 5 } });
  const traceparent = `00-${TRACE_ID}-${FRONT_SPAN}-00`;
  const headers = { traceparent, "x-request-id": FRONT_REQUEST };
  const reply = await ask(here, "chat", key, { stream: true }, { headers });
  await reply.text();
  const line = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  const sent = traceparentSent(here);
  await here.close();

  const spans = collector.spans();
  assert.deepEqual(spans.map((span) => span.name).sort(), [
    "POST /v1/chat/completions",
    "admit",
    "chat chat-1",
    "first_token",
    "settle",
  ]);
  assert.ok(spans.every((span) => span.traceId === TRACE_ID));
  const request = named(spans, "POST /v1/chat/completions");
  assert.equal(request.parentSpanId, FRONT_SPAN);
  assert.ok(spans.filter((span) => span !== request).every((span) => span.parentSpanId === request.spanId));
  for (const span of spans) {
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), span.name);
    assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(request.startTimeUnixNano), span.name);
    assert.ok(BigInt(span.endTimeUnixNano) <= BigInt(request.endTimeUnixNano), span.name);
  }
  const told = attributesOf(request);
  for (const name of ["request", "status", "cause", "model", "group", "upstream", "stream_end", "counted"])
    assert.deepEqual(told[`tollgate.${name}`], line[name], name);
  assert.equal(told["http.response.status_code"], 200);
  assert.equal(told["tollgate.front_request"], FRONT_REQUEST);
  assert.equal(line.trace, TRACE_ID);
  const attempt = named(spans, "chat chat-1");
  const facts = attributesOf(attempt);
  assert.equal(facts["gen_ai.operation.name"], "chat");
  assert.equal(facts["gen_ai.provider.name"], "openai");
  assert.equal(facts["gen_ai.usage.output_tokens"], 7);
  assert.equal(facts["gen_ai.usage.cache_read.input_tokens"], 5);
  assert.equal(sent, `00-${TRACE_ID}-${attempt.spanId}-01`, "the spans of the upstream are children of the attempt");
});

test("an operator's own headers go upstream beside the trace's", async (t) => {
  const collector = await startCollector();
  t.after(() => collector.stop());
  const config = (places: Parameters<typeof testConfig>[0]) =>
    `${testConfig(places, { groups: { money: { rules: [{ header: { add: { "x-team": "red" } } }] } } })}traces: {endpoint: "${collector.endpoint}/v1/traces", sample: 1, propagate: [up-chat]}\n`;
  const here = await startGatewayHere({ config });
  const { key } = await here.account();
  await (await ask(here, "chat", key)).text();
  const sent = here.simulator.requests.at(-1)?.headers ?? [];
  await here.close();
  assert.equal(sent[sent.indexOf("x-team") + 1], "red");
  assert.ok(sent.includes("traceparent"));
});

test("a failed attempt has its own span, and the request's span says why it failed", async (t) => {
  const collector = await startCollector();
  t.after(() => collector.stop());
  const here = await startGatewayHere({ config: tracedConfig(collector.endpoint) });
  const { key } = await here.account();
  here.simulator.program({ fault: { status: 500 } }, { times: 2 });
  const reply = await ask(here, "messages", key);
  await reply.text();
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.equal(traceparentSent(here), undefined, "trace context is sent only to upstreams configured for it");
  await here.close();

  const spans = collector.spans();
  const attempts = spans.filter((span) => span.name === "chat messages-1");
  assert.ok(attempts.length >= 1);
  for (const attempt of attempts) {
    assert.equal(attempt.status?.code, 2);
    assert.equal(attributesOf(attempt)["error.type"], "upstream_unavailable");
    assert.equal(attributesOf(attempt)["http.response.status_code"], 500);
    assert.equal(attributesOf(attempt)["gen_ai.provider.name"], "anthropic");
  }
  const request = named(spans, "POST /v1/messages");
  assert.equal(request.parentSpanId ?? "", "");
  assert.equal(attributesOf(request)["error.type"], "upstream_unavailable");
});

test("row 74: the front's sampled flag is ignored, and an untraced request creates no span", async (t) => {
  const collector = await startCollector();
  t.after(() => collector.stop());
  const config = tracedConfig(collector.endpoint);
  // A sampling ratio that no random number of this test falls below.
  const here = await startGatewayHere({ config: (places) => config(places).replace("sample: 1", "sample: 1.0e-300") });
  const { key } = await here.account();
  const headers = { traceparent: `00-${TRACE_ID}-${FRONT_SPAN}-01`, baggage: "x=".padEnd(8_000, "y") };
  const reply = await ask(here, "chat", key, {}, { headers });
  await reply.text();
  const line = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.equal(line.trace, undefined);
  const sent = here.simulator.requests.at(-1)?.headers.map((word) => word.toLowerCase()) ?? [];
  assert.ok(!sent.includes("traceparent") && !sent.includes("baggage"));
  await here.close();
  assert.deepEqual(collector.spans(), []);
});

test("an unreachable collector fails no request and does not delay the shutdown", async () => {
  const here = await startGatewayHere({ config: tracedConfig("http://127.0.0.1:9") });
  const { key } = await here.account();
  assert.equal((await ask(here, "chat", key)).status, 200);
  await here.close();
});
