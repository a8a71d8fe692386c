/** Shared by the encoder tests: plans, random replies, and a reply as the events of a stream. */
import fc from "fast-check";
import * as chat from "../../../../src/convert/chat/reply-encode.ts";
import { ChatStreamEncoder } from "../../../../src/convert/chat/stream-encode.ts";
import type { ConvertContext } from "../../../../src/convert/exchange.ts";
import type { ReplyPlan, ToolKind, ToolRef } from "../../../../src/convert/hub.ts";
import type { HubReply, ReplyEvent, ReplyItem } from "../../../../src/convert/hub-reply.ts";
import * as messages from "../../../../src/convert/messages/reply-encode.ts";
import { MessagesStreamEncoder } from "../../../../src/convert/messages/stream-encode.ts";
import { settledStop } from "../../../../src/convert/reply/facts.ts";
import * as responses from "../../../../src/convert/responses/reply-encode.ts";
import { ResponsesStreamEncoder } from "../../../../src/convert/responses/stream-encode.ts";
import type { StreamEncoder } from "../../../../src/convert/stream-encoder.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { countingContext } from "../translate/rig.ts";

type Json = Record<string, unknown>;

const ENCODERS: Readonly<Record<Protocol, new (plan: ReplyPlan, context: ConvertContext) => StreamEncoder>> = {
  chat: ChatStreamEncoder,
  messages: MessagesStreamEncoder,
  responses: ResponsesStreamEncoder,
};

const WHOLE = { chat, messages, responses } as const;

/** A plan that hides nothing. */
export function planFor(client: Protocol, upstream: Protocol, more: Partial<ReplyPlan> = {}): ReplyPlan {
  return {
    client,
    upstream,
    model: "client-model",
    upstreamModel: "upstream-model",
    account: undefined,
    stream: true,
    tools: new Map(),
    emulateStop: [],
    includeUsage: true,
    deprecatedFunctions: false,
    referable: false,
    reasoning: { visibility: "full", summary: true, envelope: client !== "chat" },
    echo: {},
    ...more,
  };
}

/** An empty reply, except for the items and members that a test adds. */
export function replyOf(items: readonly ReplyItem[], more: Partial<HubReply> = {}): HubReply {
  return {
    upstreamId: "up-1",
    items,
    stop: settledStop(
      { reason: "end", stopSequence: undefined, refusal: undefined },
      items.filter((item) => item.type === "tool-call").length,
    ),
    usage: undefined,
    serviceTier: undefined,
    createdS: 5,
    ...more,
  };
}

export function textItem(text: string, startsMessage = true): ReplyItem {
  return { type: "text", text, startsMessage, citations: [], logprobs: undefined };
}

export function callOf(id: string, tool: ToolRef, input: string): ReplyItem {
  return { type: "tool-call", id, tool, input };
}

/** The same reply as the events of a stream, with deltas of `deltaChars` characters. */
export function eventsOf(reply: HubReply, deltaChars = 3): ReplyEvent[] {
  const { upstreamId, serviceTier, createdS } = reply;
  const events: ReplyEvent[] = [{ type: "reply-start", upstreamId, serviceTier, createdS }];
  for (const [index, item] of reply.items.entries()) events.push(...blockOf(String(index), item, deltaChars));
  if (reply.usage) events.push({ type: "usage-update", usage: reply.usage });
  return [...events, { type: "reply-stop", stop: reply.stop }, { type: "reply-end" }];
}

function blockOf(key: string, item: ReplyItem, deltaChars: number): ReplyEvent[] {
  switch (item.type) {
    case "text":
      return [
        { type: "text-start", key, startsMessage: item.startsMessage },
        ...pieces(item.text, deltaChars).map(
          (text): ReplyEvent => ({
            type: "text-delta",
            key,
            text,
            logprobs: undefined,
          }),
        ),
        { type: "text-end", key },
      ];
    case "refusal":
      return [
        { type: "refusal-start", key },
        ...pieces(item.text, deltaChars).map((text): ReplyEvent => ({ type: "refusal-delta", key, text })),
        { type: "refusal-end", key },
      ];
    case "image":
      return [{ type: "image", key, url: item.url }];
    case "reasoning":
      return reasoningBlock(key, item, deltaChars);
    case "tool-call":
      return [
        { type: "tool-start", key, id: item.id, tool: item.tool },
        ...pieces(item.input, deltaChars).map((input): ReplyEvent => ({ type: "tool-delta", key, input })),
        { type: "tool-end", key, input: item.input },
      ];
  }
}

function reasoningBlock(
  key: string,
  item: Extract<ReplyItem, { type: "reasoning" }>,
  deltaChars: number,
): ReplyEvent[] {
  const { opaque, native, redacted } = item;
  return [
    { type: "reasoning-start", key, redacted },
    ...pieces(item.text, deltaChars).map((text): ReplyEvent => ({ type: "reasoning-delta", key, text })),
    { type: "reasoning-end", key, opaque, native },
  ];
}

function pieces(text: string, chars: number): string[] {
  const found: string[] = [];
  for (let i = 0; i < text.length; i += chars) found.push(text.slice(i, i + chars));
  return found;
}

/** The stream that a client gets for these events. */
export function streamOf(plan: ReplyPlan, events: readonly ReplyEvent[]): string {
  const encoder = new ENCODERS[plan.client](plan, countingContext());
  return Buffer.concat(events.flatMap((event) => encoder.push(event).map(({ bytes }) => bytes))).toString();
}

/** A new encoder. */
export function encoderOf(plan: ReplyPlan): StreamEncoder {
  return new ENCODERS[plan.client](plan, countingContext());
}

/** The whole reply that a client gets, parsed. */
export function wholeBody(plan: ReplyPlan, reply: HubReply): Json {
  return JSON.parse(Buffer.from(WHOLE[plan.client].encodeReply(reply, plan, countingContext())).toString());
}

// ------------------------------------------------------------------------------------------------------ random replies

const text = fc.string({ unit: "grapheme", maxLength: 10 });

const TOOLS: Readonly<Record<Protocol, readonly ToolKind[]>> = {
  chat: ["function", "custom"],
  messages: ["function"],
  responses: ["function", "custom", "shell", "local_shell", "apply_patch", "tool_search"],
};

/** Random replies that a client's protocol can express, with blocks in any order and empty ones among them. */
export function replies(client: Protocol): fc.Arbitrary<HubReply> {
  const call = fc
    .record({
      kind: fc.constantFrom(...TOOLS[client]),
      name: fc.constantFrom("f", "g"),
      value: fc.dictionary(text, text),
    })
    .map(({ kind, name, value }) => ({
      type: "tool-call" as const,
      tool: { kind, name },
      input: kind === "custom" ? Object.values(value).join("") : JSON.stringify(value),
    }));
  const item = fc.oneof(
    text.map((words): ReplyItem => textItem(words)),
    text.map((words): ReplyItem => ({ type: "refusal", text: words })),
    fc.tuple(text, fc.option(text, { nil: undefined })).map(
      ([words, opaque]): ReplyItem => ({
        type: "reasoning",
        text: words,
        opaque,
        native: { words },
        redacted: words === "",
      }),
    ),
    call.map((one): ReplyItem => ({ ...one, id: "" })),
    fc
      .constantFrom("data:image/webp;base64,aGk=", "https://pictures.example/a.png")
      .map((url): ReplyItem => ({ type: "image", url })),
  );
  const reason = fc.constantFrom("end", "output-limit", "refusal", "pause", "context-limit");
  return fc.tuple(fc.array(item, { maxLength: 6 }), reason, fc.nat(1_000)).map(([items, wanted, output]) => {
    const named = items.map((one, index) => (one.type === "tool-call" ? { ...one, id: `call_${index}` } : one));
    const refusal = wanted === "refusal" ? { category: null, explanation: "no" } : undefined;
    const calls = named.filter((one) => one.type === "tool-call").length;
    return replyOf(named, {
      stop: settledStop({ reason: wanted, stopSequence: undefined, refusal }, calls),
      usage: { input: 1, cachedInput: 2, cacheWrite: 3, cacheWrite1h: 4, output, reasoning: 0, toolCalls: {} },
    });
  });
}
