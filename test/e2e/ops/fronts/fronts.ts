/** The fronts that Tollgate is tested behind, with one interface; each runs the file that deploy/ ships. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Changes } from "../../../rig/config.ts";
import { startEnvoy } from "../../../rig/envoy.ts";
import { type ConfigPlaces, type GatewayHere, type GatewayProcess, testConfig } from "../../../rig/gateway.ts";
import { startNginx } from "../../../rig/nginx.ts";
import { bodyOf } from "../../protocol/whole/asking.ts";

/** A process behind a front: where it and its admin listener listen. */
export interface Behind {
  /** A port of 127.0.0.1, or the path of a unix socket. */
  readonly listen: number | string;
  readonly adminPort: number;
}

export interface Front {
  readonly url: string;
  readonly port: number;
  readonly tlsUrl: string;
  readonly ca: string;
  stop(): Promise<void>;
}

export interface FrontKind {
  readonly name: "nginx" | "Envoy";
  start(behind: readonly Behind[]): Promise<Front>;
}

export const FRONTS: readonly FrontKind[] = [
  {
    name: "nginx",
    start: (behind) =>
      startNginx({
        servers: behind.map(({ listen }) => (typeof listen === "number" ? `127.0.0.1:${listen}` : `unix:${listen}`)),
      }),
  },
  { name: "Envoy", start: (endpoints) => startEnvoy({ endpoints }) },
];

/** The configuration of a gateway that trusts a front on this machine, with further changes. */
export function behindFront(change: Changes = {}): (places: ConfigPlaces) => string {
  return (places) => testConfig(places, { trust_proxy: ["127.0.0.1/32"], ...change });
}

export function behindOf(gateway: Pick<GatewayHere | GatewayProcess, "url" | "adminUrl">): Behind {
  return { listen: Number(new URL(gateway.url).port), adminPort: Number(new URL(gateway.adminUrl).port) };
}

/** One request to a model server that the test plays itself. */
export interface HandRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Starts or continues a stream: one frame, sent at once. */
  send(frame: string): void;
  end(): void;
  /** Resolves when the connection of this request is closed or its answer complete. */
  readonly closed: Promise<unknown>;
}

export interface HandUpstream {
  readonly url: string;
  /** The next request that arrives, or one that has already arrived. */
  next(): Promise<HandRequest>;
  close(): Promise<void>;
}

/**
 * A model server whose events are all sent by the test. @param whole what requests for a whole answer get at once;
 * without it they, too, wait for the test.
 */
export async function startHandUpstream(whole?: object): Promise<HandUpstream> {
  const arrived: HandRequest[] = [];
  const waiting: ((request: HandRequest) => void)[] = [];
  const server = createServer((req, res) => {
    const request: HandRequest = {
      req,
      res,
      send(frame) {
        if (!res.headersSent) res.writeHead(200, { "content-type": "text/event-stream" });
        res.write(frame);
      },
      end: () => void res.end(),
      closed: once(res, "close"),
    };
    let body = "";
    req.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    req.once("end", () => {
      if (whole && (JSON.parse(body) as { stream?: boolean }).stream !== true) {
        res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole));
        return;
      }
      const taker = waiting.shift();
      if (taker) taker(request);
      else arrived.push(request);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    next() {
      const request = arrived.shift();
      return request ? Promise.resolve(request) : new Promise((resolve) => waiting.push(resolve));
    },
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A frame of a chat stream with this text. */
export function chatFrame(text: string, finish: string | null = null): string {
  const choice = { index: 0, delta: { content: text }, finish_reason: finish };
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "chat-1", choices: [choice] };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

export const CHAT_END = "data: [DONE]\n\n";

/** A stream as its reader sees it: the text so far, and whether it ended properly. */
export interface ReadStream {
  readonly status: number;
  /** Resolves with all text so far when it contains `part`. @throws Error if the stream ends without it. */
  until(part: string): Promise<string>;
  /** Reads to the end. */
  end(): Promise<{ text: string; cut: boolean }>;
  /** Disconnects in mid-stream. */
  leave(): void;
}

/** Requests a chat stream over HTTP/1.1. */
export async function chatStream(url: string, key: string, fields: object = {}): Promise<ReadStream> {
  const leaving = new AbortController();
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...bodyOf("chat"), stream: true, ...fields }),
    signal: leaving.signal,
  });
  const pieces = (reply.body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]();
  return reading(reply.status, pieces, () => leaving.abort());
}

/** The same over HTTP/2, as browsers and most SDKs behind TLS would. */
export async function chatStreamOverHttp2(front: Front, key: string, fields: object = {}): Promise<ReadStream> {
  const session: ClientHttp2Session = connect(front.tlsUrl, { ca: front.ca });
  // The outcome is observed on the stream.
  session.on("error", () => {});
  const stream: ClientHttp2Stream = session.request({
    ":method": "POST",
    ":path": "/v1/chat/completions",
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
  });
  stream.end(JSON.stringify({ ...bodyOf("chat"), stream: true, ...fields }));
  stream.once("close", () => session.close());
  const [headers] = (await once(stream, "response")) as [{ ":status"?: number }];
  return reading(headers[":status"] ?? 0, stream[Symbol.asyncIterator](), () => session.destroy());
}

function reading(status: number, pieces: AsyncIterator<Uint8Array>, leave: () => void): ReadStream {
  const decoder = new TextDecoder();
  let text = "";
  const more = async (): Promise<boolean> => {
    const { done, value } = await pieces.next();
    if (!done) text += decoder.decode(value, { stream: true });
    return !done;
  };
  return {
    status,
    leave,
    async until(part) {
      while (!text.includes(part)) if (!(await more())) throw new Error(`the stream ended: ${text}`);
      return text;
    },
    async end() {
      try {
        while (await more());
        return { text, cut: false };
      } catch {
        return { text, cut: true };
      }
    },
  };
}
