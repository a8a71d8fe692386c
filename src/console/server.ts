/**
 * The admin listener on fastify: health, readiness, metrics and the admin API. The only file that imports fastify; the
 * routes are in `routes/`.
 */
import type { IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { StoreError } from "../store/contract.ts";
import { newRequestId, printRequestId } from "../values/request-id.ts";
import type { Secret } from "../values/secret.ts";
import type { Address } from "../values/settings.ts";
import { type Access, type AccessCheck, type AccessReason, makeAccess } from "./access.ts";
import { Health, Readiness, type ReadinessAnswer } from "./answers/answers.ts";
import { text } from "./answers/shape.ts";
import { Audit, auditRoutes } from "./audit.ts";
import { GuessBudget, TOKEN_GUESS_LIMITS } from "./guess-budget.ts";
import { type DescribedRoute, OPEN_API_OPTIONS, openApiPlugin, openApiRoutes } from "./openapi.ts";
import { AdminRefusal, complain, refusalBody, type SchemaFinding, storeRefusal } from "./refusal.ts";
import { accountRoutes } from "./routes/accounts.ts";
import { archiveRoutes } from "./routes/archive.ts";
import { batchRoutes } from "./routes/batches.ts";
import { cardRoutes } from "./routes/cards.ts";
import { codeRoutes } from "./routes/codes.ts";
import type { ConsoleAnswer, ConsoleParts, ConsoleRoute, RouteInput } from "./routes/contract.ts";
import { type Explainer, explainRoutes } from "./routes/explain.ts";
import { fundsRoutes } from "./routes/funds.ts";
import { keyRoutes } from "./routes/keys.ts";
import { ledgerRoutes } from "./routes/ledger.ts";
import { limitRoutes } from "./routes/limits.ts";
import { markRoutes } from "./routes/marks.ts";
import { type NoticeSender, noticeRoutes } from "./routes/notices.ts";
import { type StoreKeeper, storeRoutes } from "./routes/store.ts";
import { type UpstreamWatcher, upstreamRoutes } from "./routes/upstreams.ts";
import { usageRoutes } from "./routes/usage.ts";
import { type Identity, versionRoutes } from "./routes/version.ts";
import { compileOnDemand } from "./validation.ts";

/** The largest body of an admin request. */
const ADMIN_BODY_BYTES_MAX = 64 * 1024;
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
  // Findings carry the schema that they broke, where refusal.ts finds its words.
  verbose: true,
  keywords: ["x-remedy"],
};

export interface ConsoleOptions extends ConsoleParts, Explainer, NoticeSender, StoreKeeper, UpstreamWatcher, Identity {
  /** Undefined: only programs on this machine may administer. */
  readonly adminToken: Secret | undefined;
  /** The metrics page. @param accept the scraper's `accept` header: it chooses the exposition format. */
  readonly metrics: (accept: string | undefined) => Promise<{ contentType: string; body: string }>;
  /** Whether the gateway should get traffic, and if not, why. */
  readonly readiness: () => ReadinessAnswer;
  /** Called for everybody who was refused. */
  readonly onAccessRefused?: (reason: AccessReason) => void;
  /** Called with an address, or an IPv6 network, that has sent too many wrong tokens. */
  readonly onTokenGuesses?: (from: string) => void;
  /** Takes audit lines and reports of defects, both flat objects without secrets. */
  readonly log: (line: object) => void;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call the route; a route that does not say is for the administrator. */
    access?: "anyone" | "metrics";
    /** What the OpenAPI document says of it. */
    described?: DescribedRoute;
  }
}

/**
 * Builds the admin listener. The caller listens and closes; nothing is bound here.
 * Every answer but the metrics page is JSON; every refusal is `{error: {code, message, remedy}}`.
 */
export function createConsole(options: ConsoleOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: ADMIN_BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: "idle",
    genReqId: () => printRequestId(newRequestId(options.clock.wallMs(), options.random)),
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    ajv: { customOptions: VALIDATION },
    schemaController: { compilersFactory: { buildValidator: compileOnDemand } },
    clientErrorHandler: refuseMalformedHttp,
    frameworkErrors: (error, request, reply) => refuse(options, error, request, reply),
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    // A POST without a body may still carry the header, as many clients always send it.
    if (body === "") done(null, undefined);
    else app.getDefaultJsonParser("error", "error")(request, body as string, done);
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => refuse(options, error, request, reply));
  const budget = new GuessBudget(options.clock, TOKEN_GUESS_LIMITS);
  const access = makeAccess(options.adminToken, { budget, onTooMany: (from) => options.onTokenGuesses?.(from) });
  guard(app, options, access);
  app.setNotFoundHandler(() => {
    throw new AdminRefusal(
      404,
      "unknown_path",
      "There is nothing at this path and method.",
      "The admin API is below /admin/v1/; tollgate --help lists what the command line asks of it.",
    );
  });
  app.register(openApiPlugin, OPEN_API_OPTIONS);
  // After the plugin, which looks at each route as it is added.
  app.register(async (routed) => {
    addPublicRoutes(routed, options);
    addAdminRoutes(routed, options, access);
  });
  return app;
}

function addAdminRoutes(app: FastifyInstance, options: ConsoleOptions, { who }: Access): void {
  const audit = new Audit(options.clock, options.log);
  const routes = [
    accountRoutes,
    keyRoutes,
    limitRoutes,
    fundsRoutes,
    codeRoutes,
    batchRoutes,
    cardRoutes,
    usageRoutes,
    ledgerRoutes,
    markRoutes,
    archiveRoutes,
    explainRoutes,
    storeRoutes,
    upstreamRoutes,
    noticeRoutes,
    versionRoutes,
  ].flatMap((make) => make(options));
  const document = () => app.swagger();
  for (const route of [...routes, ...auditRoutes(audit), ...openApiRoutes(document)]) addRoute(app, route, audit, who);
}

/** Begins to listen. @returns the address, with the port that the system chose for port 0. Rejects as node:net does. */
export async function listenAt(app: FastifyInstance, address: Address): Promise<Address> {
  if (address.kind === "unix") {
    await app.listen({ path: address.path });
    return address;
  }
  await app.listen({ host: address.host, port: address.port });
  return { ...address, port: (app.server.address() as AddressInfo).port };
}

/** Checks access before the body is read, for unknown paths too, so that no route can forget it. */
function guard(app: FastifyInstance, options: ConsoleOptions, access: Access): void {
  const checkFor = (request: FastifyRequest): AccessCheck | undefined => {
    if (request.routeOptions.config.access === "metrics") return access.metrics;
    return request.routeOptions.config.access === "anyone" ? undefined : access.admin;
  };
  app.addHook("onRequest", async (request, reply) => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    reply.header("x-request-id", request.id);
    const unix = typeof app.server.address() === "string";
    try {
      checkFor(request)?.({ address: request.socket.remoteAddress, unix, headers: request.headers });
    } catch (error) {
      if (error instanceof AdminRefusal) options.onAccessRefused?.(error.code as AccessReason);
      throw error;
    }
  });
}

function addPublicRoutes(app: FastifyInstance, options: ConsoleOptions): void {
  app.get("/healthz", { config: { access: "anyone", described: OPEN.healthz } }, async () => ({ alive: true }));
  app.get("/readyz", { config: { access: "anyone", described: OPEN.readyz } }, async (_request, reply) => {
    const readiness = options.readiness();
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  });
  app.get("/metrics", { config: { access: "metrics", described: OPEN.metrics } }, async (request, reply) => {
    const { contentType, body } = await options.metrics(request.headers.accept);
    return reply.header("content-type", contentType).send(body);
  });
}

/** The routes beside the admin API, for monitoring. */
const OPEN = {
  healthz: {
    id: "healthz",
    summary: "Whether the process is alive",
    answers: { 200: Health },
    access: "anyone",
  },
  readyz: {
    id: "readyz",
    summary: "Whether the gateway should get traffic",
    answers: { 200: Readiness, 503: Readiness },
    access: "anyone",
  },
  metrics: {
    id: "metrics",
    summary: "Metrics, for Prometheus; without a token for programs on the gateway's machine",
    answers: { 200: text("The exposition format of Prometheus.", "tollgate_store_up 1") },
    mediaType: "text/plain",
    access: "metrics",
  },
} as const satisfies Record<string, DescribedRoute>;

function addRoute(app: FastifyInstance, route: ConsoleRoute, audit: Audit, who: string): void {
  const schema = {
    ...(route.params && { params: route.params }),
    ...(route.query && { querystring: route.query }),
    ...(route.body && { body: route.body }),
  };
  app.route({
    method: route.method,
    url: ADMIN_PREFIX + route.path,
    schema,
    config: { described: route },
    handler: async (request, reply) => {
      const input = { params: request.params, query: request.query, body: request.body };
      const asker = { who, from: request.socket.remoteAddress ?? "unix", requestId: request.id };
      const work = () => handled(route, input);
      const answer = await (route.write ? audit.run(route, input, asker, work) : work());
      return reply.code(answer.status).send(answer.body);
    },
  });
}

/** Runs the handler; a store that did not answer becomes a refusal that says how to repeat this very request. */
async function handled(route: ConsoleRoute, input: RouteInput<unknown, unknown, unknown>): Promise<ConsoleAnswer> {
  try {
    return await route.handle(input);
  } catch (error) {
    throw error instanceof StoreError ? storeRefusal(error, route.write?.whenUnknown) : error;
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
  if (refusal.status === 401) reply.header("www-authenticate", 'Bearer realm="tollgate-admin"');
  if (hasLargeBodyToCome(request.raw)) reply.header("connection", "close");
  reply.send(JSON.stringify(refusalBody(refusal)));
}

/** Whether a body is still to come that would otherwise be read to its end, without a limit, and thrown away. */
function hasLargeBodyToCome({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > ADMIN_BODY_BYTES_MAX;
}

/** The credentials of an address, which messages of drivers like to repeat (docs/failure-model.md row 79). */
const URL_CREDENTIALS = /\/\/[^/@\s]+@/g;

const INTERNAL = new AdminRefusal(
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

function refusalFor(error: FastifyError): AdminRefusal {
  if (error instanceof AdminRefusal) return error;
  if (error.validation)
    return complain(error.validationContext ?? "body", error.validation as readonly SchemaFinding[]);
  const words = FRAMEWORK_REFUSALS[error.statusCode ?? 500];
  return words === undefined ? INTERNAL : new AdminRefusal(error.statusCode as number, ...words);
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
  const refusal = new AdminRefusal(status as number, "framing", "The HTTP request is malformed.", "Send HTTP/1.1.");
  const body = JSON.stringify(refusalBody(refusal));
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
