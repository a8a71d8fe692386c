/**
 * Builds a running gateway from its settings, and closes it. Importing it does nothing; `main.ts` and whole-process
 * tests call it.
 */

import { randomBytes } from "node:crypto";
import { removeStaleSocket, restrictSocket } from "./accept/socket-file.ts";
import { openBooks } from "./books.ts";
import { asWritten, DEFAULTS, diffSettings, keepUntilRestart, removedEntries } from "./config/config.ts";
import { dataDirOf, keptSecret } from "./config/kept-secret.ts";
import { type AddressSetting, listenFailure } from "./config/listen-failure.ts";
import { Audit, type AuditEntry } from "./console/audit/audit.ts";
import { CodeGuesses } from "./console/guess-budget.ts";
import { type AdminListener, adminListener } from "./console/listener.ts";
import { notificationsTo } from "./console/notifications.ts";
import type { OwnExplain } from "./console/owner/help.ts";
import { createOwnerConsole, type OwnerConsole } from "./console/owner/owner.ts";
import { type RefusedSettings, Reloads } from "./console/reloads.ts";
import type { Inviter } from "./console/routes/invitations.ts";
import type { UpstreamState } from "./console/routes/upstreams.ts";
import { storeOperations } from "./console/store-operations.ts";
import { measureUpstreams } from "./dispatch/upstream/watch.ts";
import { drainListener, publicListener, stopListener } from "./endpoints/endpoints.ts";
import { explainFor, explainToOwner } from "./endpoints/explain/questions.ts";
import { openPipeline } from "./pipeline.ts";
import type { PipelineParts } from "./request/run.ts";
import type { Sealing } from "./request/sealing.ts";
import { SETTLE_GRACE_MS } from "./settle/recovery/charging.ts";
import type { Store } from "./store/contract.ts";
import type { OpenOptions } from "./store/open.ts";
import { figuresOf, liveMetrics } from "./telemetry/live-figures.ts";
import { createLog, type Log, takeDroppedLines } from "./telemetry/log.ts";
import { createMetrics, type Metrics, type MetricsPage, type MetricsSnapshot } from "./telemetry/metrics.ts";
import { type ClosingStep, closeAll } from "./values/program/closing.ts";
import { errorStack } from "./values/program/error-text.ts";
import { BUILD } from "./values/program/program.ts";
import type { Address, Settings } from "./values/settings.ts";
import { type Clock, systemClock } from "./values/time.ts";
import type { Applied } from "./workers/workers.ts";

export interface GatewayOptions {
  readonly settings: Settings;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Timeouts for steps on Redis, if they differ from the defaults. */
  readonly storeTimes?: Pick<OpenOptions, "commandTimeoutMs" | "stepTimeoutMs">;
  /**
   * Returns numbers in [0, 1); decides which streams are read to their count after the client has disconnected
   * (settle/observed.ts).
   */
  readonly chance?: () => number;
  /** Which side this process serves if a gateway has several processes (workers/workers.ts); default: both. */
  readonly serves?: "clients" | "operators";
  /**
   * What other processes of the gateway add: to the metrics (`page`, `sum`), and to the reasons and notes of readiness.
   */
  readonly page?: (own: MetricsSnapshot) => Promise<MetricsPage>;
  readonly sum?: (own: MetricsSnapshot) => Promise<MetricsSnapshot>;
  readonly reasons?: () => readonly string[];
  readonly notes?: () => readonly string[];
  /** Updates the gauges about other processes. */
  readonly measure?: (metrics: Metrics) => void;
  /** State of the upstreams, if other processes call them. */
  readonly upstreams?: () => readonly UpstreamState[];
  /** Takes the audit entries, if another process serves the audit. */
  readonly passAudit?: (entry: AuditEntry) => void;
}

export interface Gateway extends Omit<PreparedGateway, "open"> {
  /** Where clients and operators are served, with the actual ports. */
  readonly listen: Address;
  readonly admin: Address;
}

/** A gateway whose store and journal are open, but which does not listen yet. */
interface PreparedGateway {
  /** Starts to serve. If it cannot listen, closes everything and rejects. */
  open(): Promise<Gateway>;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly audit: Pick<Audit, "take">;
  /** The token of the admin API: configured, or made and kept in the data folder. */
  readonly adminToken: string;
  /** Why this process should get no traffic; empty if there is no reason. */
  reasons(): string[];
  /** Its current metrics, for a page that several processes share. */
  snapshot(): Promise<MetricsSnapshot>;
  upstreams(): readonly UpstreamState[];
  /** Whether requests are refused, or soon will be, because the process is out of memory. */
  isShortOfMemory(): boolean;
  /**
   * Applies new settings to all requests from the next one on, except settings that wait for a restart.
   * @throws if they cannot be applied; then nothing has changed.
   */
  apply(settings: Settings): Applied;
  /** The same, and counts the reload as accepted. */
  reload(settings: Settings): Applied;
  /** Reports that a reload was refused; the old settings stay in force. */
  reloadFailed(problems: RefusedSettings["problems"]): void;
  /**
   * Graceful shutdown: not ready; new requests still served for the lame-duck time; then running ones may finish until
   * the deadline.
   */
  drain(): Promise<void>;
  /**
   * Stops at once, unless it already drains. Running requests are cut; what they owe is still settled, and what they get
   * is sent.
   */
  close(): Promise<void>;
}

/** Starts a gateway: store, journal, listeners. Rejects with the reason if it cannot start. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  return (await prepareGateway(options)).open();
}

/** The first half of a start: everything except the listeners. Rejects with the reason if that fails. */
export async function prepareGateway(options: GatewayOptions): Promise<PreparedGateway> {
  const { clock = systemClock, log = createLog({ level: options.settings.log.level }) } = options;
  const opened: ClosingStep[] = [];
  try {
    return await prepare({ ...options, clock, log }, opened);
  } catch (error) {
    // The caller gets the reason why it did not start; failures to close are in the log.
    await closeAll(opened.reverse(), notClosed(log)).catch(() => {});
    throw error;
  }
}

/** What changes while a gateway runs. */
interface GatewayState {
  /** The settings in force. */
  settings: Settings;
  /** The number of these settings: 1 at the start; each accepted reload adds 1. */
  generation: number;
  /** Where clients are served; with the actual port once it listens. */
  listening: Address;
  isDraining: boolean;
}

interface PrepareOptions extends GatewayOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** @param opened receives a closing step for each part, in the order of opening. */
async function prepare(options: PrepareOptions, opened: ClosingStep[]): Promise<PreparedGateway> {
  const { clock, serves, settings: started, log } = options;
  const state: GatewayState = { settings: started, generation: 1, listening: started.listen, isDraining: false };
  const settings = () => state.settings;
  const metrics = createMetrics();
  const books = await openBooks(
    { ...options, metrics, storeNow: () => state.settings.store, generation: () => state.generation },
    opened,
  );
  const cut = new AbortController();
  const pipeline = await openPipeline({ ...options, settings, books, metrics, cut: cut.signal }, opened);
  const { charging } = books;
  const { dispatcher, keyUses } = pipeline;
  const reloads = new Reloads(clock);
  const reasons = () => [...(state.isDraining ? ["draining"] : []), ...books.reasons()];
  const consoleParts = {
    store: books.journaled(charging.operators()),
    catalog: () => state.settings.catalog,
    clock,
    random: randomBytes,
    codeGuesses: new CodeGuesses(clock),
    upstreams: options.upstreams ?? (() => dispatcher.report()),
    ...reportsTo(log, metrics, clock, options.passAudit),
  };
  const owners = ownersConsole(consoleParts, state, pipeline);
  const clients = publicListener(pipeline, charging.store, log, serves === "clients", owners);
  // After store and journal, which have better messages for an unusable folder.
  const adminToken = started.adminToken ?? keptSecret(dataDirOf(started), "admin-token");
  const measure = () => {
    charging.measure();
    books.notices.measure();
    pipeline.overload.measure();
    metrics.logDropped.inc({}, takeDroppedLines());
    measureUpstreams(dispatcher.report(), metrics);
    if (serves !== "clients") metrics.measureBuild(BUILD, state.generation);
    if (serves === undefined) metrics.measureWorkers([{ worker: 1, up: true, generation: state.generation }]);
    options.measure?.(metrics);
  };
  const snapshot = () => {
    measure();
    return metrics.snapshot();
  };
  const operators = adminListener({
    ...consoleParts,
    ...storeOperations(charging, () => books.storeAway()),
    storeUnfit: () => books.storeUnfit(),
    running: () => ({ ...BUILD, node: process.versions.node, generation: state.generation }),
    explain: (ask) => explainFor(ask, charging.store, pipeline),
    notices: books.notices,
    invitation: invitationOf(started, () => state.listening),
    ...sightOf(pipeline.sealing, snapshot, options.sum, started),
    configuration: () => reloads.show(asWritten(state.settings), state.generation),
    adminToken,
    trustProxy: started.trustProxy,
    metrics: async (accept) => {
      if (options.page) return options.page(await snapshot());
      measure();
      return metrics.page(accept);
    },
    readiness: () => {
      const all = [...reasons(), ...(options.reasons?.() ?? [])];
      return { ready: all.length === 0, reasons: all, notes: [...(options.notes?.() ?? [])] };
    },
  });
  const apply = (next: Settings) => {
    const kept = keepUntilRestart(started, next);
    dispatcher.replace(kept.upstreams); // Throws before anything has changed.
    const gone = removedEntries(state.settings, kept);
    state.settings = kept;
    state.generation++;
    metrics.expectConfigured(kept);
    books.notices.apply(kept.notices);
    return { generation: state.generation, gone, ...reloads.accepted(diffSettings(started, next)) };
  };
  const end = ending(state, { clients, cut, clock }, () =>
    closeAll(
      [() => charging.drain(SETTLE_GRACE_MS), () => keyUses.close(), () => operators.close(), ...opened.reverse()],
      notClosed(log),
    ),
  );
  const prepared: Omit<PreparedGateway, "open"> = {
    store: books.store,
    metrics,
    audit: consoleParts.audit,
    adminToken: adminToken.reveal(),
    reasons,
    snapshot,
    upstreams: () => dispatcher.report(),
    isShortOfMemory: () => pipeline.overload.isShortOfMemory(),
    apply,
    reload(next) {
      const applied = apply(next);
      countReload(metrics, "accepted");
      return applied;
    },
    reloadFailed(problems) {
      reloads.refused(problems);
      countReload(metrics, "refused");
    },
    ...end,
  };
  return {
    ...prepared,
    async open() {
      try {
        return { ...prepared, ...(await listen(state, { clients, operators, serves })) };
      } catch (error) {
        // The caller gets the reason why it did not start; failures to close are in the log.
        await end.close().catch(() => {});
        throw error;
      }
    },
  };
}

type ClientListener = ReturnType<typeof publicListener>;

interface EndingParts {
  readonly clients: ClientListener;
  readonly cut: AbortController;
  readonly clock: Clock;
}

/**
 * The two ways to stop; the first one called counts. @param shutDown closes the rest when the clients' listener is
 * closed.
 */
function ending(
  state: GatewayState,
  { clients, cut, clock }: EndingParts,
  shutDown: () => Promise<void>,
): Pick<PreparedGateway, "drain" | "close"> {
  let closing: Promise<void> | undefined;
  return {
    drain() {
      state.isDraining = true;
      closing ??= drainListener(clients, state.settings, clock, () => cut.abort())
        // No clients are left. Streams that are still read for their bill end with what is known so far.
        .then(() => cut.abort())
        .then(shutDown);
      return closing;
    },
    close() {
      state.isDraining = true;
      closing ??= stopListener(clients, () => cut.abort()).then(shutDown);
      return closing;
    },
  };
}

interface Listeners {
  readonly clients: ClientListener;
  readonly operators: AdminListener;
  readonly serves: GatewayOptions["serves"];
}

/**
 * Starts the listeners that this process needs. @returns their addresses. Rejects with an error that names the setting
 * at fault.
 */
async function listen(
  state: GatewayState,
  { clients, operators, serves }: Listeners,
): Promise<Pick<Gateway, "listen" | "admin">> {
  const { listen: clientAddress, admin: adminAddress } = state.settings;
  const explained = (setting: AddressSetting, address: Address) => async (error: unknown) => {
    throw await listenFailure(setting, address, error, setting === "listen" ? adminAddress : clientAddress);
  };
  if (serves !== "operators") state.listening = await clients.listen().catch(explained("listen", clientAddress));
  const admin =
    serves === "clients"
      ? adminAddress
      : await listenToOperators(operators, adminAddress).catch(explained("admin", adminAddress));
  return { listen: state.listening, admin };
}

/**
 * Starts the admin listener. The file of a Unix socket is replaced and restricted like that of the clients' listener.
 */
async function listenToOperators(operators: AdminListener, address: Address): Promise<Address> {
  if (address.kind === "tcp") return operators.listen(address);
  await removeStaleSocket(address.path);
  const listening = await operators.listen(address);
  await restrictSocket(address.path);
  return listening;
}

/** The owners' console, if the configuration has one. */
function ownersConsole(
  consoleParts: Omit<Parameters<typeof createOwnerConsole>[0], "settings" | "sealer" | "explain" | "warnsAt">,
  state: GatewayState,
  pipeline: PipelineParts,
): OwnerConsole | undefined {
  const { console: settings } = state.settings;
  const explain: OwnExplain = (ask, own) => explainToOwner(ask, own, pipeline);
  const warnsAt = () => state.settings.notices;
  return settings && createOwnerConsole({ ...consoleParts, settings, sealer: pipeline.sealing, explain, warnsAt });
}

/** Logs a part that could not be closed. */
function notClosed(log: Log): (error: unknown) => void {
  return (error) =>
    log.error({ event: "close_failed", reason: errorStack(error) }, "a part could not be closed; the others are");
}

/** Audit, log and metrics of both consoles. */
function reportsTo(log: Log, metrics: Metrics, clock: Clock, passOn: GatewayOptions["passAudit"]) {
  const notifications = notificationsTo(log, metrics);
  return { ...notifications, audit: new Audit(clock, notifications.log, passOn && { passOn }) };
}

function countReload(metrics: Metrics, result: "accepted" | "refused"): void {
  metrics.configReloads.inc({ result });
  metrics.configLastReloadSuccess.set(result === "accepted" ? 1 : 0);
}

/** What the operator's console has in addition to the admin API. */
function sightOf(
  sealer: Sealing,
  snapshot: () => Promise<MetricsSnapshot>,
  sum: GatewayOptions["sum"],
  { console, operatorOidc: oidc }: Settings,
) {
  const figures = async () => {
    const own = liveMetrics(await snapshot());
    return figuresOf(sum ? await sum(own) : own);
  };
  return { pages: { sealer, sessionMs: console?.sessionMs ?? DEFAULTS.consoleSessionMs, oidc }, figures };
}

/** How owners are invited to their console; undefined if there is none. */
function invitationOf({ console }: Settings, listening: () => Address): Inviter["invitation"] {
  if (console === undefined) return undefined;
  const { invitationMs: lastsMs, publicUrl, path } = console;
  return { lastsMs, consoleUrl: () => (publicUrl ?? addressOf(listening())) + path };
}

/**
 * The address at which a browser on this machine reaches a listener. For a listener on all interfaces it is localhost.
 */
function addressOf(listening: Address): string {
  if (listening.kind === "unix") return "http://localhost";
  const { host, port } = listening;
  const isEverywhere = host === "0.0.0.0" || host === "::";
  const name = host.includes(":") ? `[${host}]` : host;
  return `http://${isEverywhere ? "localhost" : name}:${port}`;
}
