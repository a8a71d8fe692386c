/**
 * An object in place of a stream, of any known server and with a value changed, gives a client what it would get as a
 * whole reply, or neither is an answer (docs/translation-rules.md rules 48 and 53).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isFault } from "../../../../src/convert/exchange.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { isObject, type JsonObject, objectOf, objectsIn } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { dialects } from "../../../e2e/protocol/dialects/goldens.ts";
import { wholeBody } from "../decode/decoding.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../encode/accumulate.ts";
import { PERMITTED } from "../request/translate.ts";
import { clientRequest, convertStream, countingContext, routeOf } from "./rig.ts";
import { behaviorOf, bodyOf, CASE_NAMES } from "./stream-cases.ts";

/** Replies of every server that is known, and of the simulator. */
const REPLIES: Readonly<Record<Protocol, readonly object[]>> = {
  chat: of("chat"),
  messages: of("messages"),
  responses: of("responses"),
};

function of(protocol: Protocol): readonly object[] {
  const simulated = CASE_NAMES.map((name) => behaviorOf(name, protocol)).filter((one) => one && !one.fault);
  const known = dialects().flatMap((one) => (one.protocol === protocol && isObject(one.whole) ? [one.whole] : []));
  return [...known, ...simulated.map((behavior) => wholeBody(protocol, behavior ?? {}))];
}

const VALUES: Readonly<Record<Protocol, readonly unknown[]>> = {
  chat: [
    ...["stop", "tool_calls", "length", "content_filter", "error", "f", "apply_patch", "<think>x</think>y"],
    [{ id: "x", type: "function", function: { name: "f", arguments: "{}" } }],
    [
      { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
      { type: "text", text: "b" },
    ],
    [{ type: "reasoning.text", text: "hm", index: 0, signature: "s" }],
    [{ type: "url_citation", url_citation: { url: "http://a", title: "t", start_index: 0, end_index: 1 } }],
  ],
  messages: [
    ...["end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "text", "thinking", "f", "apply_patch"],
    [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ],
    [
      { type: "thinking", thinking: "t", signature: "s" },
      { type: "tool_use", id: "x", name: "f", input: {} },
    ],
  ],
  responses: [
    ...[
      "completed",
      "incomplete",
      "failed",
      "message",
      "reasoning",
      "function_call",
      "output_text",
      "f",
      "apply_patch",
    ],
    { reason: "max_output_tokens" },
    [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "x", annotations: [] }] }],
  ],
};
const ANY: readonly unknown[] = [null, true, 0, 1, -1, 1.5, "", " ", "{", '{"a":1}', "\u2028", [], {}, { text: "x" }];

const changes = (protocol: Protocol) =>
  fc.record({
    pick: fc.constantFrom(...REPLIES[protocol]),
    paths: fc.array(fc.tuple(fc.array(fc.nat(9), { maxLength: 7 }), fc.constantFrom(...ANY, ...VALUES[protocol])), {
      maxLength: 3,
    }),
    /** Whether freeform tools are functions for the server. */
    customTools: fc.boolean(),
    inText: fc.constantFrom("none", "tags", "unopened"),
  });
type Changes = ReturnType<typeof changes> extends fc.Arbitrary<infer T> ? T : never;

function changed(root: unknown, [step, ...steps]: readonly number[], value: unknown): unknown {
  if (typeof root !== "object" || root === null || step === undefined) return value;
  const keys = Object.keys(root);
  const key = keys[step % Math.max(1, keys.length)];
  if (key === undefined) return value;
  const copy: Record<string, unknown> = Array.isArray(root) ? ([...root] as never) : { ...root };
  copy[key] = changed(copy[key], steps, value);
  return copy;
}

function bodyFor({ pick, paths }: Pick<Changes, "pick" | "paths">): JsonObject | undefined {
  const value = paths.reduce<unknown>((body, [path, other]) => changed(body, path, other), pick);
  const body = objectOf(JSON.parse(JSON.stringify(value)));
  // A choice of a stream is known by its index, one of a whole reply by its place.
  for (const [index, choice] of objectsIn(body?.choices).entries()) Object.assign(choice, { index });
  return body;
}

function exchangeOf(client: Protocol, upstream: Protocol, stream: boolean, { customTools, inText }: Changes) {
  const { stream_options, ...body } = bodyOf(client);
  const request = clientRequest(client, { ...body, stream, ...(stream && { stream_options }) });
  const route = routeOf(upstream, { customTools, thinkingInText: upstream === "chat" ? inText : "none" });
  const exchange = openExchange(request, route, PERMITTED, countingContext());
  assert.ok(!isRefusal(exchange));
  return exchange;
}

const READERS = { chat: accumulateChat, messages: accumulateMessages, responses: accumulateResponses } as const;

/** What a client has of a reply, without ids that were made here and without members that say nothing. */
const MEANING: Readonly<Record<Protocol, (body: JsonObject) => unknown>> = {
  chat(body) {
    const [choice = body] = objectsIn(body.choices);
    const { role: _, ...message } = objectOf(choice.message) ?? {};
    const said = Object.entries(message).filter(([, value]) => value !== null && value !== "");
    return { ...Object.fromEntries(said), end: choice.finish_reason, usage: body.usage };
  },
  // A stream has incomplete arguments as they are, a whole message has no form for them.
  messages: ({ content, stop_reason, stop_sequence, usage }) => ({
    content: objectsIn(content).map((block) =>
      objectOf(block.input)?._raw_arguments ? { ...block, input: {} } : block,
    ),
    end: [stop_reason, stop_sequence],
    usage,
  }),
  responses: ({ output, status, incomplete_details, usage }) => ({ output, end: [status, incomplete_details], usage }),
};

function withoutMadeIds(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replaceAll(/"gw1\.[^"]*"/g, '"sealed"')
    .replaceAll(/"(?:msg|rs|fc|ctc|ig|call|toolu)_0*\d+"/g, '"made"');
  return JSON.parse(text);
}

function assertAlike(client: Protocol, upstream: Protocol, given: Changes): void {
  const body = bodyFor(given);
  if (!body) return;
  const bytes = Buffer.from(JSON.stringify(body));
  const whole = exchangeOf(client, upstream, false, given).whole(bytes);
  const { text, fault } = convertStream(exchangeOf(client, upstream, true, given), [bytes]);
  assert.equal(fault !== undefined, isFault(whole), "both are an answer, or neither is");
  if (isFault(whole)) return;
  const streamed = MEANING[client](READERS[client](text));
  const received = MEANING[client](JSON.parse(Buffer.from(whole.body).toString()));
  assert.deepEqual(withoutMadeIds(streamed), withoutMadeIds(received));
}

for (const upstream of PROTOCOL_NAMES) {
  for (const client of PROTOCOL_NAMES.filter((one) => one !== upstream)) {
    test(`${upstream} to ${client}: one object gives the client the same as a stream and as a whole reply`, () => {
      fc.assert(
        fc.property(changes(upstream), (given) => assertAlike(client, upstream, given)),
        { numRuns: 300, includeErrorInReport: true },
      );
    });
  }
}

test("a freeform tool that the server calls without arguments gets no text", () => {
  const content = [{ type: "tool_use", id: "x", name: "apply_patch", input: {} }];
  const pick = { type: "message", role: "assistant", model: "m", content, stop_reason: "tool_use" };
  const given = { pick, paths: [], customTools: false, inText: "none" } as const;
  assertAlike("responses", "messages", { ...given, paths: [] });
  const whole = exchangeOf("responses", "messages", false, { ...given, paths: [] }).whole(
    Buffer.from(JSON.stringify(pick)),
  );
  assert.ok(!isFault(whole));
  const [item] = JSON.parse(Buffer.from(whole.body).toString()).output;
  assert.deepEqual([item.type, item.input], ["custom_tool_call", ""]);
});
