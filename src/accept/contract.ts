/**
 * What accept gives to the pipeline, and what it asks of it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { type BodyGate, type BodyRoom, RequestBody } from "./body.ts";
import type { DescriptorShares } from "./descriptors.ts";
import { RequestHeaders } from "./headers.ts";
import type { HttpLimits } from "./http-limits.ts";
import type { PresentedKey } from "./key.ts";
import type { Rendered } from "./raw-answer.ts";
import type { Reply } from "./reply.ts";
import { type PathRoute, protocolOfTarget, splitTarget } from "./routes.ts";
import type { SiteLimits } from "./site/places.ts";

/** A request whose framing and path are beyond doubt. */
export interface AcceptedRequest {
  readonly id: RequestId;
  readonly route: Exclude<PathRoute, { kind: "site" } | { kind: "probe" } | { kind: "console" }>;
  /** The protocol in whose shape errors are written. */
  readonly protocol: Protocol;
  readonly method: string;
  /** As it came, without the query. */
  readonly path: string;
  readonly query: string;
  /** Without the credentials. */
  readonly headers: RequestHeaders;
  /** The key that was presented, or why there is none. */
  readonly key: PresentedKey | Refusal;
  /** Undefined when no address can be trusted. */
  readonly clientAddress: string | undefined;
  readonly traceparent: string | undefined;
  /** When the head had been read, on the monotonic clock. */
  readonly receivedAtMs: number;
  /** Aborted when the client leaves before it has the whole answer. */
  readonly signal: AbortSignal;
  /**
   * Reads the body, once; every call gives the same bytes or the same refusal.
   * @param gate asked before more than UNPROVEN_BYTES_MAX are read, if there are more; what it refuses with is given.
   * @param room that more than those take up until `forgetBody`; what it refuses with is given.
   */
  readBody(gate?: BodyGate, room?: BodyRoom): Promise<Uint8Array | Refusal>;
  /** Lets go of the body's bytes, which nobody may read from here on, and of their room. */
  forgetBody(): void;
}

/** What becomes of connections while the process is short of something (docs/failure-model.md row D8). */
interface ConnectionGuard {
  /** What the limit on descriptors leaves room for; undefined where the system does not say. */
  readonly shares: DescriptorShares | undefined;
  refusesConnections(): boolean;
  /** Whether answers close their connections. */
  closesConnections(): boolean;
  /** A connection has been refused. */
  refused(): void;
}

export interface ListenerOptions {
  readonly address: Address;
  /** Whether other processes of the gateway listen at the same address; a unix socket's file is then the parent's. */
  readonly shared?: boolean;
  readonly bodyBytesMax: number;
  /** CIDR blocks and `unix`. */
  readonly trustProxy: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly clock: Clock;
  readonly newRequestId: () => RequestId;
  readonly limits?: Partial<HttpLimits>;
  /** Asked under pressure; without it nobody is turned away but by `limits`. */
  readonly connectionGuard?: ConnectionGuard;
  /** The operator's own site, to which everything that is not the API's is passed; else the built-in page answers. */
  readonly siteUrl?: () => string | undefined;
  readonly siteLimits?: Partial<SiteLimits>;
  /** Where the console's pages are; without it there are none. */
  readonly consolePath?: string | undefined;
}

/** A request to the console, with its cookies and without a key. */
export interface ConsoleVisit {
  readonly id: RequestId;
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /** Undefined when no address can be trusted. */
  readonly clientAddress: string | undefined;
  /** Whether `clientAddress` is what a trusted front has said. */
  readonly throughFront: boolean;
  /** No page sends more than UNPROVEN_BYTES_MAX. */
  readBody(): Promise<Uint8Array | Refusal>;
}

/** What the pipeline does with what arrives. */
export interface Handlers {
  /** Serves a request. A promise that resolves before anything was answered is a defect. */
  onRequest(request: AcceptedRequest, reply: Reply): void | Promise<void>;
  /** Serves a request to the console's pages; without it there are none. */
  onConsole?(visit: ConsoleVisit, reply: Reply): Promise<void>;
  /** Answers a refusal of accept's own (framing, 404, 405, 426). */
  onRefusal(refused: Refusal, protocol: Protocol, reply: Reply): void;
  /** Renders a refusal where there is no reply to give it to, or where a handler has crashed. */
  renderRefusal(refused: Refusal, protocol: Protocol, requestId: string): Rendered;
  /** What seems to be a front is not in `trust_proxy`: its address as that would name it. Once for an address, and for a few. */
  onUnnamedFront?(peer: string): void;
  /** A defect: an exception of a handler. The request has been answered with 500, or cut. */
  onCrash(error: unknown): void;
}

/* A request as Node has parsed it, before anything is decided about it: what each way of answering needs. */

export interface ParsedRequest {
  readonly req: IncomingMessage;
  readonly headers: RequestHeaders;
  readonly body: RequestBody;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
  /** Whether the client sends its body, or may do so at any moment. */
  readonly bodyComes: () => boolean;
  /** As it came, without the query. */
  readonly path: string;
  readonly query: string;
  /** In whose shape errors are written. */
  readonly protocol: Protocol;
  readonly id: RequestId;
  /** When the head had been read, on the monotonic clock. */
  readonly receivedAtMs: number;
}

export function parseRequest(
  req: IncomingMessage,
  res: ServerResponse,
  { bodyBytesMax, newRequestId, clock }: Pick<ListenerOptions, "bodyBytesMax" | "newRequestId" | "clock">,
  awaitsContinue: boolean,
): ParsedRequest {
  const headers = new RequestHeaders(req.rawHeaders);
  let asked = !awaitsContinue;
  const body = new RequestBody(req, headers, bodyBytesMax, () => {
    if (!asked && !res.headersSent) res.writeContinue();
    asked = true;
  });
  const { path, query } = splitTarget(req.url ?? "");
  return {
    req,
    headers,
    body,
    awaitsContinue,
    // Some clients do not wait for long, and send their body unasked.
    bodyComes: () => asked || req.readableDidRead,
    path,
    query,
    protocol: protocolOfTarget(path),
    id: newRequestId(),
    receivedAtMs: clock.monotonicMs(),
  };
}
