/**
 * One request to the site, on its own connection, and its outcome. node:http writes and reads; this file decides when
 * the call is over.
 */
import { lookup } from "node:dns";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { isIP, type Socket } from "node:net";
import { sharedLookup } from "../../values/program/shared-lookup.ts";
import { systemClock } from "../../values/time.ts";
import { isSoundAnswer, isWebSocketAnswer, type RawHead } from "./head.ts";
import type { SiteLimits } from "./slots.ts";

/** Why a request has no answer: no connection, no answer in time, invalid HTTP, or abandoned by us. */
export type SiteFailure = "unreachable" | "silent" | "invalid" | "abandoned";

type SiteOutcome =
  | { readonly kind: "answer"; readonly answer: IncomingMessage }
  | { readonly kind: "upgraded"; readonly answer: IncomingMessage; readonly socket: Socket; readonly first: Buffer }
  | { readonly kind: "failed"; readonly failure: SiteFailure };

/** The address of the site. */
export class SiteAddress {
  /** The `Host` header for it. */
  readonly host: string;
  /** The path under which the site is served, without a final slash; empty if it has a whole origin. */
  readonly basePath: string;
  readonly #tls: boolean;
  readonly #hostname: string;
  readonly #port: number;
  readonly #lookup = sharedLookup(systemClock, lookup);

  /** @param url `http://` or `https://`, checked by the configuration. */
  constructor(url: string) {
    const { protocol, host, hostname, port, pathname } = new URL(url);
    this.#tls = protocol === "https:";
    this.host = host;
    this.basePath = pathname.replace(/\/+$/, "");
    this.#hostname = hostname.replace(/^\[|\]$/g, "");
    this.#port = port === "" ? (this.#tls ? 443 : 80) : Number(port);
  }

  /** Begins a request; its head is sent with the first bytes of the body. */
  request(method: string, target: string, head: RawHead, headBytesMax: number): ClientRequest {
    const options = {
      host: this.#hostname,
      port: this.#port,
      lookup: this.#lookup,
      method,
      path: this.basePath + target,
      headers: head,
      // Node adds nothing to this head, so no method and no header changes how the body is framed.
      setDefaultHeaders: false,
      maxHeaderSize: headBytesMax,
      insecureHTTPParser: false,
    };
    if (!this.#tls) return httpRequest({ ...options, agent: HTTP_AGENT });
    // The certificate must have the configured name, never the visitor's `Host`.
    const servername = isIP(this.#hostname) === 0 ? this.#hostname : "";
    return tlsRequest({ ...options, agent: TLS_AGENT, servername, rejectUnauthorized: true });
  }

  /** The event after which a connection can be used. */
  get connectedEvent(): "connect" | "secureConnect" {
    return this.#tls ? "secureConnect" : "connect";
  }
}

/** These agents reuse no connections. The TLS agent caches sessions, which saves most of a handshake. */
const HTTP_AGENT = new HttpAgent({ keepAlive: false });
const TLS_AGENT = new TlsAgent({ keepAlive: false });
const NO_BYTES = new Uint8Array(0);

interface CallOptions {
  readonly address: SiteAddress;
  readonly method: string;
  readonly target: string;
  readonly head: RawHead;
  readonly upgrade: boolean;
  readonly limits: SiteLimits;
  /** Called when the site asks for the body. */
  readonly onContinue: () => void;
}

export class SiteCall {
  /** Resolves once; never rejects. If an answer breaks off later, it emits `close` without `end`. */
  readonly outcome: Promise<SiteOutcome>;
  readonly #request: ClientRequest;
  readonly #resolve: (outcome: SiteOutcome) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  #answer: IncomingMessage | undefined;
  #body: IncomingMessage | undefined;

  constructor({ address, method, target, head, upgrade, limits, onContinue }: CallOptions) {
    const { promise, resolve } = Promise.withResolvers<SiteOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    const request = address.request(method, target, head, limits.headBytesMax);
    this.#request = request;
    // One more than allowed, so that an excess is detected and no header is dropped silently.
    request.maxHeadersCount = limits.headersMax + 1;
    const connecting = this.#failAfter(limits.connectMs, "unreachable");
    this.#failAfter(upgrade ? limits.upgradeHeadMs : limits.headMs, "silent");
    request.on("socket", (socket) => socket.once(address.connectedEvent, () => clearTimeout(connecting)));
    request.on("continue", onContinue);
    request.on("response", (answer) => {
      if (!isSoundAnswer(answer, limits.headersMax)) return this.#fail("invalid");
      this.#answer = answer;
      // An idle timeout in the middle of an answer breaks it off.
      request.setTimeout(limits.idleMs, () => answer.destroy(new Error("silence")));
      this.#settle({ kind: "answer", answer });
    });
    // Without a listener, an unrequested 101 would end without any event.
    request.on("upgrade", (answer, stream, first) => {
      const socket = stream as Socket;
      socket.on("error", () => socket.destroy());
      if (upgrade && isWebSocketAnswer(answer, limits.headersMax)) {
        this.#settle({ kind: "upgraded", answer, socket, first });
        return;
      }
      socket.destroy();
      this.#fail("invalid");
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      // For a body without a length, Node treats the end of the connection, even a reset, as the end of the body. An
      // answer that is destroyed with an error does not end normally.
      if (this.#answer?.complete === false) this.#answer.destroy(error);
      this.#fail(error.code?.startsWith("HPE_") ? "invalid" : "unreachable");
    });
    request.on("close", () => this.#fail("unreachable"));
  }

  /** Sends the request: the head at once, then the body as it arrives. */
  send(body: IncomingMessage | undefined): void {
    if (body === undefined) {
      this.#request.end();
      return;
    }
    this.#body = body;
    // Not `flushHeaders`, because that encodes non-ASCII bytes, which Node has read as Latin-1, as UTF-8.
    this.#request.write(NO_BYTES);
    body.pipe(this.#request);
  }

  /** Ends the call. The rest of the body is not sent, and no last chunk marks the body as complete. */
  close(): void {
    this.#fail("abandoned");
    // The rest is read and discarded, as far as the listener lets it arrive.
    this.#body?.unpipe(this.#request).resume();
    const { socket } = this.#request;
    this.#request.destroy();
    socket?.destroy();
  }

  #failAfter(ms: number, failure: SiteFailure): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#fail(failure);
      this.#request.destroy();
    }, ms);
    this.#timers.push(timer);
    return timer;
  }

  /** No effect after an answer. */
  #fail(failure: SiteFailure): void {
    this.#settle({ kind: "failed", failure });
  }

  #settle(outcome: SiteOutcome): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#resolve(outcome);
  }
}
