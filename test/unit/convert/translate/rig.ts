/**
 * Shared by the translation tests: a deterministic context, an exchange between two protocols, and ways to feed a
 * stream to it.
 */
import assert from "node:assert/strict";
import type {
  ClientRequest,
  ConvertContext,
  Exchange,
  RouteFacts,
  StreamConverter,
  UpstreamFault,
} from "../../../../src/convert/exchange.ts";
import { isFault } from "../../../../src/convert/exchange.ts";
import { openTranslation } from "../../../../src/convert/translate/translate.ts";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { answerOf, type ErrorAnswer, isRefusal, refusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { isJsonFault, scanJson } from "../../../../src/wire/json.ts";
import { type Body, CONTEXT, routeTo } from "../request/translate.ts";

export const REQUEST_ID = "req_000000000000000000000001";

/** A context whose ids count from 1, so that equal runs give equal bytes. */
export function countingContext(): ConvertContext {
  let made = 0;
  return { ...CONTEXT, randomId: (length) => String(++made).padStart(length, "0") };
}

/** A client's body as the accept stage passes it on. */
export function clientRequest(protocol: Protocol, json: Body): ClientRequest {
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  if (isJsonFault(scan)) throw new Error(scan.reason);
  return { protocol, body, json, scan, model: String(json.model), stream: json.stream === true };
}

/** Opens the exchange of a body that must be translatable. */
export function exchangeOf(client: Protocol, body: Body, route: RouteFacts): Exchange {
  const permitted = { outputLimit: undefined, inputEstimate: 7, strict: false };
  const exchange = openTranslation(clientRequest(client, body), route, permitted, countingContext());
  if (isRefusal(exchange)) throw new Error(`refused: ${JSON.stringify(exchange.facts)}`);
  return exchange;
}

/** The smallest body of each protocol, with the fields that a test adds. */
export function smallBody(client: Protocol, fields: Body = {}): Body {
  const turn = [{ role: "user", content: "hello" }];
  if (client === "chat") return { model: "m", messages: turn, ...fields };
  if (client === "messages") return { model: "m", max_tokens: 4096, messages: turn, ...fields };
  return { model: "m", input: "hello", store: false, ...fields };
}

/** What the client got from a stream. */
export interface StreamOutput {
  readonly text: string;
  readonly fault: UpstreamFault | undefined;
  readonly converter: StreamConverter;
}

/** Feeds pieces to a new converter. A fault ends the stream as the relay would end it. */
export function convertStream(exchange: Exchange, pieces: Iterable<Uint8Array>): StreamOutput {
  const converter = exchange.stream();
  const out: Uint8Array[] = [];
  const take = (frames: ReturnType<StreamConverter["push"]>) => {
    for (const frame of frames) out.push(frame.bytes);
  };
  for (const piece of pieces) {
    if (converter.ended || converter.fault) break;
    take(converter.push(piece));
  }
  if (!converter.ended && !converter.fault) take(converter.end());
  const { fault } = converter;
  if (fault) out.push(converter.fail(failureOf(fault), REQUEST_ID));
  return { text: Buffer.concat(out).toString(), fault, converter };
}

export function failureOf(fault: UpstreamFault): ErrorAnswer {
  return answerOf(refusal(fault.cause));
}

/** Translates a stream between two protocols in one push. */
export function convertInOnePush(
  client: Protocol,
  body: Body,
  route: RouteFacts,
  upstream: string | Uint8Array,
): StreamOutput {
  const bytes = typeof upstream === "string" ? Buffer.from(upstream) : upstream;
  return convertStream(exchangeOf(client, { ...body, stream: true }, route), [bytes]);
}

/** A whole reply between two protocols, parsed; a fault fails the test. */
export function wholeOf(client: Protocol, body: Body, route: RouteFacts, upstream: unknown): Record<string, unknown> {
  const reply = exchangeOf(client, body, route).whole(Buffer.from(JSON.stringify(upstream)));
  assert(!isFault(reply), JSON.stringify(reply));
  return JSON.parse(Buffer.from(reply.body).toString());
}

export interface Frame {
  readonly event: string | undefined;
  /** Parsed; `[DONE]` stays text. */
  readonly data: Record<string, unknown> & { type?: string };
}

/** The frames of a stream that the gateway wrote. */
export function framesOf(text: string): Frame[] {
  return text
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      const lines = frame.split("\n");
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6) ?? "";
      const event = lines.find((line) => line.startsWith("event: "))?.slice(7);
      return { event, data: data === "[DONE]" ? data : JSON.parse(data) };
    });
}

/** Chat chunks, messages events or responses events as an upstream would send them. */
export function sse(protocol: Protocol, payloads: readonly unknown[]): string {
  return payloads
    .map((payload) => {
      const data = typeof payload === "string" ? payload : JSON.stringify(payload);
      const named = protocol !== "chat" && typeof payload === "object" && payload !== null && "type" in payload;
      return `${named ? `event: ${payload.type}\n` : ""}data: ${data}\n\n`;
    })
    .join("");
}

/** A route with the default capabilities, except for the given ones. */
export function routeOf(protocol: Protocol, capabilities: Partial<Capabilities> = {}): RouteFacts {
  return routeTo(protocol, capabilities);
}
