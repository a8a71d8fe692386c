/**
 * Opens the parts that a client's request passes through: upstreams, overload limits, tracing, and what each request
 * gets of them. `gateway.ts` connects the listeners to it; `request/run.ts` runs one request.
 */
import { setMaxListeners } from "node:events";
import { FailedKeys } from "./accept/failed-keys.ts";
import type { AdmitParts } from "./admit/admit.ts";
import { createSeenKeys } from "./admit/seen-keys.ts";
import type { Books } from "./books.ts";
import { dataDirOf, sealingKeysOf } from "./config/kept-secret.ts";
import { createDispatcher } from "./dispatch/dispatcher.ts";
import { watchUpstreams } from "./dispatch/upstream/watch.ts";
import { createOverload } from "./overload/overload.ts";
import { KeyUses } from "./request/key-uses.ts";
import { createRecorder } from "./request/record.ts";
import type { PipelineParts } from "./request/run.ts";
import { createSealing } from "./request/sealing.ts";
import { DisconnectedStreams } from "./settle/disconnected-streams.ts";
import { abandoned } from "./settle/lines.ts";
import { Observed } from "./settle/observed.ts";
import { inTime } from "./store/middleware/breakers.ts";
import { type Log, withoutRepeats } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import { NO_TRACING, type Tracing } from "./telemetry/traces.ts";
import type { ClosingStep } from "./values/program/closing.ts";
import { BUILD } from "./values/program/program.ts";
import type { Settings } from "./values/settings.ts";
import { type Clock, Cohort } from "./values/time.ts";
import { addressBucket } from "./wire/address.ts";

/** How long a request waits for the last charge of its own account before it is answered with `store_unavailable`. */
const UNSETTLED_WAIT_MS = 400;
/**
 * With this many settlements under way, an admission of unknown outcome is not given up explicitly: its hold expires by
 * itself.
 */
const ABANDONED_MAX = 1_000;

interface OpenPipelineParts {
  /** The settings in force; read for each request. */
  readonly settings: () => Settings;
  readonly books: Books;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /**
   * Returns numbers in [0, 1); decides which streams are read to their count after the client has disconnected
   * (settle/observed.ts).
   */
  readonly chance?: (() => number) | undefined;
  /** Aborts when running streams must end now. */
  readonly cut: AbortSignal;
}

/** @param opened receives a closing step for each part, in the order of opening. */
export async function openPipeline(parts: OpenPipelineParts, opened: ClosingStep[]): Promise<PipelineParts> {
  const { settings, books, clock, metrics, log, cut } = parts;
  const { charging, notices, store } = books;
  const { journal, settler } = charging;
  const { upstreams, catalog, traces, sealingKeys } = settings();
  metrics.expectConfigured({ upstreams, catalog });
  const dispatcher = createDispatcher({
    upstreams,
    clock,
    random: Math.random,
    ...watchUpstreams({ metrics, log, notify: (kind, data) => notices.note(kind, data) }),
  });
  opened.push(() => dispatcher.close());
  // Before all streams, whose slots would go to requests that wait.
  cut.addEventListener("abort", () => dispatcher.stop(), { once: true });
  const tracing = await tracingOf(traces, parts);
  opened.push(() => tracing.close());
  setMaxListeners(0, cut); // One per running stream, removed at its end.
  const overload = createOverload({ settings, journalFill: () => journal.health().fillRatio, clock, metrics });
  opened.push(() => overload.stop());
  const disconnected = new DisconnectedStreams();
  return {
    settings,
    clock,
    store,
    admit: admitParts(parts, disconnected),
    failedKeys: new FailedKeys(clock),
    dispatcher,
    journal,
    settler,
    sealing: createSealing(sealingKeysOf(sealingKeys, dataDirOf(settings()))),
    cut,
    overload,
    cohort: new Cohort(clock),
    keyUses: new KeyUses({ clock, log, store: charging.store, bucketOf: addressBucket }),
    observed: new Observed(parts.chance),
    disconnected,
    recorder: createRecorder({ tracing, metrics, log, clock, catalog: () => settings().catalog }),
  };
}

/** The parts that decide whether a request may run, and what it waits for. */
function admitParts({ settings, books, clock }: OpenPipelineParts, disconnected: DisconnectedStreams): AdmitParts {
  const { charging, notices } = books;
  const { settler } = charging;
  return {
    store: charging.store,
    catalog: () => settings().catalog,
    unsettled(tag) {
      disconnected.end(tag);
      const settled = settler.unsettled(tag);
      return settled && inTime(clock, UNSETTLED_WAIT_MS, settled);
    },
    seenKeys: createSeenKeys(clock),
    onBudgetMet: (tag, refused) => notices.budgetMet(tag, refused),
    wallMs: () => clock.wallMs(),
    abandon(requestId, tag, inputTokens, idempotency) {
      // Above this number the hold expires by itself, so that memory does not grow during an outage.
      if (settler.pending() >= ABANDONED_MAX) return;
      void settler.settle(abandoned(requestId, tag, inputTokens, clock.wallMs(), idempotency), false);
    },
  };
}

/** Loads OpenTelemetry only if traces are configured. */
async function tracingOf(
  traces: Settings["traces"],
  { clock, log }: Pick<OpenPipelineParts, "clock" | "log">,
): Promise<Tracing> {
  if (traces === undefined) return NO_TRACING;
  const failed = withoutRepeats(clock, (reason) =>
    log.warn({ event: "traces_lost", reason }, "the collector does not take the traces; they are lost"),
  );
  return (await import("./telemetry/otlp.ts")).createTracing(traces, Math.random, BUILD.version, failed);
}
