/** The admin listener: health, readiness, metrics and the admin API, whose routes are in `routes/`. */
import type { AddressInfo } from "node:net";
import type { LiveFigures } from "../telemetry/live-figures.ts";
import type { Secret } from "../values/secret.ts";
import type { Address } from "../values/settings.ts";
import { type Access, type AccessCheck, type AccessReason, makeAccess } from "./access.ts";
import { Health, Readiness, type ReadinessAnswer } from "./answers/answers.ts";
import { LiveShape } from "./answers/live.ts";
import { text } from "./answers/shape.ts";
import { type App, type AppRequest, addRoute, createApp } from "./app.ts";
import { Audit, auditRoutes } from "./audit.ts";
import { GuessBudget, TOKEN_GUESS_LIMITS } from "./guess-budget.ts";
import { type DescribedRoute, OPEN_API_OPTIONS, openApiPlugin, openApiRoutes } from "./openapi.ts";
import { LiveFeed } from "./operator/live.ts";
import { type OperatorConsole, type OperatorPages, operatorConsole } from "./operator/operator.ts";
import { ADMIN_PREFIX } from "./page-routes.ts";
import { AdminRefusal } from "./refusal.ts";
import { accountRoutes } from "./routes/accounts.ts";
import { archiveRoutes } from "./routes/archive.ts";
import { batchRoutes } from "./routes/batches.ts";
import { cardRoutes } from "./routes/cards.ts";
import { codeRoutes } from "./routes/codes.ts";
import { type Configured, configurationRoutes } from "./routes/configuration.ts";
import type { ConsoleParts } from "./routes/contract.ts";
import { type Explainer, explainRoutes } from "./routes/explain.ts";
import { fundsRoutes } from "./routes/funds.ts";
import { type Inviter, invitationRoutes } from "./routes/invitations.ts";
import { keyRoutes } from "./routes/keys.ts";
import { ledgerRoutes } from "./routes/ledger.ts";
import { limitRoutes } from "./routes/limits.ts";
import { markRoutes } from "./routes/marks.ts";
import { type NoticeSender, noticeRoutes } from "./routes/notices.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { type StoreKeeper, storeRoutes } from "./routes/store.ts";
import { type UpstreamWatcher, upstreamRoutes } from "./routes/upstreams.ts";
import { usageRoutes } from "./routes/usage.ts";
import { type Identity, versionRoutes } from "./routes/version.ts";
import { closed, type Static, Type, wholeNumber } from "./vocabulary.ts";

/** How many snapshots of a stream are wanted. */
const LiveQuery = Type.Object(
  { snapshots: Type.Optional(wholeNumber(3, "a whole number of snapshots, after which the stream ends")) },
  closed,
);

export interface ConsoleOptions
  extends ConsoleParts,
    Explainer,
    Inviter,
    NoticeSender,
    StoreKeeper,
    UpstreamWatcher,
    Configured,
    Identity {
  /** The console for browsers; none when left out. */
  readonly pages?: OperatorPages | undefined;
  /** Figures of this instant, of all processes. */
  readonly figures?: () => Promise<LiveFigures>;
  /** Has a line of every write; its own when left out. */
  readonly audit?: Audit;
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

/**
 * Builds the admin listener. The caller listens and closes; nothing is bound here.
 * Every answer but the metrics page is JSON; every refusal is `{error: {code, message, remedy}}`.
 */
export function createConsole(options: ConsoleOptions): App {
  const app = createApp(options);
  const budget = new GuessBudget(options.clock, TOKEN_GUESS_LIMITS);
  const access = makeAccess(options.adminToken, { budget, onTooMany: (from) => options.onTokenGuesses?.(from) });
  const { audit = new Audit(options.clock, options.log) } = options;
  const pages = options.pages && operatorConsole({ ...options, ...options.pages, access, audit });
  guard(app, options, access, pages);
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
    addAdminRoutes(routed, { ...options, audit }, access, pages);
    addLive(routed, options);
    pages?.add(routed);
  });
  return app;
}

function addAdminRoutes(app: App, options: ConsoleOptions, { who }: Access, pages: OperatorConsole | undefined): void {
  const { audit = new Audit(options.clock, options.log) } = options;
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
    invitationRoutes,
    sessionRoutes,
    configurationRoutes,
  ].flatMap((make) => make(options));
  const document = () => app.swagger();
  for (const route of [...routes, ...auditRoutes(audit), ...openApiRoutes(document)]) {
    addRoute(app, ADMIN_PREFIX, route, {
      audit,
      askerOf: (request) => ({
        who: pages?.whoOf(request) ?? who,
        from: request.socket.remoteAddress ?? "unix",
        requestId: request.id,
      }),
    });
  }
}

/** Begins to listen. @returns the address, with the port that the system chose for port 0. Rejects as node:net does. */
export async function listenAt(app: App, address: Address): Promise<Address> {
  if (address.kind === "unix") {
    await app.listen({ path: address.path });
    return address;
  }
  await app.listen({ host: address.host, port: address.port });
  return { ...address, port: (app.server.address() as AddressInfo).port };
}

/** Checks access before the body is read, for unknown paths too, so that no route can forget it. */
function guard(app: App, options: ConsoleOptions, access: Access, pages: OperatorConsole | undefined): void {
  const checkFor = (request: AppRequest): AccessCheck | undefined => {
    if (request.routeOptions.config.access === "metrics") return access.metrics;
    return request.routeOptions.config.access === "anyone" ? undefined : access.admin;
  };
  app.addHook("onRequest", async (request, reply) => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    reply.header("x-request-id", request.id);
    if (pages?.isVisit(request)) return reply.redirect("/console/");
    const unix = typeof app.server.address() === "string";
    try {
      const check = checkFor(request);
      if (check === access.admin && (await pages?.lets(request))) return;
      check?.({ address: request.socket.remoteAddress, unix, headers: request.headers });
    } catch (error) {
      if (error instanceof AdminRefusal) options.onAccessRefused?.(error.code as AccessReason);
      throw error;
    }
  });
}

/** `GET /admin/v1/live`: what no other route does, an answer that goes on. */
function addLive(app: App, { figures, clock }: ConsoleOptions): void {
  if (!figures) return;
  const live = new LiveFeed({ figures, clock });
  app.addHook("preClose", async () => live.close());
  const options = { schema: { querystring: LiveQuery }, config: { described: LIVE } };
  app.get(`${ADMIN_PREFIX}/live`, options, async (request, reply) => {
    const { snapshots } = request.query as Static<typeof LiveQuery>;
    const stream = live.watch(snapshots === undefined ? undefined : Math.max(1, Number(snapshots)));
    return reply.type("text/event-stream").header("x-accel-buffering", "no").send(stream);
  });
}

const LIVE = {
  id: "watchLive",
  summary: "What goes on at this instant, as server-sent events",
  description:
    "An event `snapshot` at once and one each second, its data a LiveSnapshot. The stream ends after ten minutes, when the " +
    "gateway does, or after `snapshots`: ask again. Figures are those of the metrics, of all workers together.",
  method: "GET",
  query: LiveQuery,
  answers: { 200: LiveShape },
  mediaType: "text/event-stream",
  refusals: { 429: "`too_many_watchers`, or `too_many_wrong_tokens`." },
} as const satisfies DescribedRoute;

function addPublicRoutes(app: App, options: ConsoleOptions): void {
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
