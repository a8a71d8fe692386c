/** A real admin listener on a free port of 127.0.0.1 with a real embedded store in a folder of its own. */

import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { CodeGuesses } from "../../../src/console/guess-budget.ts";
import { type AdminListenerOptions, adminListener } from "../../../src/console/listener.ts";
import type { Store } from "../../../src/store/contract.ts";
import type { Catalog, Group } from "../../../src/values/catalog.ts";
import { MULTIPLIER_ONE } from "../../../src/values/price.ts";
import { Secret } from "../../../src/values/secret.ts";
import { type Address, urlOf } from "../../../src/values/settings.ts";
import { systemClock } from "../../../src/values/time.ts";
import { openTestStore } from "./test-store.ts";

export const ADMIN_TOKEN = "admin-token-for-tests-0123456789";

const limits = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 100, perKey: false };

function group(name: string, kind: Group["kind"]): [string, Group] {
  return [name, { name, kind, models: ["*"], multiplier: MULTIPLIER_ONE, limits, rules: [], addedInputBytes: 0 }];
}

/** Two plans and two groups, no models: the console uses nothing else. */
export const CATALOG: Catalog = {
  models: new Map(),
  groups: new Map([group("cards", "time_card"), group("big", "pay_per_use")]),
  cards: new Map(),
  plans: new Set(["free", "pro"]),
  defaultPlan: "free",
  version: "test",
};

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; `{}` if it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape and fail on the wrong one.
  readonly json: any;
}

export interface RunningConsole {
  readonly url: string;
  readonly store: Store;
  /** All that was logged, audit lines included. */
  readonly log: readonly Record<string, unknown>[];
  /**
   * Sends a request with the admin token, unless `headers` says otherwise; `body` is sent as JSON, and a string as it
   * is.
   */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  close(): Promise<void>;
}

/**
 * Starts a console; everything is closed when the test ends.
 * @param at a host, on any free port, or an address; `ask` cannot reach a socket.
 */
export async function startConsole(
  t: TestContext,
  changes: Partial<AdminListenerOptions> = {},
  at: string | Address = "127.0.0.1",
): Promise<RunningConsole> {
  const store = changes.store ?? (await openTestStore(t));
  const log: Record<string, unknown>[] = [];
  const listener = adminListener({
    store,
    catalog: () => CATALOG,
    adminToken: new Secret(ADMIN_TOKEN),
    random: randomBytes,
    codeGuesses: new CodeGuesses(changes.clock ?? systemClock),
    metrics: async () => ({ contentType: "text/plain; version=0.0.4", body: "up 1\n" }),
    readiness: () => ({ ready: true, reasons: [], notes: [] }),
    clock: systemClock,
    log: (line) => log.push(line as Record<string, unknown>),
    ...changes,
  });
  const url = urlOf(await listener.listen(typeof at === "string" ? { kind: "tcp", host: at, port: 0 } : at));
  t.after(() => listener.close());
  return {
    url,
    store,
    log,
    close: () => listener.close(),
    async ask(method, path, body, headers = {}) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${ADMIN_TOKEN}`,
          connection: "close",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isText(body) ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: readJson(text) };
    },
  };
}

const isText = (body: unknown): body is string | Buffer<ArrayBuffer> =>
  typeof body === "string" || Buffer.isBuffer(body);

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
