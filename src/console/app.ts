/**
 * An application on fastify as both listeners have one: JSON in, JSON out, refusals in one form. It listens nowhere itself. The
 * only file that imports fastify; what is asked of it is in `routes/`.
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

/** The largest body of a request. */
const BODY_BYTES_MAX = 64 * 1024;
/** Longest path parameter, percent-encoding included, before the schemas look at it. */
const PARAM_LENGTH_MAX = 256;

/** Nothing is coerced, filled in or removed: a number is not an amount, and a misspelt member is an error. */
const VALIDATION = {
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  // Findings carry the schema that they broke, where refusal.ts finds its words.
  verbose: true,
  keywords: ["x-remedy"],
};

/** Takes reports, flat objects without secrets; `info` unless it is said. */
export type ConsoleLog = (line: object, level?: "info" | "warn") => void;

/** What an application is made with. */
interface AppParts {
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Takes reports of defects, flat objects without secrets. */
  readonly log: ConsoleLog;
  /** Why the store must not be used, as readiness says it; only where those who ask may know. */
  readonly storeUnfit?: (() => string | undefined) | undefined;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call the route; a route that does not say is for those whom the listener lets in. */
    access?: "anyone" | "metrics";
    /** What the OpenAPI document says of it. */
    described?: DescribedRoute;
  }
}

/** An application without routes, which listens nowhere. Every refusal is `{error: {code, message, remedy}}`. */
export function createApp(parts: AppParts): App {
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    // Routes are added in turns of the loop, which take as long as requests of clients do.
    pluginTimeout: 0,
    genReqId: () => printRequestId(newRequestId(parts.clock.wallMs(), parts.random)),
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    ajv: { customOptions: VALIDATION },
    schemaController: { compilersFactory: { buildValidator: compileOnDemand } },
    frameworkErrors: (error, request, reply) => refuse(parts, error, request, reply),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async ({ headers }: AppRequest, body: Buffer) => {
    // A POST without a body may still carry the header, as many clients always send it.
    if (body.length === 0) return undefined;
    assertPlain(headers["content-encoding"]);
    return readBody(body);
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => refuse(parts, error, request, reply));
  return app;
}

/** @throws AdminRefusal 415 for a body that would have to be decoded. */
function assertPlain(encoding = "identity"): void {
  if (encoding.toLowerCase() === "identity") return;
  throw new AdminRefusal(415, "not_json", "An encoded body is not read.", "Send it without `content-encoding`.");
}

/** How an application runs its routes. */
interface RouteRunner {
  /** Has a line of every write. */
  readonly audit: Audit;
  readonly askerOf: (request: AppRequest) => Asker;
  /** Runs the work for the one who asks; as it is when left out. */
  readonly within?: (request: AppRequest, work: () => Promise<ConsoleAnswer>) => Promise<ConsoleAnswer>;
  /** As in the application's parts. */
  readonly storeUnfit?: AppParts["storeUnfit"];
}

/** Hangs a route on an application, below `prefix`. */
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

/** Runs the handler; a store that did not answer becomes a refusal that says how to repeat this very request. */
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
    // Paths of this listener carry names and ids at most; the body, which may carry more, is not logged.
    log(defectLine(error, request.method, request.routeOptions?.url));
  }
  reply.code(refusal.status).headers(refusal.headers).type("application/json; charset=utf-8");
  if (refusal.status === 401) reply.header("www-authenticate", 'Bearer realm="tollgate-admin"');
  if (hasLargeBodyToCome(request.raw)) reply.header("connection", "close");
  reply.send(JSON.stringify(refusalBody(refusal)));
}

/** Whether a body is still to come that would otherwise be read to its end, without a limit, and thrown away. */
function hasLargeBodyToCome({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > BODY_BYTES_MAX;
}

/** Fastify's own refusals of a request, in our words. */
const FRAMEWORK_REFUSALS: Readonly<Record<number, readonly [code: string, message: string, remedy: string]>> = {
  400: [
    "malformed",
    "The request is not readable: its path is badly encoded, or its body is not whole.",
    "Correct the path, or send the whole body.",
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
