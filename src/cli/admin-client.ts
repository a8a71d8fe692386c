/**
 * The command line's side of the admin API: finds the gateway and its token, asks, and turns every way of failing into
 * a sentence that says what to do. The token goes into one header and nowhere else.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type JsonObject, parseObject } from "../values/json-object.ts";
import { COMMAND } from "../values/program/program.ts";
import { Secret } from "../values/secret.ts";
import { CONFIG_FILE, DATA_DIR, DEMO_DATA_DIR } from "../values/settings.ts";
import { CliFailure } from "./failure.ts";
import type { Terminal } from "./output/terminal.ts";

/** The code of a failure where no gateway answered. */
export const UNREACHABLE = "unreachable";

const DEFAULT_URL = "http://127.0.0.1:8788";
/** Where `serve` puts the token that it makes, inside the data folder. */
const TOKEN_FILE = "admin-token";
/** How long one question to the gateway may take. */
const CALL_TIMEOUT_MS = 30_000;

export type Env = Readonly<Record<string, string | undefined>>;

interface AdminAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

export interface AdminClient {
  /**
   * @param path below `/admin/v1`, made with `segment`
   * @throws CliFailure when the gateway refuses or does not answer
   */
  call(method: "GET" | "POST" | "PUT", path: string, body?: object): Promise<AdminAnswer>;
}

/**
 * Makes a client from the environment: `TOLLGATE_ADMIN_URL`; `TOLLGATE_ADMIN_TOKEN`, else the file `admin-token` in the
 * data folder (`dataDir`, else `TOLLGATE_DATA`, else `./data`, where the demonstration's `./data/demo` is looked for first
 * as long as there is no `tollgate.yaml`).
 * @throws CliFailure 2 for an address that is none, 1 for a token that cannot be used
 */
export async function connectAdmin(env: Env, fetcher: typeof fetch, dataDir: string | undefined): Promise<AdminClient> {
  const base = adminBase(env);
  const { token, origin } = await findToken(env, dataDir);
  return {
    async call(method, path, body) {
      const headers: Record<string, string> = { accept: "application/json" };
      if (token) headers.authorization = `Bearer ${token.reveal()}`;
      if (body) headers["content-type"] = "application/json";
      const init = { method, headers, redirect: "error" as const, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) };
      let status: number;
      let text: string;
      try {
        const response = await fetcher(
          `${base}/admin/v1${path}`,
          body ? { ...init, body: JSON.stringify(body) } : init,
        );
        status = response.status;
        text = await response.text();
      } catch (error) {
        throw unreachable(base, error, method !== "GET");
      }
      const answer = parseObject(text);
      if (status < 300 && answer) return { status, body: answer };
      throw refused(base, status, answer, origin);
    },
  };
}

/**
 * One part of a path, from what was typed.
 * @throws CliFailure 2 for what a URL would resolve away
 */
export function segment(typed: string): string {
  if (typed === "" || typed === "." || typed === "..") {
    throw new CliFailure(2, `${JSON.stringify(typed)} is neither a name nor an id.`);
  }
  return encodeURIComponent(typed);
}

/**
 * The gateway's admin address, from the environment.
 * @throws CliFailure 2 for an address that is none
 */
export function adminBase({ TOLLGATE_ADMIN_URL: typed }: Env): string {
  return readBase(typed || DEFAULT_URL);
}

function readBase(typed: string): string {
  const url = URL.canParse(typed) ? new URL(typed) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    // The text is not repeated: it may hold a password.
    throw new CliFailure(2, `TOLLGATE_ADMIN_URL must be an address such as ${DEFAULT_URL}, without user or query.`);
  }
  return url.href.replace(/\/+$/, "");
}

async function findToken(
  env: Env,
  dataDir: string | undefined,
): Promise<{ token: Secret | undefined; origin: string }> {
  if (env.TOLLGATE_ADMIN_TOKEN) {
    const origin = "the environment variable TOLLGATE_ADMIN_TOKEN";
    return { token: asToken(env.TOLLGATE_ADMIN_TOKEN, origin), origin };
  }
  const file = join(dataDir ?? (env.TOLLGATE_DATA || defaultDataDir()), TOKEN_FILE);
  try {
    const token = asToken(await readFile(file, "utf8"), `the file ${file}`);
    return { token, origin: `the file ${file}; --data or TOLLGATE_DATA names another folder` };
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    const code = codeOf(error);
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      throw new CliFailure(1, `The token file ${file} cannot be read (${code}); set TOLLGATE_ADMIN_TOKEN instead.`);
    }
    return { token: undefined, origin: `nowhere: TOLLGATE_ADMIN_TOKEN is not set and there is no file ${file}` };
  }
}

/** The folder of what `serve` runs here: without a configuration that is the demonstration. */
function defaultDataDir(): string {
  const isDemo = !existsSync(CONFIG_FILE) && existsSync(join(DEMO_DATA_DIR, TOKEN_FILE));
  return isDemo ? DEMO_DATA_DIR : DATA_DIR;
}

function asToken(text: string, origin: string): Secret {
  const token = text.trim();
  if (!/^[!-~]+$/.test(token)) throw new CliFailure(1, `What stands in ${origin} is not an admin token.`);
  return new Secret(token);
}

/** Why there was no answer, for people. */
export function unreachable(base: string, error: unknown, write: boolean): CliFailure {
  const code = codeOf(error);
  if (code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EHOSTUNREACH") {
    const start = `Start it with: ${COMMAND} serve. If it listens elsewhere, set TOLLGATE_ADMIN_URL to its admin address.`;
    return new CliFailure(1, `No gateway answers at ${base} (${code}).\n${start}`, UNREACHABLE);
  }
  const lost = `The gateway at ${base} gave no whole answer (${code}).`;
  const advice =
    "Whether the change was made is unknown: look (show, list) before you repeat it. " +
    "Top-ups and adjustments are harmless to repeat with the same --id.";
  return new CliFailure(1, write ? `${lost}\n${advice}` : lost, UNREACHABLE);
}

function refused(base: string, status: number, answer: JsonObject | undefined, tokenOrigin: string): CliFailure {
  const error = answer?.error as JsonObject | undefined;
  if (typeof error?.message !== "string") {
    const hint = "Is TOLLGATE_ADMIN_URL the gateway's admin address?";
    const message = `What answers at ${base} (status ${status}) is not Tollgate's admin API.\n${hint}`;
    // A front whose gateway is away, for one.
    return new CliFailure(1, message, status >= 500 ? UNREACHABLE : undefined);
  }
  const lines = [`Refused: ${error.message}`];
  if (typeof error.remedy === "string") lines.push(error.remedy);
  if (status === 401) lines.push(`The token came from ${tokenOrigin}.`);
  return new CliFailure(1, lines.join("\n"), typeof error.code === "string" ? error.code : undefined);
}

/** The system's or fetch's code of a failure; fetch hides it in `cause`. Messages are not used: they may hold URLs. */
function codeOf(error: unknown): string {
  const failure = error as { code?: unknown; name?: unknown; cause?: unknown } | undefined;
  if (typeof failure?.code === "string") return failure.code;
  if (failure?.cause !== undefined) return codeOf(failure.cause);
  return typeof failure?.name === "string" ? failure.name : "unknown failure";
}

/*
 * A client for long commands: a store that does not answer for a moment must not undo the work of many minutes. What only
 * reads, or counts once however often it is sent, is asked again for a while.
 */

/** How long a store may not answer. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1_000;

/** @returns the same client; every call of it is one that may be sent again. */
export function patientClient(admin: AdminClient, terminal: Terminal): AdminClient {
  return {
    async call(method, path, body) {
      for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
        try {
          return await admin.call(method, path, body);
        } catch (error) {
          if (!(error instanceof CliFailure) || error.code !== "store_unavailable") throw error;
          if (waitedMs >= PATIENCE_MS) throw new CliFailure(1, givenUp(error));
          if (waitedMs === 0) terminal.note("The store does not answer; trying again for up to a minute.");
          terminal.progress(`Waiting for the store: ${waitedMs / 1_000} s`);
          await terminal.wait(PAUSE_MS);
        }
      }
    },
  };
}

function givenUp({ message }: CliFailure): string {
  return `${message}\nIt did not answer for ${PATIENCE_MS / 1_000} seconds.`;
}
