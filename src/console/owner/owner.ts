/**
 * The console of those who own keys: pages and an API of their own on the address where clients connect, for one account
 * each. Its application is read and made for the first who comes: most gateways never need it.
 */
import { setImmediate } from "node:timers/promises";
import type { App } from "../app.ts";
import { NO_ADDRESS } from "../sign-in/attempts.ts";
import type { OwnerConsoleOptions } from "./contract.ts";

/** A request as the public listener has judged it. */
interface OwnerRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly clientAddress: string | undefined;
  /** Whether a front that the operator trusts has passed it on. */
  readonly throughFront: boolean;
}

interface OwnerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Gives the console's answer to a request. Never rejects for a caller's fault. */
export type OwnerConsole = (request: OwnerRequest) => Promise<OwnerAnswer>;

/** Whoever does not say what program it is: `inject` would put its own name there, and the owner find it among the sessions. */
const NO_PROGRAM = { "user-agent": "" };

/** Nothing of it is made before the first request. */
export function createOwnerConsole(options: OwnerConsoleOptions): OwnerConsole {
  let made: Promise<App> | undefined;
  const { trustedHeader = "" } = options.settings;
  return async ({ method, target, headers, body, clientAddress, throughFront }) => {
    // One that could not be made is tried again for the next who comes.
    made ??= makeApp(options).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    const app = await made;
    // Anybody can write a header: only a front that the operator trusts is believed, and what it said twice says nothing.
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
  // Read in several turns of the loop, so that requests of clients do not wait for all of it.
  await import("../app.ts");
  await setImmediate();
  const { ownerApp } = await import("./owner-app.ts");
  await setImmediate();
  const app = ownerApp(options);
  await app.ready();
  return app;
}

/** A header that is there twice would be the last one here: the console sends none of that kind. */
function single(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const own = Object.entries(headers).filter(([name, value]) => value !== undefined && !OF_THE_CONNECTION.has(name));
  return Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
}

/** What whoever writes the answer sets. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "transfer-encoding",
]);
