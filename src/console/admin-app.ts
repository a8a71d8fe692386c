/**
 * The application of the admin listener (`listener.ts`): the admin API, whose routes are in `routes/`, and the
 * operator's console.
 */
import { setImmediate } from "node:timers/promises";
import type { LiveFigures } from "../telemetry/live-figures.ts";
import type { Access, AccessCheck, AccessReason } from "./access.ts";
import { Health, Readiness } from "./answers/answers.ts";
import { LiveShape } from "./answers/live.ts";
import { text } from "./answers/shape.ts";
import { type App, type AppRequest, addRoute, type ConsoleLog, createApp } from "./app.ts";
import { Audit } from "./audit/audit.ts";
import { auditRoutes } from "./audit/audit-routes.ts";
import { type DescribedRoute, OPEN_API_OPTIONS, openApiPlugin, openApiRoutes } from "./openapi.ts";
import { askedFrom } from "./operator/asked-from.ts";
import { LiveFeed } from "./operator/live.ts";
import { type OperatorConsole, type OperatorPages, operatorConsole } from "./operator/operator.ts";
import { ADMIN_PREFIX } from "./page-routes.ts";
import { PROBES, type ProbeParts } from "./probes.ts";
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
import { storeRoutes } from "./routes/store.ts";
import { type UpstreamWatcher, upstreamRoutes } from "./routes/upstreams.ts";
import { usageRoutes } from "./routes/usage.ts";
import { type Identity, versionRoutes } from "./routes/version.ts";
import type { StoreOperations } from "./store-operations.ts";
import { closed, type Static, Type, wholeNumber } from "./vocabulary.ts";

/** The query of the live stream. */
const LiveQuery = Type.Object(
  { snapshots: Type.Optional(wholeNumber(3, "a whole number of snapshots, after which the stream ends")) },
  closed,
);

export interface AdminAppOptions
  extends ConsoleParts,
    Explainer,
    Inviter,
    NoticeSender,
    ProbeParts,
    StoreOperations,
    UpstreamWatcher,
    Configured,
    Identity {
  /** The console for browsers; none if omitted. */
  readonly pages?: OperatorPages | undefined;
  /** Current figures of all worker processes. */
  readonly figures?: () => Promise<LiveFigures>;
  /** Receives a line for every write; the application creates its own audit if omitted. */
  readonly audit?: Audit;
  /** Called for each caller that was refused access. */
  readonly onAccessRefused?: (reason: AccessReason) => void;
  /** Checks access. Shared with the listener, which also checks requests that do not reach the application. */
  readonly access: Access;
  /** Whether the listener is a unix socket. */
  readonly isUnix: boolean;
  /** Fronts whose forwarding headers are trusted: CIDR blocks, and `unix`. None if omitted. */
  readonly trustProxy?: readonly string[];
  /** Receives audit lines and reports of defects, both flat objects without secrets. */
  readonly log: ConsoleLog;
  /** Why the store must not be used, in the words of readiness; undefined if no problem is known. */
  readonly storeUnfit?: () => string | undefined;
}

/**
 * Builds the application. The caller routes requests to it and closes it. Every answer except the metrics page is JSON;
 * every refusal is `{error: {code, message, remedy}}`.
 */
export function adminApp(options: AdminAppOptions): App {
  const app = createApp(options);
  const { access } = options;
  const { audit = new Audit(options.clock, options.log) } = options;
  const pages =
    options.pages &&
    operatorConsole({ ...options, ...options.pages, audit, from: askedFrom(options.trustProxy ?? []) });
  guard(app, options, access, pages);
  app.setNotFoundHandler(() => {
    throw new AdminRefusal(
      404,
      "unknown_path",
      "There is nothing at this path and method.",
      "The admin API is below /admin/v1/; tollgate --help lists the commands that use it.",
    );
  });
  app.register(openApiPlugin, OPEN_API_OPTIONS);
  // After the plugin, because the plugin inspects each route when it is added.
  app.register(async (routed) => {
    addProbes(routed, options);
    await addAdminRoutes(routed, { ...options, audit }, access, pages);
    addLive(routed, options);
    pages?.add(routed);
  });
  return app;
}

async function addAdminRoutes(
  app: App,
  options: AdminAppOptions,
  { who }: Access,
  pages: OperatorConsole | undefined,
): Promise<void> {
  const { audit = new Audit(options.clock, options.log) } = options;
  const from = askedFrom(options.trustProxy ?? []);
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
    // Adding a route takes half a millisecond; yield in between, because client requests are running.
    await setImmediate();
    addRoute(app, ADMIN_PREFIX, route, {
      audit,
      storeUnfit: options.storeUnfit,
      askerOf: (request) => ({
        who: pages?.whoOf(request) ?? who,
        from: from(request),
        requestId: request.id,
      }),
    });
  }
}

/** Checks access before the body is read, for unknown paths too, so that no route can omit the check. */
function guard(app: App, options: AdminAppOptions, access: Access, pages: OperatorConsole | undefined): void {
  const checkFor = (request: AppRequest): AccessCheck | undefined => {
    if (request.routeOptions.config.access === "metrics") return access.metrics;
    return request.routeOptions.config.access === "anyone" ? undefined : access.admin;
  };
  app.addHook("onRequest", async (request, reply) => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    reply.header("x-request-id", request.id);
    if (pages?.isVisit(request)) return reply.redirect("/console/");
    try {
      const check = checkFor(request);
      if (check === access.admin && (await pages?.admits(request))) return;
      check?.({ address: request.socket.remoteAddress, unix: options.isUnix, headers: request.headers });
    } catch (error) {
      if (error instanceof AdminRefusal) options.onAccessRefused?.(error.code as AccessReason);
      throw error;
    }
  });
}

/** `GET /admin/v1/live`. Not an ordinary route, because its answer is a stream. */
function addLive(app: App, { figures, clock }: AdminAppOptions): void {
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
  summary: "Stream live figures as server-sent events",
  description:
    "Sends an event `snapshot` at once and then every second, with a LiveSnapshot. The stream ends after a minute, when the " +
    "gateway stops, or after `snapshots` events; then connect again. The figures are those of the metrics, over all workers.",
  method: "GET",
  query: LiveQuery,
  answers: { 200: LiveShape },
  mediaType: "text/event-stream",
  refusals: { 429: "`too_many_watchers`, or `too_many_wrong_tokens`." },
} as const satisfies DescribedRoute;

/** The listener itself answers most requests for these paths. */
function addProbes(app: App, options: AdminAppOptions): void {
  for (const [path, probe] of Object.entries(PROBES)) {
    const config = { access: probe.access, described: DESCRIBED[path as keyof typeof PROBES] };
    app.get(path, { config }, async (request, reply) => {
      const { status, contentType, body } = await probe.answer(options, request.headers.accept);
      return reply.code(status).header("content-type", contentType).send(body);
    });
  }
}

const DESCRIBED = {
  "/healthz": {
    id: "healthz",
    summary: "Liveness: whether the process is alive",
    answers: { 200: Health },
    access: "anyone",
  },
  "/readyz": {
    id: "readyz",
    summary: "Readiness: whether the gateway should get traffic",
    answers: { 200: Readiness, 503: Readiness },
    access: "anyone",
  },
  "/metrics": {
    id: "metrics",
    summary: "Metrics, for Prometheus; without a token for programs on the gateway's machine",
    answers: { 200: text("The exposition format of Prometheus.", "tollgate_store_up 1") },
    mediaType: "text/plain",
    access: "metrics",
  },
} as const satisfies Record<keyof typeof PROBES, DescribedRoute>;
