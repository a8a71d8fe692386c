/** Turns a checked file into `Settings`: converts units, fills in defaults, and checks how values fit together. */
import { availableParallelism } from "node:os";
import { Secret } from "../../values/secret.ts";
import type { Address, JournalSettings, Settings, StoreSettings, TraceSettings } from "../../values/settings.ts";
import { DEFAULTS, LIMITS } from "../defaults.ts";
import type { Sources } from "../expand.ts";
import type { ConfigPath } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import {
  collide,
  isLocal,
  pointsTo,
  readAddress,
  readAddressBlock,
  readBaseUrl,
  readOrigin,
  readStore,
} from "./addresses.ts";
import { type KnownNames, readCatalog } from "./catalog.ts";
import { readConsole } from "./console.ts";
import { readHeaderValues } from "./headers.ts";
import { readNotices } from "./notices.ts";
import { readOperatorOidc } from "./oidc.ts";
import { readUsd } from "./prices.ts";
import type { Loose, LooseConfig, Reader } from "./reader.ts";
import { readTls } from "./tls.ts";
import { readUpstream } from "./upstream.ts";

/** The settings. They are valid only if no problem has been added. */
export function compile(reader: Reader, file: LooseConfig, known: KnownNames, sources: Sources): Settings {
  const listen = readListener(reader, ["listen"], file.listen, DEFAULTS.listen);
  const admin = readListener(reader, ["admin"], file.admin, DEFAULTS.admin);
  const store = readRedis(reader, file.redis, readStoreOrDefault(reader, file.store), sources);
  const settings: Settings = {
    listen,
    admin,
    adminToken: readToken(reader, file.admin_token),
    store,
    journal: readJournal(reader, file, store),
    sealingKeys: readSealingKeys(reader, file, store),
    trustProxy: readEach(reader, ["trust_proxy"], file.trust_proxy, readAddressBlock),
    site: reader.read(["site"], file.site, readBaseUrl),
    operatorOidc: readOperatorOidc(reader, file),
    console: readConsole(reader, file, known),
    bodyBytesMax: reader.sizeBytes(["body_bytes_max"], file.body_bytes_max, DEFAULTS.bodyBytesMax, LIMITS.bodyBytes),
    drain: {
      lameDuckMs: timer(reader, ["drain", "lame_duck"], file.drain?.lame_duck, DEFAULTS.drainLameDuckMs),
      deadlineMs: timer(reader, ["drain", "deadline"], file.drain?.deadline, DEFAULTS.drainDeadlineMs),
    },
    overload: {
      inFlightMax: file.overload?.in_flight_max,
      loopDelayMs: timer(reader, ["overload", "loop_delay"], file.overload?.loop_delay, DEFAULTS.overloadLoopDelayMs),
      memoryBytes: readMemory(reader, file),
    },
    workers: readWorkers(reader, file, store),
    heartbeatMs: timer(reader, ["heartbeat"], file.heartbeat, DEFAULTS.heartbeatMs),
    upstreamUnavailableStatus: file.upstream_unavailable_status ?? DEFAULTS.upstreamUnavailableStatus,
    leftAllowanceNano: readAllowance(reader, file.client_gone_allowance),
    idempotency: {
      enabled: file.idempotency?.enabled ?? DEFAULTS.idempotencyEnabled,
      keepMs: reader.durationMs(
        ["idempotency", "keep"],
        file.idempotency?.keep,
        DEFAULTS.idempotencyKeepMs,
        LIMITS.idempotencyKeepMsMax,
      ),
    },
    corsOrigins: readEach(reader, ["cors_origins"], file.cors_origins, readOrigin),
    log: { level: file.log?.level ?? DEFAULTS.logLevel },
    traces: readTraces(reader, file),
    notices: readNotices(reader, file.notices),
    upstreams: new Map(
      Object.entries(file.upstreams ?? {}).flatMap(([name, upstream]) =>
        upstream ? [[name, readUpstream(reader, ["upstreams", name], name, upstream, sources)]] : [],
      ),
    ),
    catalog: readCatalog(reader, file, known),
  };
  checkListeners(reader, file, known, settings);
  checkSite(reader, settings);
  return settings;
}

function timer(reader: Reader, path: ConfigPath, text: string | undefined, defaultMs: number): number {
  return reader.durationMs(path, text, defaultMs, LIMITS.timerMsMax);
}

function readAllowance(reader: Reader, usd: string | number | undefined): number {
  const path = ["client_gone_allowance"];
  return Number(readUsd(reader, path, usd ?? DEFAULTS.leftAllowanceUsd) ?? 0n);
}

function readListener(reader: Reader, path: ConfigPath, text: string | undefined, defaultText: string): Address {
  const fallback = readAddress(defaultText) as { value: Address };
  return reader.read(path, text, readAddress) ?? fallback.value;
}

function readEach(
  reader: Reader,
  path: ConfigPath,
  items: readonly (string | undefined)[] | undefined,
  read: Parameters<typeof reader.read<string>>[2],
): string[] {
  return (items ?? []).flatMap((item, index) => reader.read([...path, index], item, read) ?? []);
}

function checkListeners(reader: Reader, file: LooseConfig, known: KnownNames, settings: Settings): void {
  if (collide(settings.listen, settings.admin)) {
    const path = file.admin === undefined ? ["listen"] : ["admin"];
    reader.refuse(
      path,
      "must not be the address of both listen and admin, nor on the port of the other if one of them means all addresses " +
        "(0.0.0.0, [::]), because the admin API must never be public",
    );
  }
  // An admin_token that is refused for another reason is not missing.
  if (isLocal(settings.admin) || "admin_token" in known.top) return;
  reader.complain(
    ["admin"],
    "the admin API would be reachable from other machines without a token; set admin_token, or use a loopback address",
  );
}

function checkSite(reader: Reader, { site, listen, admin }: Settings): void {
  if (site === undefined) return;
  if (pointsTo(site, listen)) {
    reader.refuse(
      ["site"],
      "must not be the gateway's own listen address, because it would forward visitors to itself. Use the site's address, " +
        "or leave it out for the built-in page",
    );
  }
  if (pointsTo(site, admin)) {
    reader.refuse(
      ["site"],
      "must not be the admin address, because the admin API must never be public. Use the site's address",
    );
  }
}

function readToken(reader: Reader, token: string | undefined): Secret | undefined {
  if (token === undefined) return undefined;
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < LIMITS.adminTokenCharsMin) {
    reader.refuse(["admin_token"], `must be at least ${LIMITS.adminTokenCharsMin} visible ASCII characters`);
  }
  return new Secret(token);
}

function readStoreOrDefault(reader: Reader, text: string | undefined): StoreSettings {
  const fallback = readStore(DEFAULTS.store) as { value: StoreSettings };
  return reader.read(["store"], text, readStore) ?? fallback.value;
}

/** Adds the `redis` section to the store settings. A part that does not apply to this kind of store is a problem. */
function readRedis(reader: Reader, redis: LooseConfig["redis"], store: StoreSettings, sources: Sources): StoreSettings {
  if (redis === undefined) return store;
  const tls = redis.tls && readTls(reader, ["redis", "tls"], redis.tls, sources);
  if (tls && (store.kind === "embedded" || store.tls === undefined)) {
    reader.refuse(["redis", "tls"], "needs a store with TLS: rediss://, rediss-cluster:// or rediss-sentinel://");
  }
  if (redis.sentinel && store.kind !== "redis-sentinel") {
    reader.refuse(["redis", "sentinel"], "needs a store that sentinels watch: redis-sentinel:// or rediss-sentinel://");
  }
  if (store.kind === "embedded") return store;
  const withTls = tls === undefined ? store : { ...store, tls };
  if (withTls.kind !== "redis-sentinel") return withTls;
  const { username, password } = redis.sentinel ?? {};
  return {
    ...withTls,
    sentinelUsername: username,
    sentinelPassword: password === undefined ? undefined : new Secret(password),
  };
}

function readJournal(reader: Reader, file: LooseConfig, store: StoreSettings): JournalSettings {
  const journal = file.journal ?? {};
  return {
    dir: journal.dir ?? (store.kind === "embedded" ? `${store.dir}/journal` : DEFAULTS.journalDir),
    fsync: journal.fsync ?? DEFAULTS.journalFsync,
    bytesMax: reader.sizeBytes(
      ["journal", "bytes_max"],
      journal.bytes_max,
      DEFAULTS.journalBytesMax,
      LIMITS.journalBytes,
    ),
  };
}

function readMemory(reader: Reader, file: LooseConfig): number | undefined {
  const memory = file.overload?.memory;
  return memory === undefined ? undefined : reader.sizeBytes(["overload", "memory"], memory, 0, LIMITS.memoryBytes);
}

function readWorkers(reader: Reader, file: LooseConfig, store: StoreSettings): number {
  const workers = file.workers ?? DEFAULTS.workers;
  if (workers !== DEFAULTS.workers && store.kind === "embedded") {
    reader.refuse(
      ["workers"],
      "needs a store on Redis, because the embedded store belongs to one process; set it to 1",
    );
  }
  return workers === "auto" ? Math.min(availableParallelism(), LIMITS.workersMax) : workers;
}

function readSealingKeys(reader: Reader, file: LooseConfig, store: StoreSettings): Secret[] {
  const keys = file.sealing_keys ?? [];
  const seen = new Set<string>();
  for (const [index, key] of keys.entries()) {
    if (key === undefined) continue;
    const path = ["sealing_keys", index];
    if (key.length < LIMITS.sealingKeyCharsMin) {
      reader.refuse(path, `must have at least ${LIMITS.sealingKeyCharsMin} characters (openssl rand -base64 32)`);
    } else if (seen.has(key)) reader.refuse(path, "must not be in the list twice");
    seen.add(key);
  }
  if (store.kind !== "embedded" && keys.length === 0) {
    const message =
      "is missing: replicas that share a store must share the keys that seal what clients carry. " +
      "Generate one with `openssl rand -base64 32`, set it in the environment of each replica, and write " +
      `sealing_keys: ["\${TOLLGATE_SEALING_KEY}"]`;
    reader.complain(["sealing_keys"], `"sealing_keys" ${message}`, "key");
  }
  return keys.flatMap((key) => (key === undefined ? [] : new Secret(key)));
}

/* The `traces` section: where spans are sent, how many, and which upstreams get a `traceparent`. */

/** Headers that the exporter sets itself. */
const OWNED = {
  names: new Set(["content-type", "content-length", "content-encoding", "host", "user-agent"]),
  why: "is set by the exporter and cannot be configured",
};

/** @returns undefined if there is no `traces` section. */
function readTraces(reader: Reader, file: Loose<ConfigFile>): TraceSettings | undefined {
  const { traces } = file;
  if (traces === undefined) return undefined;
  const upstreams = file.upstreams ?? {};
  for (const [index, name] of (traces.propagate ?? []).entries())
    reader.reference(["traces", "propagate", index], name, "upstream", upstreams);
  return {
    endpoint: reader.read(["traces", "endpoint"], traces.endpoint, readBaseUrl) ?? "",
    headers: readHeaderValues(reader, ["traces", "headers"], traces.headers ?? {}, OWNED),
    sample: traces.sample ?? DEFAULTS.traceSample,
    serviceName: traces.service_name ?? DEFAULTS.traceServiceName,
    propagate: new Set((traces.propagate ?? []).filter((name) => name !== undefined)),
    exportEveryMs: DEFAULTS.traceExportEveryMs,
  };
}
