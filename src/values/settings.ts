/**
 * The settings of one process, as `config/` makes them from `tollgate.yaml`: every default filled in, every unit in
 * the name. Stages receive the part they need as an argument.
 */
import type { Catalog } from "./catalog.ts";
import type { Protocol } from "./protocol.ts";
import type { Secret } from "./secret.ts";

/** Where things are in the working directory unless somebody says otherwise: the configuration, and what is written. */
export const CONFIG_FILE = "tollgate.yaml";
export const DATA_DIR = "./data";
/**
 * All that the demonstration writes, its store, journal and token. A folder of its own: a gateway that is configured later
 * in the same place must not find a journal of play money and give it to a real store.
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
      /** How it is recognised, where the form of the address asks for TLS. */
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
      /** Of the sentinels and of what they name; undefined: without TLS. */
      readonly tls: TlsSettings | undefined;
      readonly username: string | undefined;
      readonly password: Secret | undefined;
      /** Who we are to the sentinels themselves, where they ask. */
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
    /** Longest silence inside a body. */
    readonly idleMs: number;
    /** A request's whole life, retries included. */
    readonly totalMs: number;
  };
  /** Requests in flight per process. */
  readonly maxConcurrency: number;
  /** The line in front of it while all its places are taken. */
  readonly queue: QueueSettings;
  readonly health: HealthSettings;
  /** A client that left in the middle of a stream: the upstream is stopped, or read to its end for its count. */
  readonly onClientGone: "abort" | "drain";
  /** With `abort`: the longest that it is still read on where its model may have thought out of sight. */
  readonly clientGoneGraceMs: number;
  readonly tls: TlsSettings;
}

export interface QueueSettings {
  /** Requests that may wait; 0: none does. */
  readonly max: number;
  readonly waitMs: number;
}

/** When an upstream is passed over, and for how long. */
export interface HealthSettings {
  /** Failures in a row. */
  readonly failures: number;
  /** Share of failures among the outcomes of the last `windowMs`, in percent, once there are `outcomesMin`. */
  readonly failurePercent: number;
  readonly outcomesMin: number;
  readonly windowMs: number;
  /** The first time; doubles with each repetition. */
  readonly coolDownMs: number;
  readonly coolDownMaxMs: number;
}

/**
 * Who a server must be, and who we are to it. Texts in PEM form, read from their files when the configuration was.
 * Verification is never switched off.
 */
export interface TlsSettings {
  /** The only authorities that its certificate may come from; undefined: the system's. */
  readonly ca: string | undefined;
  /** What we show when it asks for a certificate. */
  readonly identity: { readonly cert: string; readonly key: Secret } | undefined;
  /** The name that its certificate must carry, where that is not the host of its address. */
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
  /** Finished spans wait at most so long. */
  readonly exportEveryMs: number;
}

/** What a receiver can be told of, by its name in the configuration and in what is sent. */
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

/** Whom the gateway tells of what happens, by signed webhooks (docs/notices.md). */
export interface NoticeSettings {
  /** Paths and queries of receivers are often what lets one in. */
  readonly url: Secret;
  /** `whsec_` and a key in base64, at least one; each signs. */
  readonly secrets: readonly Secret[];
  readonly kinds: ReadonlySet<NoticeKind>;
  /** Nano-dollars, of accounts without a threshold of their own; undefined: they have none. */
  readonly balanceBelowNano: number | undefined;
  readonly cardEndsWithinMs: number;
}

/** A provider of OpenID Connect that says who somebody is. */
export interface OidcSettings {
  /** As the provider names itself, to the letter. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Which claim is the account's name. */
  readonly claim: string;
  /** Whether a name without an account gets one. */
  readonly createAccounts: boolean;
  /** Of such accounts; undefined: the default plan. */
  readonly plan: string | undefined;
  /** What the pages call it. */
  readonly label: string | undefined;
}

/** Who of a provider's people are operators. */
export interface OperatorOidcSettings {
  /** Of it `claim` is what must have one of the allowed values. */
  readonly oidc: OidcSettings;
  /** At least one, to the letter. */
  readonly allowed: readonly string[];
  /** Under what address browsers know the admin address; undefined: the one that they ask. */
  readonly publicUrl: string | undefined;
}

/** The pages for owners of keys, on the public listener. */
export interface ConsoleSettings {
  /** Where they are: `/` and a name, without a slash at the end. */
  readonly path: string;
  /** Under what address a browser knows this gateway, without a slash at the end; undefined: the one that it asks. */
  readonly publicUrl: string | undefined;
  /** How long who has signed in stays so. */
  readonly sessionMs: number;
  /** How long a sign-in link opens. */
  readonly invitationMs: number;
  /** Undefined: nobody comes in that way. */
  readonly oidc: OidcSettings | undefined;
  /** In which header, in lower case, a trusted front names whom it has let in; undefined: in none. */
  readonly trustedHeader: string | undefined;
  /** Whom the pages name for help. */
  readonly support: { readonly email: string | undefined; readonly url: string | undefined };
}

/** Where this process is full (docs/overload.md); undefined: derived from the machine and the upstreams. */
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
  /** First seals, all open. */
  readonly sealingKeys: readonly Secret[];
  /** Addresses whose forwarding headers are believed: CIDR blocks, and `unix` for a unix socket. */
  readonly trustProxy: readonly string[];
  readonly site: string | undefined;
  /** Undefined: the public listener has no pages of its own but the one at `/`. */
  readonly console: ConsoleSettings | undefined;
  /** Undefined: operators come in by the admin token alone. */
  readonly operatorOidc: OperatorOidcSettings | undefined;
  readonly bodyBytesMax: number;
  readonly drain: { readonly lameDuckMs: number; readonly deadlineMs: number };
  readonly overload: OverloadSettings;
  /** Processes that serve clients; 1: this one does. */
  readonly workers: number;
  readonly heartbeatMs: number;
  readonly upstreamUnavailableStatus: 403 | 503;
  /**
   * Nano-dollars that an account may cost in a day by requests that it leaves before it is given anything: a whole number up
   * to NANO_USD_MAX, which is below 2^53, so that settings can be printed as JSON.
   */
  readonly leftAllowanceNano: number;
  /** `Idempotency-Key`: whether it is heeded, and how long a charged request is remembered from its admission on. */
  readonly idempotency: { readonly enabled: boolean; readonly keepMs: number };
  readonly corsOrigins: readonly string[];
  readonly log: { readonly level: "silent" | "error" | "warn" | "info" | "debug" };
  /** Undefined: no traces, and nothing is paid for them. */
  readonly traces: TraceSettings | undefined;
  /** Undefined: nobody is told of anything, and nothing is written for it. */
  readonly notices: NoticeSettings | undefined;
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  readonly catalog: Catalog;
}
