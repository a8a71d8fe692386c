/** Logs and counts the refusals of the admin API. */
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AdminListenerOptions } from "./listener.ts";

/** The functions that the console calls to log and to count. */
export function notificationsTo(
  log: Log,
  metrics: Metrics,
): Pick<AdminListenerOptions, "log" | "onAccessRefused" | "onTokenGuesses" | "onCodeFailure"> {
  return {
    log: (line, level = "info") => log[level](line, "admin"),
    onAccessRefused: (reason) => metrics.adminRefusals.inc({ reason }),
    onTokenGuesses: (from) => log.warn({ from }, "too many wrong admin tokens from an address"),
    onCodeFailure({ account, outcome, blocksNow }) {
      metrics.codeFailures.inc({ outcome });
      if (blocksNow) log.warn({ account }, "an account tries codes that it cannot redeem; it is blocked for now");
    },
  };
}
