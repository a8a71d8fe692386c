/**
 * The client of the admin API: finds the gateway and its token, sends requests, and turns every failure into a message
 * that says what to do. The token is sent only in the authorization header.
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
import { commandAt, reachingSame } from "./output/printed-command.ts";
import type { Terminal } from "./output/terminal.ts";

/** The code of a failure if no gateway answered. */
export const UNREACHABLE = "unreachable";

/** The file in the data folder to which `serve` writes the token that it generates. */
const TOKEN_FILE = "admin-token";
/** How long one request to the gateway may take. */
const CALL_TIMEOUT_MS = 30_000;

export type Env = TypedAddress["env"];

/** Where a command looks for its gateway. Options take precedence over the environment. */
export interface GatewayPlace extends TypedAddress {
  /** `--data`: the folder that holds the token. */
  readonly data?: string | undefined;
  /** Aborts a running request. */
  readonly stop?: AbortSignal | undefined;
}

interface AdminAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

export interface AdminClient {
  /** The program's command with the options that locate this gateway: for commands that are printed. */
  readonly command: string;
  /**
   * @param path path below `/admin/v1`, built with `segment`
   * @throws CliFailure if the gateway refuses or does not answer
   */
  call(method: "GET" | "POST" | "PUT", path: string, body?: object): Promise<AdminAnswer>;
}

/**
 * Creates a client. The address is `--admin`, or else `TOLLGATE_ADMIN_URL`. The token is `TOLLGATE_ADMIN_TOKEN`, or
 * else the file `admin-token` in the data folder: `--data`, or `TOLLGATE_DATA`, or both `./data` and the
 * demonstration's `./data/demo`. If the gateway does not accept the first of these two tokens, the second is tried.
 * @throws CliFailure 2 for an invalid address, 1 for a token that cannot be used
 */
export async function connectAdmin(place: GatewayPlace): Promise<AdminClient> {
  const address = adminAddress(place);
  const command = commandAt(place);
  const { tokens, origin } = await findTokens(place);
  let inUse = 0;
  return {
    command,
    async call(method, path, body) {
      for (let tried = inUse; ; tried++) {
        const { status, answer } = await ask({ ...place, address }, { method, path, body }, tokens[tried]);
        if (status < 300 && answer) return { status, body: answer };
        // A request with a wrong token has changed nothing, so even a write can be sent again.
        if (!isWrongToken(answer) || tried + 1 >= tokens.length)
          throw refused({ name: address.name, command }, { status, answer }, origin);
        inUse = tried + 1;
      }
    },
  };
}

/** POST requests that change nothing. */
const READS: ReadonlySet<string> = new Set(["/explain"]);

/** Sends one request. @throws CliFailure 1 if there is no complete answer. */
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
 * Encodes typed text as one segment of a path.
 * @throws CliFailure 2 for an empty segment, `.` and `..`
 */
export function segment(typed: string): string {
  if (typed === "" || typed === "." || typed === "..") {
    throw new CliFailure(2, `${JSON.stringify(typed)} is not a name or an id.`);
  }
  return encodeURIComponent(typed);
}

interface FoundTokens {
  /** In the order in which they are tried; empty if there is none. */
  readonly tokens: readonly Secret[];
  /** Where they come from, as a sentence for messages. */
  readonly origin: string;
}

async function findTokens({ env, data }: Pick<GatewayPlace, "env" | "data">): Promise<FoundTokens> {
  if (env.TOLLGATE_ADMIN_TOKEN) {
    const origin = "the environment variable TOLLGATE_ADMIN_TOKEN";
    return { tokens: [asToken(env.TOLLGATE_ADMIN_TOKEN, origin)], origin: `The token came from ${origin}.` };
  }
  const named = data ?? (env.TOLLGATE_DATA || undefined);
  const files = (named === undefined ? [DATA_DIR, DEMO_DATA_DIR] : [named]).map((dir) => join(dir, TOKEN_FILE));
  const found: { file: string; token: Secret }[] = [];
  for (const file of files) {
    // If the first file has a token, problems with the second do not matter.
    const read = await readToken(file).catch((error) => (found.length > 0 ? undefined : Promise.reject(error)));
    if (read) found.push(read);
  }
  if (found.length === 0) {
    const where = `${resolve(files[0] as string)}; use --data or TOLLGATE_DATA to name another folder`;
    return {
      tokens: [],
      origin: `No token was sent: TOLLGATE_ADMIN_TOKEN is not set, and there is no file ${where}.`,
    };
  }
  const from = found.map(({ file }) => `the file ${file}`).join(", then ");
  return {
    tokens: found.map(({ token }) => token),
    origin: `The token came from ${from}; use --data or TOLLGATE_DATA to name another folder.`,
  };
}

/** The token in a file; undefined if there is no such file. */
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
  if (!/^[!-~]+$/.test(token)) throw new CliFailure(1, `The content of ${origin} is not an admin token.`);
  return new Secret(token);
}

/** Errors of connecting: the request was not sent, so nothing was changed. */
const NO_CONNECTION: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"],
  // The socket's file does not exist, or is not a socket.
  ...["ENOENT", "ENOTDIR", "ENOTSOCK"],
]);
/** Operations that fail before a connection exists. Some of these codes can also end an established connection. */
const CONNECTING: ReadonlySet<unknown> = new Set([undefined, "connect", "getaddrinfo"]);
/** OpenSSL's error for an answer in plain HTTP. */
const NO_TLS = "ERR_SSL_WRONG_VERSION_NUMBER";
/** How fetch refuses a port that it blocks. The error has no code. */
const BAD_PORT = "bad port";
/** OpenSSL's errors for a certificate that it does not accept; nothing has been sent then. */
const CERTIFICATE = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|ERR_TLS_CERT_)/;

/**
 * Explains why there was no answer.
 * @param name the address that was called.
 * @param write whether the request may have changed something.
 */
export function unreachable(name: string, error: unknown, write: boolean): CliFailure {
  const code = codeOfFailure(error);
  if (NO_CONNECTION.has(code) && CONNECTING.has(codedFailure(error).syscall)) {
    const start = `Start it with: ${COMMAND} serve. If it has another admin address, set it with --admin or TOLLGATE_ADMIN_URL.`;
    return new CliFailure(1, `No gateway answers at ${name} (${code}).\n${start}`, UNREACHABLE);
  }
  if (code === "EACCES" && name.startsWith("unix:")) {
    const who =
      "Only the gateway's user and group may use it (mode 0660), and you need access to each folder above it.";
    return new CliFailure(1, `You have no permission to use the socket ${name} (${code}).\n${who}`);
  }
  if (code === NO_TLS) {
    const message = `The server at ${name} does not speak TLS (${code}).`;
    return new CliFailure(
      1,
      `${message}\nPerhaps the address must begin with http:// (--admin or TOLLGATE_ADMIN_URL).`,
      UNREACHABLE,
    );
  }
  if (codedFailure(error).message === BAD_PORT) {
    const message = `The port of ${name} is blocked for HTTP (https://fetch.spec.whatwg.org/#port-blocking); nothing was sent.`;
    return new CliFailure(
      1,
      `${message}\nGive the gateway another admin address: a port that is not blocked, or unix:PATH.`,
    );
  }
  if (CERTIFICATE.test(code)) {
    const message = `The certificate of the server at ${name} is not accepted (${code}); nothing was sent.`;
    return new CliFailure(
      1,
      `${message}\nTo trust a private CA, set NODE_EXTRA_CA_CERTS to a file with its certificate.`,
      UNREACHABLE,
    );
  }
  const lost = `The gateway at ${name} gave no complete answer (${code}).`;
  const advice =
    "It is unknown whether the change was made: check (show, list) before you repeat it. " +
    "Top-ups and adjustments can safely be repeated with the same --id.";
  return new CliFailure(1, write ? `${lost}\n${advice}` : lost, UNREACHABLE);
}

const TOKEN_RULE =
  "It must be admin_token of the gateway's configuration, or without one the content of admin-token in its data folder.";

function refused(
  { name, command }: { readonly name: string; readonly command: string },
  { status, answer }: { readonly status: number; readonly answer: JsonObject | undefined },
  tokenOrigin: string,
): CliFailure {
  const error = answer?.error as JsonObject | undefined;
  const hint = "Is that the gateway's admin address? Use --admin or TOLLGATE_ADMIN_URL to set another.";
  // Only answers to clients have a cause.
  if (typeof error?.cause === "string") {
    return new CliFailure(
      1,
      `${name} (status ${status}) is a gateway's address for clients, not its admin address.\n${hint}`,
    );
  }
  if (typeof error?.message !== "string") {
    const message = `The server at ${name} (status ${status}) is not Tollgate's admin API.\n${hint}`;
    // For example a front whose gateway is down.
    return new CliFailure(1, message, status >= 500 ? UNREACHABLE : undefined);
  }
  const lines = [`Refused: ${error.message}`];
  // The API's remedy names the header, which the command writes by itself.
  if (status === 401) lines.push(tokenOrigin, TOKEN_RULE);
  else if (typeof error.remedy === "string") lines.push(reachingSame(error.remedy, command));
  return new CliFailure(1, lines.join("\n"), typeof error.code === "string" ? error.code : undefined);
}

/*
 * A client for long commands: a short outage of the store must not lose the work of many minutes. Calls that only read,
 * or that are idempotent, are retried for a while.
 */

/** How long an outage of the store is tolerated. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1_000;

/** @returns the same client with retries. Every call to it must be safe to repeat. */
export function retryingClient(admin: AdminClient, terminal: Terminal): AdminClient {
  return {
    ...admin,
    async call(method, path, body) {
      for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
        try {
          return await admin.call(method, path, body);
        } catch (error) {
          if (!(error instanceof CliFailure) || error.code !== "store_unavailable") throw error;
          if (waitedMs >= PATIENCE_MS) throw new CliFailure(1, givenUp(error));
          if (waitedMs === 0) terminal.note("The store does not answer; retrying for up to a minute.");
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
