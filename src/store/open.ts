/** Opens the store that the settings name. */
import type { StoreSettings, TlsSettings } from "../values/settings.ts";
import type { Store } from "./contract.ts";
import { openEmbedded } from "./embedded/store.ts";
import type { NoticeWriter } from "./notices.ts";

/** Time limit of the first try of a step on Redis, milliseconds. */
const COMMAND_TIMEOUT_MS = 400;
/**
 * Time limit of both attempts of a step; slightly below the 500 ms within which a request must be refused
 * (docs/failure-model.md, row B3).
 */
const STEP_TIMEOUT_MS = 480;

export interface OpenOptions {
  /** The embedded store's clock, milliseconds since the epoch. Redis has its own. */
  readonly now?: () => number;
  /** How long consecutive settlements on the embedded store wait to share a commit, milliseconds; default 25. */
  readonly gatherMs?: number;
  /** Called with warnings for the operator: a Redis without an append-only file, a user that lacks a right. */
  readonly warn?: (message: string) => void;
  /**
   * Called with the reason each time that a connection to Redis is lost or cannot be made: several times a second.
   * `problem` is what readiness may say of it; undefined: only that there is no answer.
   */
  readonly onConnectionFailed?: (reason: string, problem: string | undefined) => void;
  /**
   * Called for each TLS connection to Redis: the current TLS settings, because certificates are renewed. Default: as in
   * the store's settings.
   */
  readonly tlsNow?: () => TlsSettings | undefined;
  readonly commandTimeoutMs?: number;
  /** Time limit of both attempts of a step on Redis, milliseconds. */
  readonly stepTimeoutMs?: number;
  /** Refuse a Redis without an append-only file, instead of warning. */
  readonly demandAof?: boolean;
  /** Which notices the store writes, and whom it notifies of waiting ones. Without it none are written. */
  readonly notices?: NoticeWriter | undefined;
  /**
   * Whether everything that the journal kept of earlier processes is in the store. From then on an embedded store takes
   * a request of an earlier process that is still marked as running for one that will never end. Default: never.
   */
  readonly isRecovered?: () => boolean;
}

/**
 * Opens the store. An embedded one is ready or throws. Connecting to an unavailable Redis goes on in the background, so
 * call `check` before the first use: it says whether the store is fit.
 * @throws StoreError when the embedded store's folder is in use or cannot be opened.
 */
export async function openStore(settings: StoreSettings, options: OpenOptions = {}): Promise<Store> {
  const { now = Date.now, warn = () => undefined, onConnectionFailed = () => undefined, demandAof = false } = options;
  const { commandTimeoutMs = COMMAND_TIMEOUT_MS, stepTimeoutMs = STEP_TIMEOUT_MS } = options;
  if (settings.kind === "embedded") {
    return openEmbedded(settings.dir, now, options.notices, options.gatherMs, options.isRecovered);
  }
  // The Redis client is a tenth of all code, so it is loaded only when it is needed.
  const { openRedis } = await import("./redis/store.ts");
  return openRedis(
    settings,
    options.tlsNow ?? (() => settings.tls),
    { tryMs: commandTimeoutMs, totalMs: stepTimeoutMs },
    { warn, demandAof },
    onConnectionFailed,
    options.notices,
  );
}
