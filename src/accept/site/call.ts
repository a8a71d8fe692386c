/**
 * Passes everything that is not the API's on to the operator's own site, WebSocket upgrades included, by the maintained
 * continuation of http-proxy; the only file that imports it. What that library would let through is stopped here
 * (reliability 4.0): headers are built afresh before it sees them, its response handling is not used, and nothing of it
 * touches the model paths.
 */
import { Agent, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { Duplex } from "node:stream";
import httpProxy from "http-proxy-3";
import { looksLikeKey } from "../values/key.ts";
import { hopByHopNames } from "../wire/header.ts";
import type { RequestHeaders } from "./headers.ts";

/** Connections to the site at once; further requests wait for one. */
const SITE_CONNECTIONS_MAX = 256;
/** Silence of the site after which a request to it is given up. */
const SITE_IDLE_MS = 300_000;

/** Fields that a front or a client may not speak in our name, besides the hop-by-hop ones. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  "expect",
  "forwarded",
  "http2-settings",
  "x-forwarded-for",
  "x-real-ip",
]);
/** Fields by which a site could make nginx serve a file of its own (finding F7). */
const NOT_RETURNED = /^x-(?:accel-|sendfile$)/;

const AWAY = Buffer.from("The site behind this gateway does not answer.\n");

export interface SiteProxy {
  /** Passes a request on; the response is handled whole, whatever happens to either side. */
  web(req: IncomingMessage, res: ServerResponse, facts: SiteFacts): void;
  /** Passes an upgraded connection on. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, facts: SiteFacts): void;
  close(): void;
}

export interface SiteFacts {
  /** `http://` or `https://`, without a path. */
  readonly target: string;
  readonly headers: RequestHeaders;
  readonly clientAddress: string | undefined;
}

export function createSiteProxy(): SiteProxy {
  const options = { keepAlive: true, maxSockets: SITE_CONNECTIONS_MAX };
  const agents = { http: new Agent(options), https: new TlsAgent(options) };
  const proxy = httpProxy.createProxyServer({
    xfwd: false,
    followRedirects: false,
    selfHandleResponse: true,
    changeOrigin: false,
    proxyTimeout: SITE_IDLE_MS,
  });
  const agentFor = (target: string) => (target.startsWith("https:") ? agents.https : agents.http);
  proxy.on("proxyRes", (reply, _req, res) => relay(reply, res as ServerResponse));
  // Without a listener the library throws; each call below brings its own answer to errors.
  proxy.on("error", () => {});
  return {
    web(req, res, { target, headers, clientAddress }) {
      req.headers = forwardedHeaders(headers, clientAddress, false);
      proxy.web(req, res, { target, agent: agentFor(target) }, () => away(res));
    },
    upgrade(req, socket, head, { target, headers, clientAddress }) {
      req.headers = forwardedHeaders(headers, clientAddress, true);
      // The library ends the socket after this; the client sees that the upgrade failed.
      proxy.ws(req, socket as never, head, { target }, () => {});
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

/**
 * What the site gets to see of a request: its own cookies and credentials, never a key of ours (order of refusal, row
 * 1), never a hop-by-hop field, and the client's address only as this gateway knows it.
 */
export function forwardedHeaders(
  headers: RequestHeaders,
  clientAddress: string | undefined,
  upgrade: boolean,
): Record<string, string | string[]> {
  const hop = hopByHopNames(headers.all("connection").join(","));
  const forwarded: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of headers.entries()) {
    if (hop.has(name) || NOT_FORWARDED.has(name) || holdsKey(name, value)) continue;
    const known = forwarded[name];
    forwarded[name] = known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value];
  }
  if (clientAddress !== undefined) forwarded["x-forwarded-for"] = clientAddress;
  if (upgrade) {
    forwarded.connection = "Upgrade";
    forwarded.upgrade = "websocket";
  }
  return forwarded;
}

function holdsKey(name: string, value: string): boolean {
  if (name === "x-api-key") return true;
  return name === "authorization" && (looksLikeKey(value.slice(value.indexOf(" ") + 1)) || value.includes("sk-"));
}

function relay(reply: IncomingMessage, res: ServerResponse): void {
  const hop = hopByHopNames(reply.headers.connection);
  const headers: string[] = [];
  for (let i = 0; i + 1 < reply.rawHeaders.length; i += 2) {
    const name = (reply.rawHeaders[i] as string).toLowerCase();
    if (!hop.has(name) && !NOT_RETURNED.test(name)) headers.push(name, reply.rawHeaders[i + 1] as string);
  }
  if (res.destroyed) {
    reply.destroy();
    return;
  }
  res.writeHead(reply.statusCode ?? 502, headers);
  // A reply that breaks off must look broken, never complete.
  reply.on("error", () => res.destroy());
  reply.on("aborted", () => res.destroy());
  reply.pipe(res);
}

function away(res: ServerResponse): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const headers = { "content-type": "text/plain; charset=utf-8", "content-length": String(AWAY.length) };
  res.writeHead(502, headers).end(AWAY);
}
