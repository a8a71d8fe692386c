/**
 * The messages between a worker process and its parent, in order on one channel. A start consists of `start`,
 * `prepared`, `open`, `serving`. Configurations (`reload`, answered by `configured`), pings and the rest may come in
 * between at any time.
 */
import type { ConfigCopy } from "../config/config.ts";
import type { AuditEntry } from "../console/audit/audit.ts";
import type { UpstreamState } from "../console/routes/upstreams.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { Address } from "../values/settings.ts";

/** How to end: let running requests finish, or cut them. */
export type StopMode = "drain" | "close";

/** A configuration with its number: 1 is the one at the gateway's start; each accepted reload adds 1. */
export interface Generation {
  readonly generation: number;
  readonly copy: ConfigCopy;
}

export interface WorkerStart {
  readonly kind: "start";
  /** From 1 on; part of the name of its journal's folder. */
  readonly worker: number;
  /** How many workers the gateway has. */
  readonly workers: number;
  /** The configuration file's name, for error messages. */
  readonly file: string;
  /** The configuration at the gateway's start, for settings that only a restart changes; and the newest one. */
  readonly started: ConfigCopy;
  readonly newest: Generation;
  /** Whether its log is for people to read. */
  readonly pretty: boolean;
}

export type ToWorker =
  | WorkerStart
  /** Serve clients: all configurations sent before this message are in force by now. */
  | { readonly kind: "open" }
  | ({ readonly kind: "reload" } & Generation)
  /** Asks for a `pong`, as a sign of life. */
  | { readonly kind: "ping" }
  | { readonly kind: "metrics" }
  | { readonly kind: "stop"; readonly how: StopMode };

/** What a worker reports about itself when asked. */
export interface WorkerReport {
  readonly metrics: MetricsSnapshot;
  readonly upstreams: readonly UpstreamState[];
}

export type FromWorker =
  /**
   * Store and journal are open, and this configuration is in force. No client can reach the worker before it gets
   * `open`.
   */
  | { readonly kind: "prepared"; readonly generation: number }
  /** Clients are served at this address. */
  | { readonly kind: "serving"; readonly listen: Address }
  /** It cannot start, or could not end in an orderly way. */
  | { readonly kind: "failed"; readonly reason: string }
  /** This configuration is in force for every request from now on. */
  | { readonly kind: "configured"; readonly generation: number }
  /** It has begun to end. */
  | { readonly kind: "draining" }
  /** Why it should get no traffic; sent when that changes. */
  | { readonly kind: "reasons"; readonly reasons: readonly string[] }
  /** An audit line that it has logged; sent because the parent answers operators. */
  | { readonly kind: "audited"; readonly entry: AuditEntry }
  | { readonly kind: "pong" }
  | { readonly kind: "metrics"; readonly figures: WorkerReport };
