/**
 * Everything that is not the API's: the operator's own site where there is one, else the built-in page. The listener
 * hands requests and upgrades over here and keeps the model paths to itself.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isRefusal, type Refusal } from "../values/errors.ts";
import { framing, framingFault } from "./framing.ts";
import { RequestHeaders } from "./headers.ts";
import type { HttpLimits } from "./http-limits.ts";
import type { ClientAddressOf } from "./identity.ts";
import type { Reply } from "./reply.ts";
import { routeOf, splitTarget } from "./routes.ts";
import { builtInSite, meantForApi } from "./site.ts";
import { createSiteProxy } from "./site-proxy.ts";

export interface SiteDoorParts {
  /** The configured site, or undefined for the built-in page. */
  readonly siteUrl: () => string | undefined;
  readonly limits: HttpLimits;
  readonly clientAddressOf: ClientAddressOf;
  /** Answers on a bare socket and closes it. */
  readonly answerRaw: (socket: Socket, refused: Refusal) => void;
}

/** A request for the site, as the listener has parsed it. */
export interface SiteVisit {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly headers: RequestHeaders;
  readonly method: string;
  readonly path: string;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
}

export class SiteDoor {
  readonly #parts: SiteDoorParts;
  readonly #proxy = createSiteProxy();
  /** Connections that the site has taken over; Node does not count them among its own. */
  readonly #upgraded = new Set<Socket>();

  constructor(parts: SiteDoorParts) {
    this.#parts = parts;
  }

  /** Serves a visit. A request that was meant for the API gets the built-in page and its hint, whatever the site is. */
  serve({ req, res, headers, method, path, awaitsContinue }: SiteVisit, reply: Reply): void {
    const target = this.#parts.siteUrl();
    const lost = meantForApi(method, headers);
    if (target === undefined || lost) {
      builtInSite({ method, path, meantForApi: lost }, reply);
      return;
    }
    if (awaitsContinue) res.writeContinue();
    this.#proxy.web(req, res, { target, headers, clientAddress: this.#parts.clientAddressOf(req.socket, headers) });
  }

  /** Whether an upgrade is the site's: there is none without a site, and none on an API path (row 18). */
  takesUpgrade(req: IncomingMessage): boolean {
    if (this.#parts.siteUrl() === undefined) return false;
    const route = routeOf(req.method ?? "", splitTarget(req.url ?? "").path, false);
    return !isRefusal(route) && route.kind === "site" && req.headers.upgrade?.toLowerCase() === "websocket";
  }

  /** Passes an upgraded connection on. */
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void {
    const headers = new RequestHeaders(req.rawHeaders);
    const target = this.#parts.siteUrl();
    const fault = framingFault(req, headers, this.#parts.limits);
    socket.on("error", () => socket.destroy());
    this.#upgraded.add(socket);
    socket.on("close", () => this.#upgraded.delete(socket));
    if (fault || target === undefined) {
      this.#parts.answerRaw(socket, fault ?? framing("There is no upgrade here."));
      return;
    }
    const clientAddress = this.#parts.clientAddressOf(socket, headers);
    this.#proxy.upgrade(req, socket, head, { target, headers, clientAddress });
  }

  /** Gives idle connections to the site back. */
  close(): void {
    this.#proxy.close();
  }

  /** Cuts the connections that the site has taken over. */
  destroy(): void {
    for (const socket of this.#upgraded) socket.destroy();
  }
}
