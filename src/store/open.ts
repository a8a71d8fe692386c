/** The store that the settings name. */
import type { StoreSettings, TlsSettings } from "../values/settings.ts";
import type { Store } from "./contract.ts";
import { openEmbedded } from "./embedded/store.ts";
import type { NoticeWriter } from "./notices.ts";

/** How long the first try of a step on Redis may take, milliseconds. */
const COMMAND_TIMEOUT_MS = 400;
/** Both tries of a step; a little under the 500 ms within which a request must be refused (docs/failure-model.md, row B3). */
const STEP_TIMEOUT_MS = 480;

export interface OpenOptions {
  /** The embedded store's clock, milliseconds since the epoch. Redis has its own. */
  readonly now?: () => number;
  /** How long settlements on the embedded store that follow one another wait to share a commit, milliseconds; 25 unless given. */
  readonly gatherMs?: number;
  /** Called with what an operator should know: a Redis without an append-only file, a user that lacks a right. */
  readonly warn?: (message: string) => void;
  /** Called with the reason each time that a connection to Redis is lost or cannot be made: several times a second. */
  readonly onConnectionFailed?: (reason: string) => void;
  /**
   * Asked for each connection to a Redis with TLS: how it is recognised now, since certificates are renewed. As the settings say, unless
   * given.
   */
  readonly tlsNow?: () => TlsSettings | undefined;
  readonly commandTimeoutMs?: number;
  /** How long both tries of a step on Redis may take, milliseconds. */
  readonly stepTimeoutMs?: number;
  /** Refuse a Redis without an append-only file, instead of a warning. */
  readonly demandAof?: boolean;
  /** What notices the store writes, and who is told that some wait; none are written without it. */
  readonly notices?: NoticeWriter | undefined;
}

/**
 * Opens the store. An embedded one is ready or throws; a Redis that is away is looked for in the background, so call
 * `check` before the first use: it says whether the store is fit.
 * @throws StoreError when the embedded store's folder is in use or cannot be opened.
 */
export async function openStore(settings: StoreSettings, options: OpenOptions = {}): Promise<Store> {
  const { now = Date.now, warn = () => undefined, onConnectionFailed = () => undefined, demandAof = false } = options;
  const { commandTimeoutMs = COMMAND_TIMEOUT_MS, stepTimeoutMs = STEP_TIMEOUT_MS } = options;
  if (settings.kind === "embedded") return openEmbedded(settings.dir, now, options.notices, options.gatherMs);
  // Its client is a tenth of all code: read by those only who have a Redis.
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
