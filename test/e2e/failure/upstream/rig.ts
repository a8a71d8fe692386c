/** A whole gateway whose models are also on upstreams that a test corrupts, and assertions about its answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, type GatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import {
  bodyOf,
  type Fields,
  framesOf,
  memoOf,
  PROTOCOL_LIST,
  pathOf,
  usageLines,
} from "../../protocol/whole/asking.ts";

/** A faulty upstream: its base URL, and any further members of its configuration as YAML. */
export interface SpoiledUpstream {
  readonly url: string;
  readonly more?: string;
}

/**
 * The usual configuration, and for each name N models `chat-N`, `messages-N` and `responses-N` that only that upstream
 * serves. By default no number of failures ejects an upstream.
 */
export function withUpstreams(upstreams: Readonly<Record<string, SpoiledUpstream>>): (places: ConfigPlaces) => string {
  const price = '{input: "1", output: "10"}';
  const health = "health: {failures: 10000, outcomes_min: 10000}";
  const eachOf = (line: (name: string, spoiled: SpoiledUpstream, protocol: Protocol) => string) =>
    Object.entries(upstreams)
      .flatMap(([name, spoiled]) => PROTOCOL_LIST.map((protocol) => line(name, spoiled, protocol)))
      .join("");
  const lines = eachOf(
    (name, { url, more }, protocol) =>
      `  ${name}-${protocol}: {protocol: ${protocol}, base_url: ${JSON.stringify(url)}, ${health}${more ? `, ${more}` : ""}}\n`,
  );
  const models = eachOf(
    (name, _, protocol) =>
      `  ${protocol}-${name}: {plans: [free], price: ${price}, context_tokens: 200000, max_output_tokens: 32000, routes: [{upstream: ${name}-${protocol}}]}\n`,
  );
  return (places) => testConfig(places).replace("models:\n", `${lines}models:\n${models}`);
}

/** A server that calls the test for each complete request; the test writes anything to the raw socket. */
export async function rawUpstream(
  answer: (socket: Socket, text: string, connection: number) => void,
): Promise<{ readonly url: string; readonly connections: () => number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    const connection = ++connections;
    let text = "";
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || text.length < head + 4 + length) return;
      const whole = text;
      text = "";
      answer(socket, whole, connection);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}

export const SSE_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
export const JSON_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/** One HTTP/1.1 request as a client writes it, for sockets that no HTTP library would open. */
export function requestBytes(protocol: Protocol, key: string, fields: Fields = {}): string {
  const body = JSON.stringify(bodyOf(protocol, fields));
  const head = `POST ${pathOf(protocol)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** A small valid whole reply of each protocol, with a usage of 7 tokens in and 3 out. */
export const WHOLE: Readonly<Record<Protocol, object>> = {
  chat: {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  },
  messages: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "hi" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 3 },
  },
  responses: {
    id: "resp_1",
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    output: [
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "hi", annotations: [] }],
      },
    ],
    usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
  },
};

/** How a client of the protocol reads the end of its stream. */
export type StreamEnd = "complete" | "failed" | "none";

/** Reads a stream as its client does; fails if anything follows the end, or if there are two ends. */
export function endOf(protocol: Protocol, text: string): StreamEnd {
  const ends = framesOf(text)
    .filter(({ data }) => data !== "")
    .map(({ data }) => kindOf(protocol, data));
  const last = ends.at(-1) ?? "none";
  const terminal = ends.filter((end) => end !== "none").length;
  // On responses an `error` event precedes `response.failed`; both are one end.
  assert.ok(terminal <= 1, `more than one end: ${text.slice(-600)}`);
  assert.equal(terminal, last === "none" ? 0 : 1, `something follows the end: ${text.slice(-600)}`);
  return last;
}

function kindOf(protocol: Protocol, data: string): StreamEnd {
  if (data === "[DONE]") return "complete";
  const payload = JSON.parse(data) as { type?: string; error?: unknown };
  if (protocol === "chat") return payload.error === undefined ? "none" : "failed";
  if (protocol === "messages") {
    return payload.type === "message_stop" ? "complete" : payload.type === "error" ? "failed" : "none";
  }
  if (payload.type === "response.completed" || payload.type === "response.incomplete") return "complete";
  return payload.type === "response.failed" ? "failed" : "none";
}

/** What an account was charged: at most one usage line, never negative, never above the hold. */
export async function chargeOf(here: GatewayHere, account: Pick<TestAccount, "tag">): Promise<bigint> {
  const charged = (await usageLines(here, account)).filter((line) => line.kind === "usage");
  assert.ok(charged.length <= 1, `${charged.length} charges`);
  const [line] = charged;
  if (!line) return 0n;
  assert.ok(line.amount >= 0n && line.amount <= BigInt(memoOf(line).hold as string), line.memo);
  return line.amount;
}
