/**
 * The admin listener. What monitoring asks it answers itself; all else is the application's (`admin-app.ts`), which is read and
 * made for the first who asks for more: it would be a fifth of a start, and memory that many gateways never need.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { newRequestId, printRequestId } from "../values/request-id.ts";
import type { Secret } from "../values/secret.ts";
import type { Address } from "../values/settings.ts";
import { type AccessReason, makeAccess } from "./access.ts";
import type { AdminAppOptions } from "./admin-app.ts";
import type { App } from "./app.ts";
import { GuessBudget, TOKEN_GUESS_LIMITS } from "./guess-budget.ts";
import { PROBES, type ProbeAnswer, type ProbeParts } from "./probes.ts";
import { AdminRefusal, defectLine, INTERNAL, refusalBody } from "./refusal.ts";
import { assertFraming, Servers } from "./servers.ts";

/** How long an application that could not be made is not tried again. */
export const AGAIN_MS = 1_000;
/** Of refusals that say who may ask. */
const ACCESS_STATUS: ReadonlySet<number> = new Set([401, 403, 429]);

export interface AdminListenerOptions extends Omit<AdminAppOptions, "access" | "isUnix"> {
  /** Undefined: only programs on this machine may administer. */
  readonly adminToken: Secret | undefined;
  /** Called with an address, or an IPv6 network, that has sent too many wrong tokens. */
  readonly onTokenGuesses?: (from: string) => void;
}

export interface AdminListener {
  /** Begins to listen, once. @returns the address, with the port that the system chose for port 0. Rejects as node:net does. */
  listen(address: Address): Promise<Address>;
  /** Answers that are under way may end, for a time. */
  close(): Promise<void>;
}

/** Builds the listener; nothing is bound here. */
export function adminListener(options: AdminListenerOptions): AdminListener {
  const { clock } = options;
  const budget = new GuessBudget(clock, TOKEN_GUESS_LIMITS);
  const access = makeAccess(options.adminToken, { budget, onTooMany: (from) => options.onTokenGuesses?.(from) });
  const metrics = madeOnceATurn(options.metrics);
  let isUnix = false;
  let isClosing = false;
  let made: Promise<App> | undefined;

  /**
   * One that could not be made, for want of descriptors perhaps, is tried again for who asks a second later: who asks without a token
   * must not fill the log.
   */
  function application(): Promise<App> {
    made ??= makeApp({ ...options, metrics, access, isUnix }).catch((error: unknown) => {
      options.log(defectLine(error, undefined, undefined));
      clock.after(AGAIN_MS, () => {
        made = undefined;
      });
      throw FAILED;
    });
    return made;
  }

  async function probe(path: keyof typeof PROBES, { socket, headers }: IncomingMessage): Promise<ProbeAnswer> {
    const { access: asked, answer } = PROBES[path];
    if (asked === "metrics") access.metrics({ address: socket.remoteAddress, unix: isUnix, headers });
    return answer({ ...options, metrics }, headers.accept);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      assertFraming(request);
      if (!isProbe(request)) {
        // An application that is made now would be closed by nobody.
        if (isClosing) throw closing();
        (await application()).routing(request, response);
        return;
      }
      const { status, contentType, body } = await probe(request.url as keyof typeof PROBES, request);
      send(response, status, { "content-type": contentType }, body);
    } catch (error) {
      const isRefused = error instanceof AdminRefusal;
      if (!isRefused) options.log(defectLine(error, request.method, isProbe(request) ? request.url : undefined));
      else if (ACCESS_STATUS.has(error.status)) options.onAccessRefused?.(error.code as AccessReason);
      if (response.headersSent) response.destroy();
      else refuse(response, isRefused ? error : FAILED);
    }
  }

  /** @param headers beside those that every answer has. */
  function send(response: ServerResponse, status: number, headers: Record<string, string>, body: string): void {
    const id = printRequestId(newRequestId(clock.wallMs(), options.random));
    const length = Buffer.byteLength(body);
    response.writeHead(status, { ...HEADERS, "x-request-id": id, ...headers, "content-length": length });
    response.end(body);
  }

  function refuse(response: ServerResponse, refusal: AdminRefusal): void {
    const headers = { ...refusal.headers, "content-type": "application/json; charset=utf-8" };
    send(response, refusal.status, headers, JSON.stringify(refusalBody(refusal)));
  }

  const servers = new Servers((request, response) => void answer(request, response));
  return {
    listen(address) {
      isUnix = address.kind === "unix";
      return servers.listen(address);
    },
    async close() {
      isClosing = true;
      const closed = servers.close(clock);
      // One that could not be made has been logged.
      await made?.then(
        (app) => app.close(),
        () => {},
      );
      await closed;
    },
  };
}

async function makeApp(options: AdminAppOptions): Promise<App> {
  // Read in several turns of the loop, so that requests of clients do not wait for all of it.
  await import("./app.ts");
  await setImmediate();
  const { adminApp } = await import("./admin-app.ts");
  await setImmediate();
  const app = adminApp(options);
  await app.ready();
  return app;
}

/** Who asks in one turn of the loop gets one page: many connections must not have clients wait for as many. */
function madeOnceATurn(make: ProbeParts["metrics"]): ProbeParts["metrics"] {
  const pages = new Map<string, ReturnType<ProbeParts["metrics"]>>();
  return (accept = "") => {
    const known = pages.get(accept);
    if (known) return known;
    if (pages.size === 0) void setImmediate().then(() => pages.clear());
    const page = make(accept);
    pages.set(accept, page);
    return page;
  };
}

const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** A body that nobody will read may be on its way. */
const FAILED = new AdminRefusal(INTERNAL.status, INTERNAL.code, INTERNAL.message, INTERNAL.remedy, {
  connection: "close",
});

function closing(): AdminRefusal {
  const headers = { connection: "close", "retry-after": "1" };
  return new AdminRefusal(503, "closing", "The gateway closes.", "Ask again when it runs.", headers);
}

/** Any other form of such a request, as HEAD or one with a body, is left to the application. */
function isProbe({ method, url = "", headers }: IncomingMessage): boolean {
  if (method !== "GET" || !Object.hasOwn(PROBES, url)) return false;
  return headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
}
