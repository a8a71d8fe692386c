/**
 * Settings in the form of the file, for operators to read: with the file's names and units, including defaults. Loaded
 * again they give the same settings, except for the PEM files of `tls`, which are shown by content, and the store's
 * password.
 */
import type { JsonObject } from "../../values/json-object.ts";
import { formatUsd } from "../../values/money.ts";
import type {
  Address,
  ConsoleSettings,
  NoticeSettings,
  OidcSettings,
  OperatorOidcSettings,
  Settings,
  StoreSettings,
  TlsSettings,
  TraceSettings,
} from "../../values/settings.ts";
import { isUnencryptedRemote } from "../compile/addresses.ts";
import { formatDuration, formatSize } from "../compile/units.ts";
import { writtenCatalog } from "./catalog.ts";
import { writtenTls, writtenUpstream } from "./upstream.ts";

/** @returns plain values, and each secret as a `Secret`. What is not set is undefined. */
export function asWritten(settings: Settings): JsonObject {
  const { journal, drain, overload, idempotency, catalog } = settings;
  return {
    listen: addressText(settings.listen),
    admin: addressText(settings.admin),
    admin_token: settings.adminToken,
    store: storeText(settings.store),
    redis: writtenRedis(settings.store),
    journal: { dir: journal.dir, fsync: journal.fsync, bytes_max: formatSize(journal.bytesMax) },
    sealing_keys: settings.sealingKeys,
    default_plan: catalog.defaultPlan,
    trust_proxy: settings.trustProxy,
    site: settings.site,
    console: writtenConsole(settings.console, settings.operatorOidc),
    body_bytes_max: formatSize(settings.bodyBytesMax),
    drain: { lame_duck: formatDuration(drain.lameDuckMs), deadline: formatDuration(drain.deadlineMs) },
    overload: {
      in_flight_max: overload.inFlightMax,
      loop_delay: formatDuration(overload.loopDelayMs),
      memory: overload.memoryBytes === undefined ? undefined : formatSize(overload.memoryBytes),
    },
    workers: settings.workers,
    heartbeat: formatDuration(settings.heartbeatMs),
    upstream_unavailable_status: settings.upstreamUnavailableStatus,
    client_gone_allowance: formatUsd(BigInt(settings.leftAllowanceNano)),
    idempotency: { enabled: idempotency.enabled, keep: formatDuration(idempotency.keepMs) },
    cors_origins: settings.corsOrigins,
    log: { level: settings.log.level },
    traces: settings.traces && writtenTraces(settings.traces),
    notices: settings.notices && writtenNotices(settings.notices),
    upstreams: Object.fromEntries(
      [...settings.upstreams].map(([name, upstream]) => [name, writtenUpstream(upstream, catalog)]),
    ),
    ...writtenCatalog(catalog),
  };
}

function addressText(address: Address): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return endpointText(address);
}

function endpointText({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Replaces the credentials in the store's address. */
const CREDENTIALS = "***@";

function storeText(store: StoreSettings): string {
  switch (store.kind) {
    case "embedded":
      return `embedded:${store.dir}`;
    case "redis": {
      const { protocol, username, password, host, pathname } = new URL(store.url.reveal());
      return `${protocol}//${username || password ? CREDENTIALS : ""}${host}${pathname}`;
    }
    case "redis-cluster": {
      return `${schemeOf(store)}-cluster://${credentialsOf(store)}${store.nodes.map(endpointText).join(",")}`;
    }
    case "redis-sentinel":
      return `${schemeOf(store)}-sentinel://${credentialsOf(store)}${store.sentinels.map(endpointText).join(",")}/${store.name}`;
  }
}

const schemeOf = ({ tls }: { readonly tls: TlsSettings | undefined }) => (tls ? "rediss" : "redis");

/** The `redis` section; undefined if it would be empty. */
function writtenRedis(store: StoreSettings): JsonObject | undefined {
  if (store.kind === "embedded") return undefined;
  const tls = store.tls && writtenTls(store.tls);
  const sentinel = store.kind === "redis-sentinel" ? writtenSentinel(store) : undefined;
  return tls === undefined && sentinel === undefined ? undefined : { tls, sentinel };
}

function writtenSentinel({
  sentinelUsername: username,
  sentinelPassword: password,
}: Extract<StoreSettings, { kind: "redis-sentinel" }>): JsonObject | undefined {
  return username === undefined && password === undefined ? undefined : { username, password };
}

function credentialsOf({ username, password }: { readonly username?: unknown; readonly password?: unknown }): string {
  return username === undefined && password === undefined ? "" : CREDENTIALS;
}

function writtenConsole(console: ConsoleSettings | undefined, operator: OperatorOidcSettings | undefined) {
  return {
    enabled: console !== undefined,
    ...(console && {
      path: console.path,
      public_url: console.publicUrl,
      session: formatDuration(console.sessionMs),
      invitation: formatDuration(console.invitationMs),
      oidc: console.oidc && {
        ...writtenProvider(console.oidc),
        create_accounts: console.oidc.createAccounts,
        plan: console.oidc.plan,
      },
      trusted_header: console.trustedHeader,
      support: console.support,
    }),
    operator: operator && {
      public_url: operator.publicUrl,
      oidc: { ...writtenProvider(operator.oidc), allowed: operator.allowed },
    },
  };
}

function writtenProvider({ issuer, clientId, clientSecret, claim, label }: OidcSettings) {
  return { issuer, client_id: clientId, client_secret: clientSecret, claim, label };
}

function writtenTraces({ endpoint, headers, sample, serviceName, propagate }: TraceSettings) {
  return {
    endpoint,
    headers: Object.fromEntries(headers),
    sample,
    service_name: serviceName,
    propagate: [...propagate],
  };
}

function writtenNotices({ url, secrets, kinds, balanceBelowNano, cardEndsWithinMs }: NoticeSettings) {
  return {
    url,
    secrets,
    kinds: [...kinds],
    balance_below: balanceBelowNano === undefined ? undefined : formatUsd(BigInt(balanceBelowNano)),
    card_ends_within: formatDuration(cardEndsWithinMs),
    allow_http: isUnencryptedRemote(url.reveal()),
  };
}
