/**
 * Opens what a client's request goes through: the upstreams, the limits on how much is under way, what is traced, and what each
 * request is given of all that. `gateway.ts` has the listeners hand requests to it; `request/run.ts` runs one.
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
import { LeftStreams } from "./settle/left-streams.ts";
import { abandoned } from "./settle/lines.ts";
import { Observed } from "./settle/observed.ts";
import { inTime } from "./store/middleware/breakers.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import { NO_TRACING, type Tracing } from "./telemetry/traces.ts";
import type { ClosingStep } from "./values/program/closing.ts";
import { BUILD } from "./values/program/program.ts";
import type { Settings } from "./values/settings.ts";
import { type Clock, Cohort } from "./values/time.ts";
import { addressBucket } from "./wire/address.ts";

/** How long a request waits for its account's own last charge before it is answered that the store is unavailable. */
const UNSETTLED_WAIT_MS = 400;
/** Settlements under way above which admissions of unknown outcome are left to the end of their holds. */
const ABANDONED_MAX = 1_000;

interface OpenPipelineParts {
  /** Those in force; asked anew for each request. */
  readonly settings: () => Settings;
  readonly books: Books;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Gives numbers in [0, 1), by which it is drawn what of the streams that are left is checked. */
  readonly chance?: (() => number) | undefined;
  /** Aborts when running streams must end now. */
  readonly cut: AbortSignal;
}

/** @param opened gets what closes each part, in the order in which they are opened. */
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
    ...watchUpstreams({ metrics, log, tell: (kind, data) => notices.note(kind, data) }),
  });
  opened.push(() => dispatcher.close());
  const tracing = await tracingOf(traces);
  opened.push(() => tracing.close());
  setMaxListeners(0, cut); // One for each running stream, taken off at its end.
  const overload = createOverload({ settings, journalFill: () => journal.health().fillRatio, clock, metrics });
  opened.push(() => overload.stop());
  const left = new LeftStreams();
  return {
    settings,
    clock,
    store,
    admit: admitParts(parts, left),
    failedKeys: new FailedKeys(clock),
    dispatcher,
    journal,
    settler,
    sealing: createSealing(sealingKeysOf(sealingKeys, dataDirOf(settings()))),
    cut,
    overload,
    cohort: new Cohort(clock),
    keyUses: new KeyUses({ clock, log, store, bucketOf: addressBucket }),
    observed: new Observed(parts.chance),
    left,
    recorder: createRecorder({ tracing, metrics, log, clock, catalog: () => settings().catalog }),
  };
}

/** What decides whether a request may run, and what it waits for. */
function admitParts({ settings, books, clock }: OpenPipelineParts, left: LeftStreams): AdmitParts {
  const { charging, notices } = books;
  const { settler } = charging;
  return {
    store: charging.store,
    catalog: () => settings().catalog,
    unsettled(tag) {
      left.end(tag);
      const settled = settler.unsettled(tag);
      return settled && inTime(clock, UNSETTLED_WAIT_MS, settled);
    },
    seenKeys: createSeenKeys(clock),
    onBudgetMet: (tag, refused) => notices.budgetMet(tag, refused),
    wallMs: () => clock.wallMs(),
    abandon(requestId, tag, inputTokens, idempotency) {
      // Beyond this many the hold's own end has to do: an outage must not grow memory.
      if (settler.pending() >= ABANDONED_MAX) return;
      void settler.settle(abandoned(requestId, tag, inputTokens, clock.wallMs(), idempotency), false);
    },
  };
}

/** What is never traced pays for none of it. */
async function tracingOf(traces: Settings["traces"]): Promise<Tracing> {
  if (traces === undefined) return NO_TRACING;
  return (await import("./telemetry/otlp.ts")).createTracing(traces, Math.random, BUILD.version);
}
