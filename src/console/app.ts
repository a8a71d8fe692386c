/**
 * The fastify application that both listeners use: JSON in, JSON out, refusals in one form. It does not listen itself.
 * The only file that imports fastify; the routes are in `routes/`.
 */
import type { IncomingMessage } from "node:http";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { StoreError } from "../store/contract.ts";
import type { RandomBytes } from "../values/key.ts";
import { newRequestId, printRequestId } from "../values/request-id.ts";
import type { Clock } from "../values/time.ts";
import type { Asker, Audit } from "./audit/audit.ts";
import { readBody } from "./input/read-body.ts";
import { compileOnDemand } from "./input/validation.ts";
import type { DescribedRoute } from "./openapi.ts";
import {
  AdminRefusal,
  complain,
  defectLine,
  INTERNAL,
  refusalBody,
  type SchemaFinding,
  storeRefusal,
} from "./refusal.ts";
import type { ConsoleAnswer, ConsoleRoute, RouteInput } from "./routes/contract.ts";

export type App = FastifyInstance;
export type AppRequest = FastifyRequest;
export type AppReply = FastifyReply;

/** The maximum size of a request body. */
const BODY_BYTES_MAX = 64 * 1024;
/** Maximum length of a path parameter, with percent-encoding, checked before the schemas. */
const PARAM_LENGTH_MAX = 256;

/** Nothing is coerced, filled in or removed: a number is not an amount, and a misspelled member is an error. */
const VALIDATION = {
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  // A finding carries the schema that it violated; refusal.ts takes its texts from there.
  verbose: true,
  keywords: ["x-remedy", "x-openapi"],
};

/** Receives reports as flat objects without secrets; the default level is `info`. */
export type ConsoleLog = (line: object, level?: "info" | "warn") => void;

/** The parts of an application. */
interface AppParts {
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Receives reports of defects, flat objects without secrets. */
  readonly log: ConsoleLog;
  /** Why the store must not be used, in the words of readiness; set only if callers may know it. */
  readonly storeUnfit?: (() => string | undefined) | undefined;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call the route. If missing: callers that the listener has admitted. */
    access?: "anyone" | "metrics";
    /** The OpenAPI description of the route. */
    described?: DescribedRoute;
  }
}

/** Creates an application without routes that does not listen. Every refusal is `{error: {code, message, remedy}}`. */
export function createApp(parts: AppParts): App {
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    // Routes are added over several turns of the event loop, which take as long as the client requests between them.
    pluginTimeout: 0,
    genReqId: () => printRequestId(newRequestId(parts.clock.wallMs(), parts.random)),
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    ajv: { customOptions: VALIDATION },
    schemaController: { compilersFactory: { buildValidator: compileOnDemand } },
    frameworkErrors: (error, request, reply) => refuse(parts, error, request, reply),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async ({ headers }: AppRequest, body: Buffer) => {
    // A POST without a body may still carry the header, because many clients always send it.
    if (body.length === 0) return undefined;
    assertPlain(headers["content-encoding"]);
    return readBody(body);
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => refuse(parts, error, request, reply));
  return app;
}

/** @throws AdminRefusal 415 for a body with a content encoding */
function assertPlain(encoding = "identity"): void {
  if (encoding.toLowerCase() === "identity") return;
  throw new AdminRefusal(
    415,
    "not_json",
    "A body with a content encoding is not accepted.",
    "Send it without `content-encoding`.",
  );
}

/** How an application runs its routes. */
interface RouteRunner {
  /** Receives a line for every write. */
  readonly audit: Audit;
  readonly askerOf: (request: AppRequest) => Asker;
  /** Runs the work in the context of the caller; if omitted, the work is called directly. */
  readonly within?: (request: AppRequest, work: () => Promise<ConsoleAnswer>) => Promise<ConsoleAnswer>;
  /** As in the parts of the application. */
  readonly storeUnfit?: AppParts["storeUnfit"];
}

/** Adds a route to an application, below `prefix`. */
export function addRoute(
  app: App,
  prefix: string,
  route: ConsoleRoute,
  { audit, askerOf, within = (_request, work) => work(), storeUnfit }: RouteRunner,
): void {
  const schema = {
    ...(route.params && { params: route.params }),
    ...(route.query && { querystring: route.query }),
    ...(route.body && { body: route.body }),
  };
  app.route({
    method: route.method,
    url: prefix + route.path,
    schema,
    config: { described: route },
    handler: async (request, reply) => {
      const input = { params: request.params, query: request.query, body: request.body };
      const work = () => handled(route, input, storeUnfit);
      const noted = async () => (route.write ? audit.run(route, input, askerOf(request), work) : work());
      const answer = await within(request, noted);
      return reply.code(answer.status).send(answer.body);
    },
  });
}

/** Runs the handler. If the store does not answer, the refusal says how to repeat this request. */
async function handled(
  route: ConsoleRoute,
  input: RouteInput<unknown, unknown, unknown>,
  storeUnfit: AppParts["storeUnfit"],
): Promise<ConsoleAnswer> {
  try {
    return await route.handle(input);
  } catch (error) {
    throw error instanceof StoreError ? storeRefusal(error, route.write?.whenUnknown, storeUnfit?.()) : error;
  }
}

function refuse(
  { log, storeUnfit }: AppParts,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const refusal = refusalFor(error, storeUnfit);
  if (refusal.status === 500) {
    // Paths of this listener contain at most names and ids, so they are logged; the body may contain more and is not
    // logged.
    log(defectLine(error, request.method, request.routeOptions?.url));
  }
  reply.code(refusal.status).headers(refusal.headers).type("application/json; charset=utf-8");
  // Set here, too: hooks do not run for a path that cannot be read, and caches keep a 404 or 414 that does not forbid it.
  reply.header("cache-control", "no-store");
  if (refusal.status === 401) reply.header("www-authenticate", 'Bearer realm="tollgate-admin"');
  if (hasLargeBodyToCome(request.raw)) reply.header("connection", "close");
  reply.send(JSON.stringify(refusalBody(refusal)));
}

/**
 * Whether a large body is still to come. Without this check it would be read to its end, without a limit, and
 * discarded.
 */
function hasLargeBodyToCome({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > BODY_BYTES_MAX;
}

/** Refusals by fastify itself, with our texts. */
const FRAMEWORK_REFUSALS: Readonly<Record<number, readonly [code: string, message: string, remedy: string]>> = {
  400: [
    "malformed",
    "The request cannot be read: its path is badly encoded, or its body is incomplete.",
    "Correct the path, or send the complete body.",
  ],
  413: ["too_large", `The body exceeds ${BODY_BYTES_MAX} bytes.`, "Send a smaller body."],
  414: ["path_too_long", "A part of the path is too long.", "Send a shorter name or id."],
  415: ["not_json", "The body's type is not JSON.", "Send `content-type: application/json`."],
};

function refusalFor(error: FastifyError, storeUnfit: AppParts["storeUnfit"]): AdminRefusal {
  if (error instanceof AdminRefusal) return error;
  if (error instanceof StoreError) return storeRefusal(error, undefined, storeUnfit?.());
  if (error.validation)
    return complain(error.validationContext ?? "body", error.validation as readonly SchemaFinding[]);
  const words = FRAMEWORK_REFUSALS[error.statusCode ?? 500];
  return words === undefined ? INTERNAL : new AdminRefusal(error.statusCode as number, ...words);
}
