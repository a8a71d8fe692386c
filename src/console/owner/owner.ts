/**
 * The console of key owners: pages with their own API at the clients' address, restricted to one account. Its
 * application is loaded at the first request, because most gateways never need it.
 */
import { setImmediate } from "node:timers/promises";
import type { App } from "../app.ts";
import { NO_ADDRESS } from "../sign-in/attempts.ts";
import type { OwnerConsoleOptions } from "./contract.ts";

/** A request as the public listener has parsed it. */
interface OwnerRequest {
  readonly method: string;
  /** With the query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly clientAddress: string | undefined;
  /** Whether a trusted front has forwarded it. */
  readonly throughFront: boolean;
}

interface OwnerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Answers a request. Never rejects because of a client's mistake. */
export type OwnerConsole = (request: OwnerRequest) => Promise<OwnerAnswer>;

/**
 * For clients without a user agent: `inject` would otherwise set its own, and the owner would see it in the list of
 * sessions.
 */
const NO_PROGRAM = { "user-agent": "" };

/** Nothing is created before the first request. */
export function createOwnerConsole(options: OwnerConsoleOptions): OwnerConsole {
  let made: Promise<App> | undefined;
  const { trustedHeader = "" } = options.settings;
  return async ({ method, target, headers, body, clientAddress, throughFront }) => {
    // If the application could not be created, the next request tries again.
    made ??= makeApp(options).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    const app = await made;
    // Any client can write this header, so it is removed unless a trusted front has sent it. A repeated header arrives
    // as `a, b`, which names no account.
    const { [trustedHeader]: named, ...others } = headers;
    const answer = await app.inject({
      method: method as "GET",
      url: target,
      headers: { ...NO_PROGRAM, ...others, ...(throughFront && named !== undefined && { [trustedHeader]: named }) },
      payload: body.length === 0 ? undefined : Buffer.from(body),
      remoteAddress: clientAddress ?? NO_ADDRESS,
    });
    return { status: answer.statusCode, headers: single(answer.headers), body: answer.rawPayload };
  };
}

async function makeApp(options: OwnerConsoleOptions): Promise<App> {
  // Loaded over several turns of the event loop, so that client requests do not wait for all of it.
  await import("../app.ts");
  await setImmediate();
  const { ownerApp } = await import("./owner-app.ts");
  await setImmediate();
  const app = ownerApp(options);
  await app.ready();
  return app;
}

/** Converts headers to strings. Each name occurs only once: the console sends no repeated headers. */
function single(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const own = Object.entries(headers).filter(([name, value]) => value !== undefined && !OF_THE_CONNECTION.has(name));
  return Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
}

/** Headers that the listener sets when it writes the answer. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
]);
