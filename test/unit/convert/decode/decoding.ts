/**
 * Shared by the decoding tests: streams of the simulator, decoders with the order checker, and replies put together
 * from events.
 */
import assert from "node:assert/strict";
import { decodeReply as decodeChat } from "../../../../src/convert/chat/reply-decode.ts";
import { ChatStreamDecoder } from "../../../../src/convert/chat/stream-decode.ts";
import type { UpstreamFault } from "../../../../src/convert/exchange.ts";
import type { ReplyPlan, ToolRef } from "../../../../src/convert/hub.ts";
import type { HubReply, ReplyEvent, ReplyItem } from "../../../../src/convert/hub-reply.ts";
import { decodeReply as decodeMessages } from "../../../../src/convert/messages/reply-decode.ts";
import { MessagesStreamDecoder } from "../../../../src/convert/messages/stream-decode.ts";
import { ReplyOrder } from "../../../../src/convert/order.ts";
import type { DecodedReply, StreamDecoder } from "../../../../src/convert/reply/decoder.ts";
import type { Ids } from "../../../../src/convert/reply/tool-call.ts";
import { decodeReply as decodeResponses } from "../../../../src/convert/responses/reply-decode.ts";
import { ResponsesStreamDecoder } from "../../../../src/convert/responses/stream-decode.ts";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { chatBody, chatStream } from "../../../../src/simulator/chat.ts";
import { readConversation } from "../../../../src/simulator/conversation.ts";
import { streamSteps } from "../../../../src/simulator/faults.ts";
import { messagesBody, messagesStream } from "../../../../src/simulator/messages.ts";
import { buildReply, type SimulatedReply } from "../../../../src/simulator/reply.ts";
import { responsesBody, responsesStream } from "../../../../src/simulator/responses.ts";
import { type JsonObject, objectOf } from "../../../../src/values/json-object.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type SseEvent, SseReader } from "../../../../src/wire/sse.ts";

export const IDS: Ids = { randomId: (length) => "9".repeat(length) };

/** A plan for a client of another protocol; `tools` are the upstream's names of the client's tools. */
export function planFor(upstream: Protocol, tools: Readonly<Record<string, ToolRef>> = {}): ReplyPlan {
  return {
    client: upstream === "chat" ? "responses" : "chat",
    upstream,
    model: "client-model",
    upstreamModel: "upstream-model",
    account: undefined,
    stream: true,
    tools: new Map(Object.entries(tools)),
    emulateStop: [],
    includeUsage: true,
    deprecatedFunctions: false,
    referable: false,
    reasoning: { visibility: "full", summary: true, envelope: true },
    echo: {},
  };
}

export function decoderFor(plan: ReplyPlan): StreamDecoder {
  if (plan.upstream === "chat") return new ChatStreamDecoder(plan, IDS);
  if (plan.upstream === "messages") return new MessagesStreamDecoder(plan, IDS);
  return new ResponsesStreamDecoder(plan, IDS);
}

const WHOLE = { chat: decodeChat, messages: decodeMessages, responses: decodeResponses };

/** Decodes a whole reply from a body as `JSON.parse` gives it. */
export function decodeWhole(json: unknown, plan: ReplyPlan): DecodedReply | UpstreamFault {
  const copy = objectOf(JSON.parse(JSON.stringify(json)));
  assert.ok(copy);
  return WHOLE[plan.upstream](copy, plan, IDS);
}

/** Decodes a whole reply. A fault fails the test. */
export function wholeOf(json: unknown, plan: ReplyPlan): HubReply {
  const decoded = decodeWhole(json, plan);
  assert.ok("reply" in decoded, "reason" in decoded ? decoded.reason : "");
  return decoded.reply;
}

export interface Decoded {
  readonly events: readonly ReplyEvent[];
  readonly decoder: StreamDecoder;
}

/** Decodes frames and checks the order of all events. */
export function decodeFrames(frames: readonly SseEvent[], plan: ReplyPlan): Decoded {
  const decoder = decoderFor(plan);
  const order = new ReplyOrder();
  const events = [...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()];
  for (const event of events) order.see(event);
  assert.equal(order.ended, true, "the stream was left without an end");
  assert.equal(decoder.fault !== undefined, events.at(-1)?.type === "reply-error");
  return { events, decoder };
}

/** Decodes the bytes of a stream, cut into these chunks. */
export function decodeBytes(chunks: readonly Uint8Array[], plan: ReplyPlan): Decoded {
  const reader = new SseReader();
  return decodeFrames([...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end()], plan);
}

/** Decodes payloads. Objects are written as JSON, and strings are used as they are. */
export function decodePayloads(payloads: readonly unknown[], plan: ReplyPlan): Decoded {
  return decodeFrames(
    payloads.map((payload) => frameOf(typeof payload === "string" ? payload : JSON.stringify(payload))),
    plan,
  );
}

export function frameOf(data: string, event = ""): SseEvent {
  const bytes = Buffer.from(data);
  return { raw: bytes, event, data: bytes };
}

const PATHS = {
  chat: { body: chatBody, stream: chatStream },
  messages: { body: messagesBody, stream: messagesStream },
  responses: { body: responsesBody, stream: responsesStream },
};

/** The simulator's reply for a behavior. */
export function simulated(protocol: Protocol, behavior: Behavior, request: JsonObject = {}): SimulatedReply {
  const ask = { role: "user", content: "hi" };
  const body = {
    model: "upstream-model",
    stream: true,
    ...(protocol === "responses" ? { input: [ask] } : { messages: [ask] }),
    ...(protocol === "chat" ? { stream_options: { include_usage: true } } : {}),
    ...request,
  };
  const conversation = readConversation(protocol, body);
  return buildReply({ protocol, behavior, conversation, request: body, seed: "seed", bodyBytes: 100 });
}

/** The bytes of the simulator's stream. */
export function streamBytes(protocol: Protocol, behavior: Behavior, request: JsonObject = {}): Buffer {
  const steps = streamSteps(PATHS[protocol].stream(simulated(protocol, behavior, request)), behavior);
  return Buffer.concat(steps.map((step) => (step.kind === "bytes" ? step.bytes : Buffer.alloc(0))));
}

/** The simulator's whole reply. */
export function wholeBody(protocol: Protocol, behavior: Behavior, request: JsonObject = {}): object {
  return PATHS[protocol].body(simulated(protocol, behavior, request));
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Puts a stream's blocks together in the order of their starts. The result is what the whole reply would have been
 * (docs/translation-rules.md rule 53).
 */
export function gather(events: readonly ReplyEvent[]): Pick<HubReply, "items" | "stop" | "usage"> {
  const items = new Map<string, Mutable<ReplyItem>>();
  let rest: Partial<Pick<HubReply, "stop" | "usage">> = {};
  for (const event of events) {
    if (event.type === "usage-update") rest = { ...rest, usage: event.usage };
    if (event.type === "reply-stop") rest = { ...rest, stop: event.stop };
    if ("key" in event) gatherBlock(items, event);
  }
  assert.ok(rest.stop, "no reply-stop");
  return { items: [...items.values()], stop: rest.stop, usage: rest.usage };
}

function gatherBlock(items: Map<string, Mutable<ReplyItem>>, event: Extract<ReplyEvent, { key: string }>): void {
  const { key } = event;
  const item = items.get(key);
  switch (event.type) {
    case "text-start":
      items.set(key, {
        type: "text",
        text: "",
        startsMessage: event.startsMessage,
        citations: [],
        logprobs: undefined,
      });
      return;
    case "refusal-start":
      items.set(key, { type: "refusal", text: "" });
      return;
    case "reasoning-start":
      items.set(key, { type: "reasoning", text: "", opaque: undefined, native: undefined, redacted: event.redacted });
      return;
    case "tool-start":
      items.set(key, { type: "tool-call", id: event.id, tool: event.tool, input: "" });
      return;
    case "image":
      items.set(key, { type: "image", url: event.url });
      return;
    case "reasoning-end":
      assert.ok(item?.type === "reasoning");
      item.opaque = event.opaque;
      item.native = event.native;
      return;
    case "tool-delta":
      assert.ok(item?.type === "tool-call");
      item.input += event.input;
      return;
    case "tool-end":
      assert.ok(item?.type === "tool-call");
      assert.ok(item.input === "" || item.input === event.input);
      item.input = event.input;
      return;
    case "text-citation":
      assert.ok(item?.type === "text");
      item.citations = [...item.citations, event.citation];
      return;
    case "text-delta":
      assert.ok(item?.type === "text");
      if (event.logprobs) item.logprobs = [...(item.logprobs ?? []), ...event.logprobs];
      item.text += event.text;
      return;
    case "refusal-delta":
    case "reasoning-delta":
      assert.ok(item && item.type !== "tool-call" && item.type !== "image");
      item.text += event.text;
      return;
    default:
      return;
  }
}

/** The types of the events, with consecutive deltas as one. */
export function outline(events: readonly ReplyEvent[]): readonly string[] {
  const types = events
    .map((event) => event.type)
    .filter((type) => type !== "usage-update" && type !== "reply-stopping");
  return types.filter((type, i) => !(type.endsWith("-delta") && types[i - 1] === type));
}
