/**
 * Builds one running gateway from its settings and takes it down again. Importing it does nothing; `main.ts` and the
 * whole-process tests call it.
 */

import { randomBytes } from "node:crypto";
import { removeStaleSocket, restrictSocket } from "./accept/socket-file.ts";
import { openBooks } from "./books.ts";
import { asWritten, DEFAULTS, diffSettings, goneFrom, keepUntilRestart } from "./config/config.ts";
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
import { storeKeeper } from "./console/store-keeper.ts";
import { measureUpstreams } from "./dispatch/upstream/watch.ts";
import { drainListener, publicListener } from "./endpoints/endpoints.ts";
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
  /** How long steps on Redis may take, where it is not to be the usual. */
  readonly storeTimes?: Pick<OpenOptions, "commandTimeoutMs" | "stepTimeoutMs">;
  /** Gives numbers in [0, 1), by which it is drawn what of the streams that are left is checked. */
  readonly chance?: () => number;
  /** Which side this process serves where a gateway is several of them (workers/workers.ts); both unless given. */
  readonly serves?: "clients" | "operators";
  /** What other processes of the gateway add: to the page of metrics, and to what keeps it from being ready or does not. */
  readonly page?: (own: MetricsSnapshot) => Promise<MetricsPage>;
  readonly sum?: (own: MetricsSnapshot) => Promise<MetricsSnapshot>;
  readonly reasons?: () => readonly string[];
  readonly notes?: () => readonly string[];
  /** Updates the gauges about other processes. */
  readonly measure?: (metrics: Metrics) => void;
  /** How the upstreams do, where other processes ask them. */
  readonly upstreams?: () => readonly UpstreamState[];
  /** Takes the lines of the audit where another process answers for it. */
  readonly passAudit?: (entry: AuditEntry) => void;
}

export interface Gateway extends Omit<PreparedGateway, "open"> {
  /** Where clients and operators are served; ports are the real ones. */
  readonly listen: Address;
  readonly admin: Address;
}

/** A gateway with its store and its journal open, which nobody can reach yet. */
interface PreparedGateway {
  /** Begins to serve. Rejects, with everything closed, when it cannot listen. */
  open(): Promise<Gateway>;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly audit: Pick<Audit, "take">;
  /** The token of the admin API: configured, or made and kept in the data folder. */
  readonly adminToken: string;
  /** Why this process should get no traffic; empty while it should. */
  reasons(): string[];
  /** Its metrics, brought up to date, for a page that several processes share. */
  snapshot(): Promise<MetricsSnapshot>;
  upstreams(): readonly UpstreamState[];
  /** Whether requests are, or are soon, turned away because the process has no memory left. */
  isShortOfMemory(): boolean;
  /**
   * Takes new settings for all requests from the next one on, as far as they do not wait for a restart.
   * @throws when they cannot be taken; then nothing has changed.
   */
  apply(settings: Settings): Applied;
  /** The same, and counts the reload as accepted. */
  reload(settings: Settings): Applied;
  /** A reload was refused; the old settings stay in force. */
  reloadFailed(problems: RefusedSettings["problems"]): void;
  /** Readiness off, new requests still served for the lame duck's time, then what runs finishes until the deadline. */
  drain(): Promise<void>;
  /** Stops at once, unless it drains already; running requests are cut, and what they owe is still settled. */
  close(): Promise<void>;
}

/** Starts a gateway: store, journal, listeners. Rejects with the reason when it cannot. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  return (await prepareGateway(options)).open();
}

/** The first half of a start: everything but the listeners. Rejects with the reason when it cannot. */
export async function prepareGateway(options: GatewayOptions): Promise<PreparedGateway> {
  const { clock = systemClock, log = createLog({ level: options.settings.log.level }) } = options;
  const opened: ClosingStep[] = [];
  try {
    return await prepare({ ...options, clock, log }, opened);
  } catch (error) {
    // What could not be closed is in the log; why it did not start is what its caller must know.
    await closeAll(opened.reverse(), notClosed(log)).catch(() => {});
    throw error;
  }
}

/** What changes while a gateway runs. */
interface GatewayState {
  /** Those in force. */
  settings: Settings;
  /** How many settings have been in force. */
  generation: number;
  /** Where clients are served: the real port, once it listens. */
  listening: Address;
  isDraining: boolean;
}

interface PrepareOptions extends GatewayOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** @param opened gets what closes each part, in the order in which they are opened. */
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
  // After store and journal, which know better words for a folder that cannot be used.
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
    ...storeKeeper(charging),
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
    const gone = goneFrom(state.settings, kept);
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
        // What could not be closed is in the log; why it did not start is what its caller must know.
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

/** The two ways to stop; whichever begins first is the one. @param shutDown closes what nobody uses any more. */
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
        // No client is left; what is still read on for its bill ends with what is known.
        .then(() => cut.abort())
        .then(shutDown);
      return closing;
    },
    close() {
      state.isDraining = true;
      closing ??= (async () => {
        const closed = clients.close();
        clients.destroy();
        await closed;
        cut.abort();
        await shutDown();
      })();
      return closing;
    },
  };
}

interface Listeners {
  readonly clients: ClientListener;
  readonly operators: AdminListener;
  readonly serves: GatewayOptions["serves"];
}

/** Begins to listen to those whom this process serves. @returns the addresses. Rejects with words for the setting at fault. */
async function listen(
  state: GatewayState,
  { clients, operators, serves }: Listeners,
): Promise<Pick<Gateway, "listen" | "admin">> {
  const { listen: clientAddress, admin: adminAddress } = state.settings;
  const said = (setting: AddressSetting, address: Address) => async (error: unknown) => {
    throw await listenFailure(setting, address, error, setting === "listen" ? adminAddress : clientAddress);
  };
  if (serves !== "operators") state.listening = await clients.listen().catch(said("listen", clientAddress));
  const admin =
    serves === "clients"
      ? adminAddress
      : await listenToOperators(operators, adminAddress).catch(said("admin", adminAddress));
  return { listen: state.listening, admin };
}

/** Has the admin API listen; a socket's file is taken and restricted as that of the clients' listener is. */
async function listenToOperators(operators: AdminListener, address: Address): Promise<Address> {
  if (address.kind === "tcp") return operators.listen(address);
  await removeStaleSocket(address.path);
  const listening = await operators.listen(address);
  await restrictSocket(address.path);
  return listening;
}

/** The console of owners, where the configuration has one. */
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

/** Tells of a part that could not be closed. */
function notClosed(log: Log): (error: unknown) => void {
  return (error) =>
    log.error({ event: "close_failed", reason: errorStack(error) }, "a part could not be closed; the others are");
}

/** What both consoles leave of what is done and refused. */
function reportsTo(log: Log, metrics: Metrics, clock: Clock, passOn: GatewayOptions["passAudit"]) {
  const notifications = notificationsTo(log, metrics);
  return { ...notifications, audit: new Audit(clock, notifications.log, passOn && { passOn }) };
}

function countReload(metrics: Metrics, result: "accepted" | "refused"): void {
  metrics.configReloads.inc({ result });
  metrics.configLastReloadSuccess.set(result === "accepted" ? 1 : 0);
}

/** What the operator's console sees beside the admin API. */
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

/** How owners are invited to their pages; undefined when there are none. */
function invitationOf({ console }: Settings, listening: () => Address): Inviter["invitation"] {
  if (console === undefined) return undefined;
  const { invitationMs: lastsMs, publicUrl, path } = console;
  return { lastsMs, consoleUrl: () => (publicUrl ?? addressOf(listening())) + path };
}

/** Under what address a browser on this machine finds a listener; one that listens everywhere has no name of its own. */
function addressOf(listening: Address): string {
  if (listening.kind === "unix") return "http://localhost";
  const { host, port } = listening;
  const isEverywhere = host === "0.0.0.0" || host === "::";
  const name = host.includes(":") ? `[${host}]` : host;
  return `http://${isEverywhere ? "localhost" : name}:${port}`;
}
