/**
 * The command line's side of the admin API: finds the gateway and its token, asks, and turns every way of failing into
 * a sentence that says what to do. The token goes into one header and nowhere else.
 */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type JsonObject, parseObject } from "../values/json-object.ts";
import { codedFailure, codeOfFailure } from "../values/program/error-text.ts";
import { COMMAND } from "../values/program/program.ts";
import { Secret } from "../values/secret.ts";
import { DATA_DIR, DEMO_DATA_DIR } from "../values/settings.ts";
import { type AdminAddress, adminAddress, type TypedAddress } from "./admin-address.ts";
import { CliFailure } from "./failure.ts";
import type { Terminal } from "./output/terminal.ts";

/** The code of a failure where no gateway answered. */
export const UNREACHABLE = "unreachable";

/** Where `serve` puts the token that it makes, inside the data folder. */
const TOKEN_FILE = "admin-token";
/** How long one question to the gateway may take. */
const CALL_TIMEOUT_MS = 30_000;

export type Env = TypedAddress["env"];

/** Where a command looks for its gateway: what was typed comes before what the environment says. */
export interface GatewayPlace extends TypedAddress {
  /** `--data`: the folder that holds the token. */
  readonly data?: string | undefined;
  /** Ends what is under way. */
  readonly stop?: AbortSignal | undefined;
}

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
 * Makes a client. The address is `--admin`, else `TOLLGATE_ADMIN_URL`; the token is `TOLLGATE_ADMIN_TOKEN`, else in the file
 * `admin-token` of the data folder (`--data`, else `TOLLGATE_DATA`, else `./data`, else the demonstration's `./data/demo`:
 * where the gateway that answers does not take the first, it is shown the second).
 * @throws CliFailure 2 for an address that is none, 1 for a token that cannot be used
 */
export async function connectAdmin(place: GatewayPlace): Promise<AdminClient> {
  const address = adminAddress(place);
  const { tokens, origin } = await findTokens(place);
  let inUse = 0;
  return {
    async call(method, path, body) {
      for (let tried = inUse; ; tried++) {
        const { status, answer } = await ask({ ...place, address }, { method, path, body }, tokens[tried]);
        if (status < 300 && answer) return { status, body: answer };
        // Whoever shows a wrong token has had nothing done, so that a write may be sent again.
        if (!isWrongToken(answer) || tried + 1 >= tokens.length) throw refused(address.name, status, answer, origin);
        inUse = tried + 1;
      }
    },
  };
}

/** What is asked by POST and changes nothing. */
const READS: ReadonlySet<string> = new Set(["/explain"]);

/** Sends one question. @throws CliFailure 1 where there is no whole answer. */
async function ask(
  { address, stop }: Pick<GatewayPlace, "stop"> & { address: AdminAddress },
  { method, path, body }: { method: string; path: string; body: object | undefined },
  token: Secret | undefined,
): Promise<{ status: number; answer: JsonObject | undefined }> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token.reveal()}`;
  if (body) headers["content-type"] = "application/json";
  const late = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const signal = stop ? AbortSignal.any([late, stop]) : late;
  const init = { method, headers, redirect: "error" as const, signal };
  try {
    const url = `${address.base}/admin/v1${path}`;
    const response = await address.fetch(url, body ? { ...init, body: JSON.stringify(body) } : init);
    return { status: response.status, answer: parseObject(await response.text()) };
  } catch (error) {
    throw unreachable(address.name, error, method !== "GET" && !READS.has(path));
  }
}

function isWrongToken(answer: JsonObject | undefined): boolean {
  const { code } = (answer?.error ?? {}) as JsonObject;
  return code === "wrong_token" || code === "too_many_wrong_tokens";
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

interface FoundTokens {
  /** In the order in which they are shown; empty where there is none. */
  readonly tokens: readonly Secret[];
  /** Where they came from, for people. */
  readonly origin: string;
}

async function findTokens({ env, data }: Pick<GatewayPlace, "env" | "data">): Promise<FoundTokens> {
  if (env.TOLLGATE_ADMIN_TOKEN) {
    const origin = "the environment variable TOLLGATE_ADMIN_TOKEN";
    return { tokens: [asToken(env.TOLLGATE_ADMIN_TOKEN, origin)], origin };
  }
  const named = data ?? (env.TOLLGATE_DATA || undefined);
  const files = (named === undefined ? [DATA_DIR, DEMO_DATA_DIR] : [named]).map((dir) => join(dir, TOKEN_FILE));
  const found: { file: string; token: Secret }[] = [];
  for (const file of files) {
    // What is wrong with a second one is of no interest where there is a first.
    const read = await readToken(file).catch((error) => (found.length > 0 ? undefined : Promise.reject(error)));
    if (read) found.push(read);
  }
  if (found.length === 0) {
    const where = `${resolve(files[0] as string)}; --data or TOLLGATE_DATA names another folder`;
    return { tokens: [], origin: `nowhere: TOLLGATE_ADMIN_TOKEN is not set and there is no file ${where}` };
  }
  const from = found.map(({ file }) => `the file ${file}`).join(", then ");
  return {
    tokens: found.map(({ token }) => token),
    origin: `${from}; --data or TOLLGATE_DATA names another folder`,
  };
}

/** The token of a file; undefined where there is none. */
async function readToken(file: string): Promise<{ file: string; token: Secret } | undefined> {
  try {
    return { file, token: asToken(await readFile(file, "utf8"), `the file ${file}`) };
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    const code = codeOfFailure(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CliFailure(1, `The token file ${file} cannot be read (${code}); set TOLLGATE_ADMIN_TOKEN instead.`);
  }
}

function asToken(text: string, origin: string): Secret {
  const token = text.trim();
  if (!/^[!-~]+$/.test(token)) throw new CliFailure(1, `What stands in ${origin} is not an admin token.`);
  return new Secret(token);
}

/** Nobody was reached, so that nothing can have been done. */
const NO_CONNECTION: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"],
  // There is no file of the socket, or none that is one.
  ...["ENOENT", "ENOTDIR", "ENOTSOCK"],
]);
/** What was under way when it failed, where that is told: a connection that there was may end for want of a way, too. */
const CONNECTING: ReadonlySet<unknown> = new Set([undefined, "connect", "getaddrinfo"]);
/** What OpenSSL makes of an answer in plain HTTP. */
const NO_TLS = "ERR_SSL_WRONG_VERSION_NUMBER";
/** OpenSSL's names for a certificate that it does not accept, before anything of ours is sent. */
const CERTIFICATE = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|ERR_TLS_CERT_)/;

/**
 * Why there was no answer, for people.
 * @param name of the address that was asked.
 * @param write whether something may have been changed, had the question arrived.
 */
export function unreachable(name: string, error: unknown, write: boolean): CliFailure {
  const code = codeOfFailure(error);
  if (NO_CONNECTION.has(code) && CONNECTING.has(codedFailure(error).syscall)) {
    const start = `Start it with: ${COMMAND} serve. If its admin address is another, name it by --admin or TOLLGATE_ADMIN_URL.`;
    return new CliFailure(1, `No gateway answers at ${name} (${code}).\n${start}`, UNREACHABLE);
  }
  if (code === "EACCES" && name.startsWith("unix:")) {
    const who = "It is for the gateway's user and group (mode 0660), and each folder above it must be open to you.";
    return new CliFailure(1, `You may not use the socket ${name} (${code}).\n${who}`);
  }
  if (code === NO_TLS) {
    const message = `What answers at ${name} does not speak TLS (${code}).`;
    return new CliFailure(
      1,
      `${message}\nThe address may have to begin with http:// (--admin or TOLLGATE_ADMIN_URL).`,
      UNREACHABLE,
    );
  }
  if (CERTIFICATE.test(code)) {
    const message = `The certificate of what answers at ${name} is not accepted (${code}); nothing was sent.`;
    return new CliFailure(1, `${message}\nNODE_EXTRA_CA_CERTS names a file with further authorities.`, UNREACHABLE);
  }
  const lost = `The gateway at ${name} gave no whole answer (${code}).`;
  const advice =
    "Whether the change was made is unknown: look (show, list) before you repeat it. " +
    "Top-ups and adjustments are harmless to repeat with the same --id.";
  return new CliFailure(1, write ? `${lost}\n${advice}` : lost, UNREACHABLE);
}

function refused(name: string, status: number, answer: JsonObject | undefined, tokenOrigin: string): CliFailure {
  const error = answer?.error as JsonObject | undefined;
  const hint = "Is that the gateway's admin address? --admin or TOLLGATE_ADMIN_URL names another.";
  // Only what is said to clients has a cause.
  if (typeof error?.cause === "string") {
    return new CliFailure(1, `What answers at ${name} (status ${status}) is a gateway's address for clients.\n${hint}`);
  }
  if (typeof error?.message !== "string") {
    const message = `What answers at ${name} (status ${status}) is not Tollgate's admin API.\n${hint}`;
    // A front whose gateway is away, for one.
    return new CliFailure(1, message, status >= 500 ? UNREACHABLE : undefined);
  }
  const lines = [`Refused: ${error.message}`];
  if (typeof error.remedy === "string") lines.push(error.remedy);
  if (status === 401) lines.push(`The token came from ${tokenOrigin}.`);
  return new CliFailure(1, lines.join("\n"), typeof error.code === "string" ? error.code : undefined);
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
