/** What a worker process and its parent tell each other. */
import type { UpstreamState } from "./console/upstreams.ts";
import type { MetricsSnapshot } from "./telemetry/metrics.ts";
import type { Address } from "./values/settings.ts";

/** How to end: let what runs finish, or cut it. */
export type Stop = "drain" | "close";

export type ToWorker =
  | {
      readonly kind: "start";
      /** From 1 on; names its journal's folder. */
      readonly worker: number;
      /** The configuration file's name, for its complaints. */
      readonly file: string;
      /** Its text when the parent started, for what only a restart changes, and the text in force. */
      readonly startText: string;
      readonly text: string;
      /** Whether its log is for people to read. */
      readonly pretty: boolean;
    }
  | { readonly kind: "reload"; readonly text: string }
  | { readonly kind: "metrics" }
  | { readonly kind: "stop"; readonly how: Stop };

/** What a worker tells of itself when it is asked. */
export interface Figures {
  readonly metrics: MetricsSnapshot;
  readonly upstreams: readonly UpstreamState[];
}

export type FromWorker =
  /** Clients are served at this address. */
  | { readonly kind: "serving"; readonly listen: Address }
  /** It cannot start. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Why it should get no traffic; sent when that changes. */
  | { readonly kind: "reasons"; readonly reasons: readonly string[] }
  | { readonly kind: "metrics"; readonly figures: Figures };
