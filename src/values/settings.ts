/**
 * The settings of one process, as `config/` makes them from `tollgate.yaml`: with all defaults, and every unit in the
 * name. Stages receive the part that they need as an argument.
 */
import type { Catalog } from "./catalog.ts";
import type { Protocol } from "./protocol.ts";
import type { Secret } from "./secret.ts";

/** Default paths in the working directory: the configuration, and everything that is written. */
export const CONFIG_FILE = "tollgate.yaml";
export const DATA_DIR = "./data";
/**
 * Everything that the demonstration writes: store, journal and token. A separate folder, so that a gateway configured
 * later in the same place does not find a journal of demonstration charges and send it to a real store.
 */
export const DEMO_DATA_DIR = "./data/demo";

export type Address =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** An address as people type it. */
export function urlOf(address: Address): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `http://${host}:${address.port}`;
}

export type StoreSettings =
  | { readonly kind: "embedded"; readonly dir: string }
  | {
      readonly kind: "redis";
      readonly url: Secret;
      /** TLS options, if the scheme of the address asks for TLS. */
      readonly tls?: TlsSettings | undefined;
    }
  | {
      readonly kind: "redis-cluster";
      readonly nodes: readonly { host: string; port: number }[];
      /** Undefined: without TLS. */
      readonly tls: TlsSettings | undefined;
      readonly username: string | undefined;
      readonly password: Secret | undefined;
    }
  | {
      readonly kind: "redis-sentinel";
      readonly sentinels: readonly { host: string; port: number }[];
      readonly name: string;
      /** For the sentinels and the Redis servers that they name; undefined: without TLS. */
      readonly tls: TlsSettings | undefined;
      readonly username: string | undefined;
      readonly password: Secret | undefined;
      /** User name and password for the sentinels themselves, if they require them. */
      readonly sentinelUsername: string | undefined;
      readonly sentinelPassword: Secret | undefined;
    };

export interface JournalSettings {
  readonly dir: string;
  readonly fsync: "group" | "always";
  readonly bytesMax: number;
}

export interface UpstreamSettings {
  readonly name: string;
  readonly protocol: Protocol;
  /** Without a final slash. */
  readonly baseUrl: string;
  readonly apiKey: Secret | undefined;
  /** Added to every request to this upstream, after ours. */
  readonly headers: ReadonlyMap<string, Secret>;
  readonly timeouts: {
    readonly connectMs: number;
    /** Streams: from the request sent to the first body byte. */
    readonly firstByteMs: number;
    /** Whole replies: from the request sent to the last body byte. */
    readonly wholeMs: number;
    /** Idle timeout inside a body. */
    readonly idleMs: number;
    /** A request's total duration, including retries. */
    readonly totalMs: number;
  };
  /** Requests in flight per process. */
  readonly maxConcurrency: number;
  /** The queue while all its slots are taken. */
  readonly queue: QueueSettings;
  readonly health: HealthSettings;
  /** When a client disconnects during a stream: the upstream is stopped, or read to its end for its count. */
  readonly onClientGone: "abort" | "drain";
  /** With `abort`: the longest time that it is still read if its model may have thought unseen. */
  readonly clientGoneGraceMs: number;
  readonly tls: TlsSettings;
}

export interface QueueSettings {
  /** Requests that may wait; 0: none. */
  readonly max: number;
  readonly waitMs: number;
}

/** When an upstream is ejected, and for how long. */
export interface HealthSettings {
  /** Consecutive failures. */
  readonly failures: number;
  /** Share of failures among the outcomes of the last `windowMs`, in percent, once there are `outcomesMin`. */
  readonly failurePercent: number;
  readonly outcomesMin: number;
  readonly windowMs: number;
  /** The first cool-down; doubles with each repetition. */
  readonly coolDownMs: number;
  readonly coolDownMaxMs: number;
}

/**
 * How a server is verified, and our client certificate for it. Texts in PEM form, read from their files together with
 * the configuration. Verification is never disabled.
 */
export interface TlsSettings {
  /** The only CAs that may have issued its certificate; undefined: the system's. */
  readonly ca: string | undefined;
  /** The client certificate that is sent if the server asks for one. */
  readonly identity: { readonly cert: string; readonly key: Secret } | undefined;
  /** The name that its certificate must have, if it is not the host of its address. */
  readonly serverName: string | undefined;
}

export interface TraceSettings {
  /** The collector's OTLP address for traces, up to and including its path. */
  readonly endpoint: string;
  readonly headers: ReadonlyMap<string, Secret>;
  /** Share of the requests that are traced, from 0 (excluded) to 1. */
  readonly sample: number;
  readonly serviceName: string;
  /** Upstreams that get a `traceparent`. */
  readonly propagate: ReadonlySet<string>;
  /** Longest time that finished spans wait for export. */
  readonly exportEveryMs: number;
}

/** Kinds of notices, by their names in the configuration and in the payload. */
export const NOTICE_KINDS = [
  "balance_low",
  "card_ending",
  "budget_reached",
  "key_suspended",
  "upstream_out",
  "upstream_back",
  "books_off",
] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** Where the gateway sends notices, as signed webhooks (docs/notices.md). */
export interface NoticeSettings {
  /** Secret, because paths and queries of receivers often contain the credential. */
  readonly url: Secret;
  /** `whsec_` and a key in base64, at least one; every key signs. */
  readonly secrets: readonly Secret[];
  readonly kinds: ReadonlySet<NoticeKind>;
  /** Threshold in nano-dollars for accounts without one of their own; undefined: none. */
  readonly balanceBelowNano: number | undefined;
  readonly cardEndsWithinMs: number;
}

/** An OpenID Connect provider that authenticates users. */
export interface OidcSettings {
  /** Exactly as the provider names itself. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** The claim that is the account's name. */
  readonly claim: string;
  /** Whether an account is created for a name that has none. */
  readonly createAccounts: boolean;
  /** The plan of created accounts; undefined: the default plan. */
  readonly plan: string | undefined;
  /** The provider's name on the pages. */
  readonly label: string | undefined;
}

/** Which users of a provider are operators. */
export interface OperatorOidcSettings {
  /** Its `claim` must have one of the allowed values. */
  readonly oidc: OidcSettings;
  /** At least one; compared exactly. */
  readonly allowed: readonly string[];
  /** The public URL of the admin address; undefined: the one that the browser uses. */
  readonly publicUrl: string | undefined;
}

/** The pages for owners of keys, on the public listener. */
export interface ConsoleSettings {
  /** Their path: `/` and a name, without a slash at the end. */
  readonly path: string;
  /** The public URL of this gateway, without a slash at the end; undefined: the one that the browser uses. */
  readonly publicUrl: string | undefined;
  /** How long a session lasts. */
  readonly sessionMs: number;
  /** How long a sign-in link is valid. */
  readonly invitationMs: number;
  /** Undefined: this sign-in method is off. */
  readonly oidc: OidcSettings | undefined;
  /** The header, in lowercase, in which a trusted front names the user that it has authenticated; undefined: none. */
  readonly trustedHeader: string | undefined;
  /** The contact for help that the pages show. */
  readonly support: { readonly email: string | undefined; readonly url: string | undefined };
}

/**
 * Limits at which this process is overloaded (docs/overload.md); undefined: derived from the machine and the upstreams.
 */
interface OverloadSettings {
  /** Admitted requests that are being answered. */
  readonly inFlightMax: number | undefined;
  /** Sustained 99th percentile of the event loop's delay. */
  readonly loopDelayMs: number;
  /** Resident memory. */
  readonly memoryBytes: number | undefined;
}

export interface Settings {
  readonly listen: Address;
  readonly admin: Address;
  readonly adminToken: Secret | undefined;
  readonly store: StoreSettings;
  readonly journal: JournalSettings;
  /** The first one seals, all of them open. */
  readonly sealingKeys: readonly Secret[];
  /** Addresses whose forwarding headers are trusted: CIDR blocks, and `unix` for a unix socket. */
  readonly trustProxy: readonly string[];
  readonly site: string | undefined;
  /** Undefined: the public listener has no pages except the one at `/`. */
  readonly console: ConsoleSettings | undefined;
  /** Undefined: operators sign in only with the admin token. */
  readonly operatorOidc: OperatorOidcSettings | undefined;
  readonly bodyBytesMax: number;
  readonly drain: { readonly lameDuckMs: number; readonly deadlineMs: number };
  readonly overload: OverloadSettings;
  /** Processes that serve clients; 1: this process does. */
  readonly workers: number;
  readonly heartbeatMs: number;
  readonly upstreamUnavailableStatus: 403 | 503;
  /**
   * Nano-dollars that an account may cost per day by requests whose client disconnects before it was given anything. A
   * whole number up to NANO_USD_MAX, which is below 2^53, so that settings can be printed as JSON.
   */
  readonly leftAllowanceNano: number;
  /** `Idempotency-Key`: whether it is supported, and how long a charged request is remembered after its admission. */
  readonly idempotency: { readonly enabled: boolean; readonly keepMs: number };
  readonly corsOrigins: readonly string[];
  readonly log: { readonly level: "silent" | "error" | "warn" | "info" | "debug" };
  /** Undefined: no traces, and no cost for them. */
  readonly traces: TraceSettings | undefined;
  /** Undefined: no notices are sent or stored. */
  readonly notices: NoticeSettings | undefined;
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  readonly catalog: Catalog;
}
