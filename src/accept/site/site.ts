/**
 * Everything outside the API: the operator's own site if there is one, else the built-in page. The listener passes
 * requests and upgrades to it, except those for the model paths.
 *
 * The site gets the target byte for byte, the body with its original framing, and none of our keys. Each request has
 * its own connection, so no visitor's bytes can become part of another's request or answer.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { isRefusal, type Refusal, refusal } from "../../values/errors.ts";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol } from "../../values/protocol.ts";
import type { RequestBody } from "../body.ts";
import type { DescriptorShares } from "../descriptors.ts";
import { RequestHeaders } from "../headers.ts";
import { carriesKey } from "../key.ts";
import type { Reply, ReplyHeaders } from "../reply.ts";
import { hintFor, hintHeader, isOfAdmin, isRoot, routeOf, splitTarget } from "../routes.ts";
import { SiteAddress, SiteCall, type SiteFailure } from "./call.ts";
import { answerHead, hasBody, requestHead, targetFault, type VisitHead } from "./head.ts";
import { SITE_LIMITS, type SiteLimits, SiteSlots, withinSiteShare } from "./slots.ts";
import { type TunnelEnd, tunnel } from "./tunnel.ts";

interface SiteParts {
  /** The configured site; undefined for the built-in page. */
  readonly siteUrl: () => string | undefined;
  readonly limits: Partial<SiteLimits> | undefined;
  readonly shares: DescriptorShares | undefined;
  /** The path of the console's pages, which the site never serves; undefined if there are none. */
  readonly consolePath: string | undefined;
  /** The address of the console's pages, which the built-in page names; undefined if there are none. */
  readonly consoleUrl: string | undefined;
  /** How long a closed connection may still send what it has buffered. */
  readonly lingerMs: number;
  readonly refuse: (refused: Refusal, protocol: Protocol, reply: Reply) => void;
}

/** A request for the site, as the listener has parsed it. */
export interface Visit extends VisitHead {
  readonly req: IncomingMessage;
  readonly body: RequestBody;
  /** The protocol whose error format a refusal uses. */
  readonly protocol: Protocol;
}

export class Site {
  readonly #parts: SiteParts;
  readonly #limits: SiteLimits;
  readonly #requests: SiteSlots;
  readonly #upgrades: SiteSlots;
  readonly #page: Buffer;
  /** Connections that Node no longer counts among its own. */
  readonly #upgraded = new Set<Socket>();
  #address: { readonly url: string; readonly parsed: SiteAddress } | undefined;

  constructor(parts: SiteParts) {
    this.#parts = parts;
    this.#page = builtInPage(parts.consoleUrl);
    this.#limits = withinSiteShare({ ...SITE_LIMITS, ...parts.limits }, parts.shares);
    const { requestsMax, upgradesMax, waitingMax, waitMs } = this.#limits;
    this.#requests = new SiteSlots({ slotsMax: requestsMax, waitingMax, waitMs });
    this.#upgrades = new SiteSlots({ slotsMax: upgradesMax, waitingMax, waitMs });
  }

  /** Serves a visit. A request that was meant for the API never reaches the site: it gets a hint instead. */
  async serve(visit: Visit, reply: Reply): Promise<void> {
    const { method, target, headers } = visit;
    const address = this.#addressNow();
    const lost = meantForApi(method, headers);
    if (address === undefined || lost) {
      const request = { method, path: splitTarget(target).path, meantForApi: lost };
      const refused = address === undefined ? nothingThere(request) : undefined;
      if (refused) this.#parts.refuse(refused, visit.protocol, reply);
      else builtInSite(request, this.#page, reply);
      return;
    }
    await this.#pass(visit, address, reply, undefined);
  }

  /**
   * Whether a request is an upgrade for the site. Requests for other protocols are served as if they had not asked (RFC
   * 9110 section 7.8). An upgrade has no body, because a body before another protocol would need a framing of its own.
   */
  takesUpgrade(req: IncomingMessage): boolean {
    if (this.#parts.siteUrl() === undefined || req.method !== "GET" || req.httpVersion !== "1.1") return false;
    const headers = new RequestHeaders(req.rawHeaders);
    if (headers.get("upgrade")?.toLowerCase() !== "websocket" || hasBody(headers)) return false;
    const route = routeOf("GET", splitTarget(req.url ?? "").path, false, this.#parts.consolePath);
    return !isRefusal(route) && route.kind === "site";
  }

  /** Passes an upgrade on, from a connection that Node has detached; `reply` answers on the bare connection. */
  async upgrade(visit: Visit, reply: Reply, upgrade: TunnelEnd): Promise<void> {
    const address = this.#addressNow();
    if (address === undefined) {
      const request = { method: visit.method, path: splitTarget(visit.target).path, meantForApi: false };
      builtInSite(request, this.#page, reply);
      return;
    }
    this.#upgraded.add(upgrade.socket);
    upgrade.socket.on("close", () => this.#upgraded.delete(upgrade.socket));
    await this.#pass(visit, address, reply, upgrade);
  }

  /** Closes the connections that Node no longer counts among its own. */
  destroy(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }

  async #pass(visit: Visit, address: SiteAddress, reply: Reply, upgrade: TunnelEnd | undefined): Promise<void> {
    const fault = targetFault(visit, address.basePath);
    if (fault) return this.#parts.refuse(fault, visit.protocol, reply);
    const over = new AbortController();
    let bodyFault: Refusal | undefined;
    reply.onGone(() => over.abort());
    visit.body.onFault((found) => {
      bodyFault = found;
      over.abort();
    });
    const slots = upgrade ? this.#upgrades : this.#requests;
    const release = await slots.acquire(visit.clientAddress, over.signal);
    try {
      const failure = release ? await this.#ask(visit, address, reply, upgrade, over.signal) : "full";
      if (failure === undefined || reply.gone) return;
      if (bodyFault) this.#parts.refuse(bodyFault, visit.protocol, reply);
      else if (failure === "full") this.#parts.refuse(FULL, visit.protocol, reply);
      else explain(failure, reply);
    } finally {
      release?.();
    }
  }

  /**
   * Asks the site and passes its answer to the visitor. Then the connection to the site is closed.
   * @param over aborted when the visitor disconnects or the body breaks off.
   * @returns why the visitor has no answer; undefined if there was one, complete or broken.
   */
  async #ask(
    visit: Visit,
    address: SiteAddress,
    reply: Reply,
    upgrade: TunnelEnd | undefined,
    over: AbortSignal,
  ): Promise<SiteFailure | undefined> {
    if (over.aborted) return "abandoned";
    const call = new SiteCall({
      address,
      method: visit.method,
      target: visit.target,
      head: requestHead(visit, address.host, upgrade !== undefined),
      upgrade: upgrade !== undefined,
      limits: this.#limits,
      onContinue: () => visit.body.askForIt(),
    });
    over.addEventListener("abort", () => call.close());
    try {
      call.send(hasBody(visit.headers) ? visit.req : undefined);
      const outcome = await call.outcome;
      if (outcome.kind === "failed") return outcome.failure;
      if (reply.gone) return undefined;
      if (outcome.kind === "answer") await relay(outcome.answer, reply);
      else if (upgrade) {
        reply.switchProtocols(answerHead(outcome.answer));
        await tunnel(upgrade, outcome, { idleMs: this.#limits.idleMs, lingerMs: this.#parts.lingerMs });
      }
      return undefined;
    } finally {
      call.close();
    }
  }

  /** The address is parsed once per configuration. */
  #addressNow(): SiteAddress | undefined {
    const url = this.#parts.siteUrl();
    if (url === undefined) return undefined;
    if (this.#address?.url !== url) this.#address = { url, parsed: new SiteAddress(url) };
    return this.#address.parsed;
  }
}

const FULL = refusal("overloaded", { detail: "The site has no free connection for this address." });

/** Passes an answer on. If it breaks off or times out, it must look broken and never complete. */
function relay(answer: IncomingMessage, reply: Reply): Promise<void> {
  reply.openRelayed(answer.statusCode as number, answerHead(answer));
  answer.on("data", (bytes: Uint8Array) => {
    if (!reply.write(bytes)) answer.pause();
  });
  reply.onDrain(() => answer.resume());
  answer.on("end", () => reply.end());
  answer.on("error", () => {});
  answer.on("close", () => {
    if (!reply.ended) reply.destroy();
  });
  if (answer.destroyed) reply.destroy();
  return reply.finished;
}

const TEXT = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };

function explain(failure: SiteFailure, reply: Reply): void {
  const silent = failure === "silent";
  const words = failure === "invalid" ? "does not speak HTTP as it should" : "does not answer";
  reply.whole(silent ? 504 : 502, TEXT, Buffer.from(`The site behind this gateway ${words}.\n`));
}

/*
 * The answer for every path outside the API: one page that is made at the start (docs/failure-model.md row 43). It
 * repeats nothing of the request.
 *
 * With a site of the operator, `site.ts` passes requests on to it; requests that were meant for the API still get this
 * page. Without a site, requests that were meant for the API or the admin address get a 404, so that no program
 * mistakes the page for its answer. The root always gets the page.
 */

/** What the built-in page needs to know about a request; `meantForApi` if it carries a key or JSON. */
interface SiteRequest {
  readonly method: string;
  readonly path: string;
  readonly meantForApi: boolean;
}

const PATHS = PROTOCOL_NAMES.map((name) => PROTOCOLS[name].path);

const PROGRAMS = "programs send <code>POST</code> requests to:";

/** @param consoleUrl the address of the console's pages, if there are any */
function builtInPage(consoleUrl: string | undefined): Buffer {
  const console = consoleUrl && `The console, for owners of keys, is at <a href="${consoleUrl}">${consoleUrl}</a>.`;
  return Buffer.from(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tollgate</title>
</head>
<body>
<h1>Tollgate</h1>
${
  console
    ? `<p>This is a model gateway. ${console}</p>\n<p>At this address, ${PROGRAMS}</p>`
    : `<p>This is a model gateway. There is nothing to see at this address; ${PROGRAMS}</p>`
}
<ul>
${PATHS.map((path) => `<li><code>${path}</code></li>`).join("\n")}
</ul>
<p>If a program brought you here, its base address is wrong: most need one that ends in <code>/v1</code>.</p>
</body>
</html>
`,
    "utf8",
  );
}

const PAGE_HEADERS: ReplyHeaders = Object.freeze({
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
});

/** The page if there is no configuration. Only programs send a POST here, so it gets the hint, whatever it carries. */
function builtInSite(request: SiteRequest, page: Buffer, reply: Reply): void {
  const hint = request.method === "POST" ? hintOf(request.path) : {};
  reply.whole(200, { ...PAGE_HEADERS, ...hint }, page);
}

/** Why a request gets no page when there is no site; undefined if it gets the page. */
function nothingThere({ path, meantForApi }: SiteRequest): Refusal | undefined {
  if (isOfAdmin(path)) return refusal("unknown_path", { detail: "Health and metrics are at the admin address alone." });
  if (!meantForApi || isRoot(path)) return undefined;
  const meant = hintFor(path);
  // A path that ends with the whole of an API path comes from a base address that is made for another server.
  const isLonger = meant !== undefined && path.toLowerCase().endsWith(meant);
  const wrong = `he base address of the client probably ${isLonger ? "has a part too many" : "lacks /v1"}.`;
  const detail = meant === undefined ? `T${wrong}` : `Use ${meant}: t${wrong}`;
  return refusal("unknown_path", { detail }, { headers: hintOf(path) });
}

const hintOf = (path: string): Record<string, string> => hintHeader(hintFor(path) ?? PATHS.join(" or "));

/** Whether a request for the site was probably meant for the API: a POST with a key or JSON. */
function meantForApi(method: string, headers: RequestHeaders): boolean {
  const json = headers.get("content-type")?.toLowerCase().startsWith("application/json") === true;
  return method === "POST" && (json || carriesKey(headers));
}
