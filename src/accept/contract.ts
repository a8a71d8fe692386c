/** What accept provides to the pipeline, and what it requires from it. */
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
import type { SiteLimits } from "./site/slots.ts";

/** A request whose framing and path are valid. */
export interface AcceptedRequest {
  readonly id: RequestId;
  readonly route: Exclude<PathRoute, { kind: "site" } | { kind: "probe" } | { kind: "console" }>;
  /** The protocol whose error format is used. */
  readonly protocol: Protocol;
  readonly method: string;
  /** As received, without the query. */
  readonly path: string;
  readonly query: string;
  /** Without the credentials. */
  readonly headers: RequestHeaders;
  /** The presented key, or the reason why there is none. */
  readonly key: PresentedKey | Refusal;
  /** Undefined when no address can be trusted. */
  readonly clientAddress: string | undefined;
  readonly traceparent: string | undefined;
  /** When the headers were complete, on the monotonic clock. */
  readonly receivedAtMs: number;
  /** Aborted when the client disconnects before it has the whole answer. */
  readonly signal: AbortSignal;
  /**
   * Reads the body once; every call gives the same bytes or the same refusal.
   * @param gate called before more than UNPROVEN_BYTES_MAX are read, if there are more; its refusal is returned.
   * @param room memory for a body larger than that, reserved until `forgetBody`; its refusal is returned.
   */
  readBody(gate?: BodyGate, room?: BodyRoom): Promise<Uint8Array | Refusal>;
  /** Releases the body's bytes and their room. Nothing may read the bytes afterwards. */
  forgetBody(): void;
}

/** What happens to connections while the process is short of a resource (docs/failure-model.md row D8). */
interface ConnectionGuard {
  /** What the limit on file descriptors leaves room for; undefined if the system does not report it. */
  readonly shares: DescriptorShares | undefined;
  refusesConnections(): boolean;
  /** Whether answers close their connections. */
  closesConnections(): boolean;
  /** A connection has been refused. */
  refused(): void;
}

export interface ListenerOptions {
  readonly address: Address;
  /**
   * Whether other processes of the gateway listen at the same address; the parent then owns the file of a unix socket.
   */
  readonly shared?: boolean;
  readonly bodyBytesMax: number;
  /** CIDR blocks and `unix`. */
  readonly trustProxy: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly clock: Clock;
  readonly newRequestId: () => RequestId;
  readonly limits?: Partial<HttpLimits>;
  /** Consulted under pressure; without it only `limits` refuse connections. */
  readonly connectionGuard?: ConnectionGuard;
  /** The operator's own site, which gets everything that is not the API's. Without it, the built-in page answers. */
  readonly siteUrl?: () => string | undefined;
  readonly siteLimits?: Partial<SiteLimits>;
  /** The path of the console's pages; without it there are none. */
  readonly consolePath?: string | undefined;
  /** The address of the console's pages as browsers know it, which the built-in page names. */
  readonly consoleUrl?: string | undefined;
}

/** A request to the console, with its cookies and without a key. */
export interface ConsoleVisit {
  readonly id: RequestId;
  readonly method: string;
  /** Including its query. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /** Undefined when no address can be trusted. */
  readonly clientAddress: string | undefined;
  /** Whether a trusted front supplied `clientAddress`. */
  readonly throughFront: boolean;
  /** No page sends more than UNPROVEN_BYTES_MAX. */
  readBody(): Promise<Uint8Array | Refusal>;
}

/** What the pipeline does with requests and connections. */
export interface Handlers {
  /** Serves a request. If the promise resolves before anything was answered, that is a defect. */
  onRequest(request: AcceptedRequest, reply: Reply): void | Promise<void>;
  /** Serves a request to the console's pages; without it there are none. */
  onConsole?(visit: ConsoleVisit, reply: Reply): Promise<void>;
  /** Answers accept's own refusals (framing, 404, 405, 426). */
  onRefusal(refused: Refusal, protocol: Protocol, reply: Reply): void;
  /** Renders a refusal when there is no reply to answer with, or when a handler has crashed. */
  renderRefusal(refused: Refusal, protocol: Protocol, requestId: string): Rendered;
  /**
   * A peer that looks like a front is not in `trust_proxy`. Called with its address in the notation of `trust_proxy`,
   * once for each address and only for the first few.
   */
  onUnnamedFront?(peer: string): void;
  /** A defect: a handler threw. The request has been answered with 500, or its answer cut. */
  onCrash(error: unknown): void;
}

/* A request as parsed by Node, before any decision about it. */

export interface ParsedRequest {
  readonly req: IncomingMessage;
  readonly headers: RequestHeaders;
  readonly body: RequestBody;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
  /** Whether the client is sending its body, or may do so at any moment. */
  readonly bodyComes: () => boolean;
  /** As received, without the query. */
  readonly path: string;
  readonly query: string;
  /** The protocol whose error format is used. */
  readonly protocol: Protocol;
  readonly id: RequestId;
  /** When the headers were complete, on the monotonic clock. */
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
    // Some clients do not wait for long before they send their body without `100 Continue`.
    bodyComes: () => asked || req.readableDidRead,
    path,
    query,
    protocol: protocolOfTarget(path),
    id: newRequestId(),
    receivedAtMs: clock.monotonicMs(),
  };
}
