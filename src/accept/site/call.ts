/**
 * One request to the site, on a connection of its own, and what becomes of it. node:http writes and reads; this file
 * knows when it is over.
 */
import { type LookupAddress, lookup } from "node:dns";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { isSoundAnswer, isWebSocketAnswer, type RawHead } from "./head.ts";
import type { SiteLimits } from "./places.ts";

/** Why a request has no answer: nobody there, nothing said in time, not HTTP, or given up by us. */
export type SiteFailure = "away" | "silent" | "invalid" | "abandoned";

type SiteOutcome =
  | { readonly kind: "answer"; readonly answer: IncomingMessage }
  | { readonly kind: "upgraded"; readonly answer: IncomingMessage; readonly socket: Socket; readonly first: Buffer }
  | { readonly kind: "failed"; readonly failure: SiteFailure };

/** Where the site is. */
export class SiteAddress {
  /** The `Host` header for it. */
  readonly host: string;
  /** The path under which the site is served, without a final slash; empty when it has a whole origin. */
  readonly basePath: string;
  readonly #tls: boolean;
  readonly #hostname: string;
  readonly #port: number;
  readonly #lookup = sharedLookup();

  /** @param url `http://` or `https://`, checked by the configuration. */
  constructor(url: string) {
    const { protocol, host, hostname, port, pathname } = new URL(url);
    this.#tls = protocol === "https:";
    this.host = host;
    this.basePath = pathname.replace(/\/+$/, "");
    this.#hostname = hostname.replace(/^\[|\]$/g, "");
    this.#port = port === "" ? (this.#tls ? 443 : 80) : Number(port);
  }

  /** Begins a request; its head is sent with its first bytes. */
  request(method: string, target: string, head: RawHead, headBytesMax: number): ClientRequest {
    const options = {
      host: this.#hostname,
      port: this.#port,
      lookup: this.#lookup,
      method,
      path: this.basePath + target,
      headers: head,
      // Nothing is added to that head, so that no method and no header changes how the body is framed.
      setDefaultHeaders: false,
      maxHeaderSize: headBytesMax,
      insecureHTTPParser: false,
    };
    if (!this.#tls) return httpRequest({ ...options, agent: HTTP_AGENT });
    // The name that the certificate must have is the configured one, never the visitor's `Host`.
    const servername = isIP(this.#hostname) === 0 ? this.#hostname : "";
    return tlsRequest({ ...options, agent: TLS_AGENT, servername, rejectUnauthorized: true });
  }

  /** The event at which a connection can be used. */
  get connectedEvent(): "connect" | "secureConnect" {
    return this.#tls ? "secureConnect" : "connect";
  }
}

/** Agents that keep no connection; that of TLS remembers sessions, which saves most of a handshake. */
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
  /** The site asks for the body. */
  readonly onContinue: () => void;
}

export class SiteCall {
  /** Resolves once; never rejects. An answer that breaks off later closes without having ended. */
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
    // One more than is taken, so that too many are seen and none is left out in silence.
    request.maxHeadersCount = limits.headersMax + 1;
    const connecting = this.#failAfter(limits.connectMs, "away");
    this.#failAfter(upgrade ? limits.upgradeHeadMs : limits.headMs, "silent");
    request.on("socket", (socket) => socket.once(address.connectedEvent, () => clearTimeout(connecting)));
    request.on("continue", onContinue);
    request.on("response", (answer) => {
      if (!isSoundAnswer(answer, limits.headersMax)) return this.#fail("invalid");
      this.#answer = answer;
      // Silence in the middle of an answer breaks it off.
      request.setTimeout(limits.idleMs, () => answer.destroy(new Error("silence")));
      this.#settle({ kind: "answer", answer });
    });
    // Without a listener, a 101 that nobody asked for would end in silence.
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
      // Node takes the end of the connection for the end of a body that has no length, a reset included; an answer that was
      // destroyed with an error does not end.
      if (this.#answer?.complete === false) this.#answer.destroy(error);
      this.#fail(error.code?.startsWith("HPE_") ? "invalid" : "away");
    });
    request.on("close", () => this.#fail("away"));
  }

  /** Sends the request: its head at once, then its body as it comes. */
  send(body: IncomingMessage | undefined): void {
    if (body === undefined) {
      this.#request.end();
      return;
    }
    this.#body = body;
    // Not `flushHeaders`: that writes bytes beyond ASCII, which Node has read as Latin-1, as UTF-8.
    this.#request.write(NO_BYTES);
    body.pipe(this.#request);
  }

  /** Ends the call. The rest of the body is not sent, and no last chunk says that the body is complete. */
  close(): void {
    this.#fail("abandoned");
    // The rest is read and thrown away, as far as the listener lets it come.
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

  /** Without effect after an answer. */
  #fail(failure: SiteFailure): void {
    this.#settle({ kind: "failed", failure });
  }

  #settle(outcome: SiteOutcome): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#resolve(outcome);
  }
}

/*
 * The site's name, looked up once for all requests of a while. The system's resolver works in the few threads that also
 * write files, the journal's among them: a slow name server and a crowd of visitors must not take them all.
 */

/** How long an answer is used. */
const REMEMBERED_MS = 10_000;

type LookupCallback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** Asks the system for all addresses of a name. */
export type AskSystem = (hostname: string, answer: LookupCallback) => void;

const askSystem: AskSystem = (hostname, answer) => lookup(hostname, { all: true }, answer);

/** Makes a look-up function for one name: one question at a time, its answer remembered unless it was an error. */
export function sharedLookup(
  ask: AskSystem = askSystem,
  nowMs: () => number = () => performance.now(),
): LookupFunction {
  let known: LookupAddress[] = [];
  let knownUntilMs = 0;
  const waiting: LookupCallback[] = [];
  return (hostname, options, callback) => {
    const give: LookupCallback = (error, addresses) => {
      const [first] = addresses;
      if (options.all) callback(error, addresses);
      else callback(error, first?.address ?? "", first?.family);
    };
    if (nowMs() < knownUntilMs) {
      // Never before the caller has gone on, like the system's own answers.
      process.nextTick(give, null, known);
      return;
    }
    waiting.push(give);
    if (waiting.length > 1) return;
    ask(hostname, (error, addresses) => {
      known = addresses;
      knownUntilMs = error ? 0 : nowMs() + REMEMBERED_MS;
      for (const each of waiting.splice(0)) each(error, addresses ?? []);
    });
  };
}
