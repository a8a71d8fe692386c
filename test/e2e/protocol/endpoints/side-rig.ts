/**
 * Helpers of the tests of the side endpoints: the SDKs configured for a gateway, and an upstream that counts as the
 * test says.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { assertAtRest } from "../whole/asking.ts";

export function openaiOf({ url }: Pick<GatewayHere, "url">, apiKey: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

export function anthropicOf({ url }: Pick<GatewayHere, "url">, apiKey: string): Anthropic {
  return new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
}

/** Posts JSON with a key. */
export function post(
  url: string,
  key: string,
  body: object,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
}

export function get(url: string, key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

/** Waits for the end of the request that got this reply, then asserts that nothing of it is left in the account. */
export async function assertEnded(
  here: GatewayHere,
  account: TestAccount,
  reply: { readonly headers: Pick<Headers, "get"> },
): Promise<void> {
  const id = reply.headers.get("x-request-id");
  if (id) await here.requestEnd(id);
  await assertAtRest(here, account);
}

export interface SeenByUpstream {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly json: Record<string, unknown>;
}

export interface OtherUpstream {
  /** With `/v1`. */
  readonly url: string;
  readonly seen: SeenByUpstream[];
  close(): Promise<void>;
}

/** An upstream of the test's own; `answer` gets the request when its body has been read. */
export async function startUpstream(
  answer: (seen: SeenByUpstream, res: ServerResponse) => void,
): Promise<OtherUpstream> {
  const seen: SeenByUpstream[] = [];
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const one = { path: req.url ?? "", headers: req.headers, json: JSON.parse(Buffer.concat(pieces).toString()) };
      seen.push(one);
      answer(one, res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
