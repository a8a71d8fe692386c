/**
 * The admin listener on fastify: health, readiness, metrics and the admin API. The only file that imports fastify; what
 * the routes do stands in accounts.ts, keys.ts, funds.ts, codes.ts and usage.ts.
 */
import type { Socket } from "node:net";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { StoreError } from "../store/contract.ts";
import type { Secret } from "../values/secret.ts";
import { type AccessCheck, makeAccess } from "./access.ts";
import { accountRoutes } from "./accounts.ts";
import { archiveRoutes } from "./archive.ts";
import { codeRoutes } from "./codes.ts";
import { complain, type Finding } from "./complaint.ts";
import { type Explainer, explainRoutes } from "./explain.ts";
import { fundsRoutes } from "./funds.ts";
import { keyRoutes } from "./keys.ts";
import { ledgerRoutes } from "./ledger.ts";
import { Refusal, refusalBody, storeRefusal } from "./refusal.ts";
import type { Answer, ConsoleParts, ConsoleRoute, RouteInput } from "./route.ts";
import { type StoreKeeper, storeRoutes } from "./store.ts";
import { type UpstreamWatcher, upstreamRoutes } from "./upstreams.ts";
import { usageRoutes } from "./usage.ts";

/** The largest body of an admin request. */
export const ADMIN_BODY_BYTES_MAX = 64 * 1024;
/** How long an admin request may take to arrive whole. */
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 10_000;
/** Connections to this listener at once; further ones are closed. */
const CONNECTIONS_MAX = 256;
/** Longest path parameter, percent-encoding included, before the schemas look at it. */
const PARAM_LENGTH_MAX = 256;
const ADMIN_PREFIX = "/admin/v1";

/** Nothing is coerced, filled in or removed: a number is not an amount, and a misspelt member is an error. */
const VALIDATION = {
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  // Findings carry the schema that they broke, where complaint.ts finds its words.
  verbose: true,
  keywords: ["x-remedy"],
};

export interface ConsoleOptions extends ConsoleParts, Explainer, StoreKeeper, UpstreamWatcher {
  /** Undefined: only programs on this machine may administer. */
  readonly adminToken: Secret | undefined;
  /** The metrics page. @param accept the scraper's `accept` header: it chooses the exposition format. */
  readonly metrics: (accept: string | undefined) => Promise<{ contentType: string; body: string }>;
  /** Whether the gateway should get traffic, and if not, why. */
  readonly readiness: () => { ready: boolean; reasons: string[] };
  /** Takes audit lines and reports of defects, both flat objects without secrets. */
  readonly log: (line: object) => void;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call the route; a route that does not say is for the administrator. */
    access?: "anyone" | "metrics";
  }
}

/**
 * Builds the admin listener (DESIGN.md sections 4 and 8). The caller listens and closes; nothing is bound here.
 * Every answer but the metrics page is JSON; every refusal is `{error: {code, message, remedy}}`.
 */
export function createConsole(options: ConsoleOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: ADMIN_BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: "idle",
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    ajv: { customOptions: VALIDATION },
    clientErrorHandler: refuseMalformedHttp,
    frameworkErrors: (error, request, reply) => refuse(options, error, request, reply),
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    // A POST without a body may carry the header all the same, as many clients always send it.
    if (body === "") done(null, undefined);
    else app.getDefaultJsonParser("error", "error")(request, body as string, done);
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => refuse(options, error, request, reply));
  guard(app, options);
  app.setNotFoundHandler(() => {
    throw new Refusal(
      404,
      "unknown_path",
      "There is nothing at this path and method.",
      "The admin API is below /admin/v1/; tollgate --help lists what the command line asks of it.",
    );
  });
  addPublicRoutes(app, options);
  const routes = [
    accountRoutes,
    keyRoutes,
    fundsRoutes,
    codeRoutes,
    usageRoutes,
    ledgerRoutes,
    archiveRoutes,
    explainRoutes,
    storeRoutes,
    upstreamRoutes,
  ].flatMap((make) => make(options));
  for (const route of routes) addRoute(app, options, route);
  return app;
}

/** Checks access before the body is read, for unknown paths too, so that no route can forget it. */
function guard(app: FastifyInstance, options: ConsoleOptions): void {
  const access = makeAccess(options.adminToken);
  const checkFor = (request: FastifyRequest): AccessCheck | undefined => {
    if (request.routeOptions.config.access === "metrics") return access.metrics;
    return request.routeOptions.config.access === "anyone" ? undefined : access.admin;
  };
  app.addHook("onRequest", async (request, reply) => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    const unix = typeof app.server.address() === "string";
    checkFor(request)?.({ address: request.socket.remoteAddress, unix, headers: request.headers });
  });
}

function addPublicRoutes(app: FastifyInstance, options: ConsoleOptions): void {
  app.get("/healthz", { config: { access: "anyone" } }, async () => ({ alive: true }));
  app.get("/readyz", { config: { access: "anyone" } }, async (_request, reply) => {
    const { ready, reasons } = options.readiness();
    return reply.code(ready ? 200 : 503).send({ ready, reasons });
  });
  app.get("/metrics", { config: { access: "metrics" } }, async (request, reply) => {
    const { contentType, body } = await options.metrics(request.headers.accept);
    return reply.header("content-type", contentType).send(body);
  });
}

function addRoute(app: FastifyInstance, options: ConsoleOptions, route: ConsoleRoute): void {
  const schema = {
    ...(route.params && { params: route.params }),
    ...(route.query && { querystring: route.query }),
    ...(route.body && { body: route.body }),
  };
  app.route({
    method: route.method,
    url: ADMIN_PREFIX + route.path,
    schema,
    handler: async (request, reply) => {
      const input = { params: request.params, query: request.query, body: request.body };
      const answer = await (route.write ? audited(options, route, input, request) : handled(route, input));
      return reply.code(answer.status).send(answer.body);
    },
  });
}

/** Runs the handler; a store that did not answer becomes a refusal that says how to repeat this very request. */
async function handled(route: ConsoleRoute, input: RouteInput<unknown, unknown, unknown>): Promise<Answer> {
  try {
    return await route.handle(input);
  } catch (error) {
    throw error instanceof StoreError ? storeRefusal(error, route.write?.whenUnknown) : error;
  }
}

/** Runs a write and leaves one audit line, whatever came of it: done, repeated, refused, or unknown (store away). */
async function audited(
  options: ConsoleOptions,
  route: ConsoleRoute,
  input: RouteInput<unknown, unknown, unknown>,
  request: FastifyRequest,
): Promise<Answer> {
  const write = route.write;
  const line = (outcome: string, more: object) =>
    options.log({
      event: "audit",
      at: new Date(options.clock.wallMs()).toISOString(),
      who: "admin",
      from: request.socket.remoteAddress ?? "unix",
      what: write?.what,
      target: write?.target(input),
      ...write?.facts?.(input),
      outcome,
      ...more,
    });
  try {
    const answer = await handled(route, input);
    line(answer.repeated ? "repeated" : "done", answer.audit ?? {});
    return answer;
  } catch (error) {
    const refused = error instanceof Refusal && error.status < 500;
    line(refused ? "refused" : "unknown", { cause: error instanceof Refusal ? error.code : "internal" });
    throw error;
  }
}

function refuse(options: ConsoleOptions, error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalFor(error);
  if (refusal.status === 500) {
    // Paths of this listener carry names and ids at most; the body, which may carry more, is not logged.
    const { method, routeOptions } = request;
    const stack = (error.stack ?? error.message).replaceAll(URL_CREDENTIALS, "//***@");
    options.log({ event: "console_defect", method, route: routeOptions?.url, stack });
  }
  reply.code(refusal.status).headers(refusal.headers).type("application/json; charset=utf-8");
  reply.send(JSON.stringify(refusalBody(refusal)));
}

/** The credentials of an address, which messages of drivers like to repeat (reliability row 79). */
const URL_CREDENTIALS = /\/\/[^/@\s]+@/g;

const INTERNAL = new Refusal(
  500,
  "internal",
  "The gateway failed at this; the log says more.",
  "Look for console_defect in the gateway's log.",
);

/** Fastify's own refusals of a request, in our words. */
const FRAMEWORK_REFUSALS: Readonly<Record<number, readonly [code: string, message: string, remedy: string]>> = {
  400: [
    "not_json",
    "The request is not readable: a broken path, or a body that is not JSON.",
    "Send well-formed JSON.",
  ],
  413: ["too_large", `The body exceeds ${ADMIN_BODY_BYTES_MAX} bytes.`, "Send a smaller body."],
  414: ["path_too_long", "A part of the path is too long.", "Send a shorter name or id."],
  415: ["not_json", "The body's type is not JSON.", "Send `content-type: application/json`."],
};

function refusalFor(error: FastifyError): Refusal {
  if (error instanceof Refusal) return error;
  if (error.validation) return complain(error.validationContext ?? "body", error.validation as readonly Finding[]);
  const words = FRAMEWORK_REFUSALS[error.statusCode ?? 500];
  return words === undefined ? INTERNAL : new Refusal(error.statusCode as number, ...words);
}

/** Answers bytes that are not HTTP, where there is no request yet. */
function refuseMalformedHttp(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, reason] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [431, "Request Header Fields Too Large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [408, "Request Timeout"]
        : [400, "Bad Request"];
  const refusal = new Refusal(status as number, "framing", "The HTTP request is malformed.", "Send HTTP/1.1.");
  const body = JSON.stringify(refusalBody(refusal));
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
