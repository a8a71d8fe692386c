/**
 * The admin listener. It answers monitoring requests itself. All other requests go to the application (`admin-app.ts`),
 * which is loaded at the first of them: loading it takes a fifth of the startup time, and memory that many gateways
 * never need.
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

/** After the application could not be created, requests fail for this long before it is tried again. */
export const AGAIN_MS = 1_000;
/** Statuses of refusals that concern access. */
const ACCESS_STATUS: ReadonlySet<number> = new Set([401, 403, 429]);

export interface AdminListenerOptions extends Omit<AdminAppOptions, "access" | "isUnix"> {
  /** If undefined, only programs on this machine have access. */
  readonly adminToken: Secret | undefined;
  /** Called with an address, or an IPv6 network, that has sent too many wrong tokens. */
  readonly onTokenGuesses?: (from: string) => void;
}

export interface AdminListener {
  /**
   * Starts to listen; called once.
   * @returns the address, with the port that the system chose for port 0. Rejects as node:net does.
   */
  listen(address: Address): Promise<Address>;
  /** Closes the listener. Running requests may finish within a grace period. */
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
   * The application. If it cannot be created, for example because descriptors ran out, the next attempt is a second
   * later: callers without a token must not be able to fill the log.
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
        // An application that is created now would never be closed.
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

  /** @param headers in addition to those that every answer has */
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
      // An application that could not be created has been logged.
      await made?.then(
        (app) => app.close(),
        () => {},
      );
      await closed;
    },
  };
}

async function makeApp(options: AdminAppOptions): Promise<App> {
  // Loaded over several turns of the event loop, so that client requests do not wait for all of it.
  await import("./app.ts");
  await setImmediate();
  const { adminApp } = await import("./admin-app.ts");
  await setImmediate();
  const app = adminApp(options);
  await app.ready();
  return app;
}

/**
 * All callers within one turn of the event loop get the same page, so that many connections do not delay clients by as
 * many renderings.
 */
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

/** The connection ends, because an unread body may be on its way. */
const FAILED = new AdminRefusal(INTERNAL.status, INTERNAL.code, INTERNAL.message, INTERNAL.remedy, {
  connection: "close",
});

function closing(): AdminRefusal {
  const headers = { connection: "close", "retry-after": "1" };
  return new AdminRefusal(503, "closing", "The gateway is shutting down.", "Retry when it runs again.", headers);
}

/** Other forms of such a request, for example HEAD or one with a body, go to the application. */
function isProbe({ method, url = "", headers }: IncomingMessage): boolean {
  if (method !== "GET" || !Object.hasOwn(PROBES, url)) return false;
  return headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
}
