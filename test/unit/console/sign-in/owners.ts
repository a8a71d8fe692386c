/**
 * The console of owners without a listener: requests as the public listener passes them on, and browsers with their own
 * cookies.
 */

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Audit } from "../../../../src/console/audit/audit.ts";
import { CodeGuesses } from "../../../../src/console/guess-budget.ts";
import { createOwnerConsole, type OwnerConsole } from "../../../../src/console/owner/owner.ts";
import { makeLink } from "../../../../src/console/sign-in/links.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import type { Store } from "../../../../src/store/contract.ts";
import { openEmbedded } from "../../../../src/store/embedded/store.ts";
import { type AccountTag, newAccountTag } from "../../../../src/values/key.ts";
import { Secret } from "../../../../src/values/secret.ts";
import type { ConsoleSettings } from "../../../../src/values/settings.ts";
import { ManualClock } from "../../settle/rig.ts";
import { CATALOG } from "../running-console.ts";

export const HOST = "gate.example";
export const ORIGIN = `https://${HOST}`;

const SETTINGS: ConsoleSettings = {
  path: "/console",
  publicUrl: ORIGIN,
  sessionMs: 3_600_000,
  invitationMs: 900_000,
  oidc: undefined,
  trustedHeader: undefined,
  support: { email: undefined, url: undefined },
};

export interface Owners {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly log: readonly Record<string, unknown>[];
  readonly console: OwnerConsole;
  account(name: string): Promise<AccountTag>;
  link(tag: AccountTag, lastsMs?: number): Promise<string>;
  /** A new browser. */
  browser(where?: Where): Browser;
}

/** Unseals what a browser carries, for tests that examine it. */
export const SEALER = createSealing([new Secret("a test's own sealing key, 32 characters")]);

/** @param over wraps the store for the console; without it the console uses the store itself. */
export async function startOwners(
  t: TestContext,
  settings: Partial<ConsoleSettings> = {},
  over: (store: Store) => Store = (store) => store,
  catalog = CATALOG,
): Promise<Owners> {
  const clock = new ManualClock();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-owners-"));
  const real = openEmbedded(dir, () => clock.wallMs());
  const store = over(real);
  t.after(async () => {
    await real.close();
    await rm(dir, { recursive: true });
  });
  const log: Record<string, unknown>[] = [];
  const noted = (line: object, level = "info") => log.push({ ...line, level });
  const console = createOwnerConsole({
    explain: () => Promise.resolve(undefined),
    store,
    catalog: () => catalog,
    clock,
    random: randomBytes,
    codeGuesses: new CodeGuesses(clock),
    settings: { ...SETTINGS, ...settings },
    sealer: SEALER,
    audit: new Audit(clock, noted),
    log: noted,
  });
  return {
    store,
    clock,
    log,
    console,
    async account(name) {
      const tag = newAccountTag(randomBytes);
      await store.createAccount({ tag, name, plan: "free" });
      return tag;
    },
    link: (tag, lastsMs = 900_000) => makeLink(store, randomBytes, tag, lastsMs),
    browser: (where) => new Browser(console, where),
  };
}

/** With one character in the middle changed: the last character may have unused bits. */
export function bent(text: string): string {
  const at = Math.floor(text.length / 2);
  return text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
}

interface Where {
  /** `unix`: no address. */
  readonly address?: string;
  readonly origin?: string;
  readonly host?: string;
  readonly throughFront?: boolean;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every form and fail on the wrong one.
  readonly json: any;
  /** The code of a refusal. */
  readonly code: string | undefined;
}

/** Keeps cookies and sends the headers that a browser sends for a page. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #console: OwnerConsole;
  where: Where;

  constructor(console: OwnerConsole, where: Where = {}) {
    this.#console = console;
    this.where = where;
  }

  /** @param path below the console's API, or from the root if it begins with /console. */
  async ask(method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Got> {
    const { address = "192.0.2.1", origin = ORIGIN, host = HOST, throughFront = false } = this.where;
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await this.#console({
      method,
      target: path.startsWith("/console") ? path : `/console/api${path}`,
      headers: {
        host,
        "x-tollgate-console": "1",
        "sec-fetch-site": "same-origin",
        ...(method === "GET" ? {} : { origin }),
        ...(body && { "content-type": "application/json" }),
        ...(cookie && { cookie }),
        ...this.where.headers,
        ...headers,
      },
      body: Buffer.from(body ? JSON.stringify(body) : ""),
      clientAddress: address === "unix" ? undefined : address,
      throughFront,
    });
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(answer.headers["set-cookie"] ?? "") ?? [];
    if (value !== "") this.cookies.set(name, value);
    else if (name !== "") this.cookies.delete(name);
    const text = Buffer.from(answer.body).toString();
    const json = text.startsWith("{") ? JSON.parse(text) : {};
    return { status: answer.status, headers: answer.headers, json, code: json.error?.code };
  }

  post(path: string, body?: object): Promise<Got> {
    return this.ask("POST", path, body);
  }

  get(path: string): Promise<Got> {
    return this.ask("GET", path);
  }

  /** The account that it is signed in to; undefined if none. */
  async account(): Promise<string | undefined> {
    return (await this.get("/session")).json.account;
  }
}
