/**
 * A listener whose pipeline only repeats what accept read from the request: key, body, envelope, in the order in which
 * faults are answered.
 */
import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import {
  type AcceptedRequest,
  createListener,
  type Handlers,
  type ListenerOptions,
} from "../../../src/accept/listener.ts";
import type { Rendered } from "../../../src/accept/raw-answer.ts";
import type { Reply } from "../../../src/accept/reply.ts";
import { answerOf, isRefusal, type Refusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey } from "../../../src/values/key.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { systemClock } from "../../../src/values/time.ts";
import type { Target } from "../../rig/raw-socket.ts";

/** A well-formed key with a correct checksum. */
export const KEY = newKey(newAccountTag(randomBytes), randomBytes).text;
export const OTHER_KEY = newKey(newAccountTag(randomBytes), randomBytes).text;

export const CHAT_BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });

export interface Echo {
  readonly target: Target;
  readonly listener: ReturnType<typeof createListener>;
  /** The requests that reached the pipeline. */
  readonly requests: AcceptedRequest[];
  readonly crashes: unknown[];
}

/** Starts the listener and closes it after the test. */
export async function startEcho(
  context: TestContext,
  options: Partial<ListenerOptions> = {},
  onRequest?: Handlers["onRequest"],
): Promise<Echo> {
  const requests: AcceptedRequest[] = [];
  const crashes: unknown[] = [];
  const handlers: Handlers = {
    onRequest(request, reply) {
      requests.push(request);
      return (onRequest ?? echo)(request, reply);
    },
    onRefusal: (refused, protocol, reply) => refuse(refused, protocol, reply),
    renderRefusal,
    onCrash: (error) => crashes.push(error),
  };
  const listener = createListener(
    {
      address: { kind: "tcp", host: "127.0.0.1", port: 0 },
      bodyBytesMax: 4_096,
      trustProxy: [],
      corsOrigins: [],
      clock: systemClock,
      newRequestId: () => newRequestId(Date.now(), randomBytes),
      ...options,
    },
    handlers,
  );
  const address = await listener.listen();
  context.after(async () => {
    listener.destroy();
    await listener.close();
  });
  const target = address.kind === "tcp" ? { port: address.port } : { path: address.path };
  return { target, listener, requests, crashes };
}

/** Does what the pipeline does with accept: reads the key first, then the body. */
export async function echo(request: AcceptedRequest, reply: Reply): Promise<void> {
  const body = await request.readBody();
  if (isRefusal(request.key)) return refuse(request.key, request.protocol, reply);
  if (isRefusal(body)) return refuse(body, request.protocol, reply);
  const read = request.route.kind === "model" ? readEnvelope(request.protocol, body) : undefined;
  if (isRefusal(read)) return refuse(read, request.protocol, reply);
  const facts = { route: request.route, query: request.query, bytes: body.length, envelope: read?.envelope };
  reply.whole(200, { "content-type": "application/json" }, Buffer.from(JSON.stringify(facts)));
}

export function refuse(refused: Refusal, protocol: string, reply: Reply): void {
  const { status, headers, body } = renderRefusal(refused, protocol, reply.requestId);
  reply.whole(status, headers, body);
}

function renderRefusal(refused: Refusal, protocol: string, requestId: string): Rendered {
  const answer = answerOf(refused);
  const error = { type: answer.identifier, message: answer.message, cause: answer.cause, param: answer.param };
  return {
    status: answer.status,
    headers: {
      "content-type": "application/json",
      ...answer.headers,
      ...(answer.close ? { connection: "close" } : {}),
    },
    body: Buffer.from(JSON.stringify({ error, protocol, request_id: requestId })),
  };
}

/** The bytes of a request with a key and the given parts. */
export function request(parts: {
  readonly line?: string;
  readonly headers?: readonly string[];
  readonly key?: string | undefined;
  readonly body?: string | Uint8Array;
}): Buffer {
  const body = parts.body ?? CHAT_BODY;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const key = "key" in parts ? parts.key : KEY;
  const own = parts.headers ?? ["Content-Type: application/json", `Content-Length: ${bytes.length}`];
  const lines = [
    parts.line ?? "POST /v1/chat/completions HTTP/1.1",
    "Host: gateway.test",
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...own,
  ];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes]);
}

/** The cause in an error body, or the body itself. */
export function causeOf(body: string): string {
  try {
    return (JSON.parse(body) as { error?: { cause?: string } }).error?.cause ?? body;
  } catch {
    return body;
  }
}
