/**
 * The connection to Redis, in its three forms. This is the only file that imports ioredis.
 *
 * The settings below decide whether a charge happens once or twice (docs/failure-model.md row B5;
 * https://github.com/redis/ioredis/issues/2193). The library never resends a command whose reply was lost. Only our own
 * runner does, because it knows that the scripts are idempotent.
 */
import { Cluster, Command, Redis, type RedisOptions } from "ioredis";
import type { StoreSettings, TlsSettings } from "../../../values/settings.ts";
import { fenceKey } from "../keys.ts";
import type { Script } from "../scripts.ts";
import { evalshaText } from "./encode.ts";
import { gatherWrites } from "./gather.ts";
import { type ConnectionFailure, reasonOf, refusedConnection } from "./reason.ts";
import { slotOf } from "./slots.ts";
import { within } from "./within.ts";

export type RedisSettings = Exclude<StoreSettings, { kind: "embedded" }>;

/** The current TLS settings for recognizing a server; undefined: those in the settings of a store without TLS. */
export type TlsNow = () => TlsSettings | undefined;

/** The part of Redis that the store uses. Every method may reject with anything, or (ioredis 6.0.0) never settle. */
export interface RedisConnection {
  evalsha(sha: string, keys: readonly string[], values: readonly string[]): Promise<unknown>;
  eval(script: string, keys: readonly string[], values: readonly string[]): Promise<unknown>;
  get(key: string): Promise<string | null>;
  hget(key: string, field: string): Promise<string | null>;
  /** For hashes of a known size. */
  hgetall(key: string): Promise<Record<string, string>>;
  hmget(key: string, fields: readonly string[]): Promise<(string | null)[]>;
  /** A part of a hash, fields and values alternating, and the cursor of the next part; "0" after the last. */
  hscan(key: string, cursor: string, count: number): Promise<[next: string, flat: string[]]>;
  /** Stream entries after `id`, at most `count`: their ids, and their fields and values alternating. */
  entriesAfter(key: string, id: string, count: number): Promise<[id: string, flat: string[]][]>;
  /** Names after `after` in byte order, at most `count`. */
  namesAfter(key: string, after: string | undefined, count: number): Promise<string[]>;
  /**
   * A part of all keys that match the pattern, one primary after the other; `next` is undefined after the last part. It
   * goes through the whole database: for records that no list contains. When another server has replaced a primary,
   * that part starts over, so keys may come twice.
   */
  scan(pattern: string, from?: ScanPlace): Promise<{ readonly keys: string[]; readonly next: ScanPlace | undefined }>;
  /**
   * Whether a replica of each key's primary has everything that was written before on this connection. True if a
   * primary has no replica that keeps up. Later commands wait until it ends.
   */
  replicated(keys: readonly string[], withinMs: number): Promise<boolean>;
  /** Connections lost so far. */
  losses(): number;
  /** The connected servers, as `nodeOf` names them. Empty when none is known. */
  primaries(): readonly string[];
  /** Runs a script without keys on one of them. */
  runOn(node: string, script: Script, values: readonly string[]): Promise<unknown>;
  /** INFO of every connected primary, or the error instead. Rejects when no primary is known. */
  infos(): Promise<PromiseSettledResult<string>[]>;
  /** The server that has this key, as far as is known; the same text for all keys unless this is a cluster. */
  nodeOf(key: string): string;
  /** Resolves at once while connected, otherwise with the next connection. */
  ready(): Promise<void>;
  close(): void;
}

/**
 * Position of a walk through all keys. The primaries of a cluster are walked in the order of their first slots, because
 * a list of them has another order after a failover. A single server has slot 0.
 */
export interface ScanPlace {
  readonly slot: number;
  readonly cursor: string;
  /**
   * The server that gave the cursor, as `nodeOf` names it. The cursor means nothing to another server, which hashes its
   * keys with another seed.
   */
  readonly node: string;
}

const CONNECT_TIMEOUT_MS = 2_000;
/** A connection that owes a reply for this long is closed and replaced; until then its commands pile up. */
const SOCKET_TIMEOUT_MS = 2_000;
const SLOTS_REFRESH_MS = 5_000;
/**
 * The pause between two attempts of a command whose slot is moving to another node, or is unassigned. ioredis tries
 * sixteen times. Twice as many attempts must end within the time limit of a step; otherwise an account with such a slot
 * would look like an unavailable server.
 */
const TRY_AGAIN_MS = 4;
const RECONNECT_DELAY_MAX_MS = 1_000;
const SCAN_COUNT = 1_000;
const FENCE_LIFE_MS = 1_000;
/** Less than the first try of a step, which waits for all of them. */
const INFO_TIMEOUT_MS = 300;

/** Grows up to a second, with jitter, so that gateways do not reconnect in step. */
function reconnectDelayMs(times: number): number {
  return Math.min(RECONNECT_DELAY_MAX_MS, 25 * 2 ** Math.min(times, 6)) * (0.5 + Math.random() / 2);
}

function redisOptions(): RedisOptions {
  return {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    stringNumbers: true,
    protocol: 2,
    lazyConnect: true,
    autoResubscribe: false,
    disableClientInfo: true,
    retryStrategy: reconnectDelayMs,
    // A primary that became a replica: find the new primary. Not 2, which would resend the command.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 1 : false),
  };
}

/**
 * Opens a connection and waits for it briefly; connecting to an unavailable Redis goes on in the background. Commands
 * have no time limit of their own: the runner's applies, and replies already in the socket at its end are read first.
 * @param onFailed called with the reason, and with what the server refuses, each time that a connection is lost or cannot
 *   be made.
 * @param tlsNow TLS settings for a server whose address asks for TLS. Read for each connection, because certificates
 * are renewed.
 */
export async function connect(
  settings: RedisSettings,
  onFailed: (reason: string, problem: string | undefined) => void,
  tlsNow: TlsNow = () => settings.tls,
): Promise<RedisConnection> {
  const client = openClient(settings, tlsNow, redisOptions());
  client.on("error", (error) => {
    // From a connection that we close ourselves; the reason was reported before.
    if (error.message.startsWith("Stream isn't writeable")) return;
    const reason = reasonOf(error, settings);
    onFailed(reason, refusedConnection(reason));
  });
  const connection = wrap(client);
  await firstConnection(client);
  return connection;
}

/**
 * A second connection, made in the background. It reports no errors, because the first connection to the same place
 * does. Not every command on it comes from the runner, so its commands have a time limit.
 */
export function connectBeside(settings: RedisSettings, tlsNow: TlsNow, commandTimeoutMs: number): RedisConnection {
  const client = openClient(settings, tlsNow, { ...redisOptions(), commandTimeout: commandTimeoutMs });
  client.on("error", () => undefined);
  const connection = wrap(client);
  void client.connect().catch(() => undefined);
  return connection;
}

async function firstConnection(client: Redis | Cluster): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CONNECT_TIMEOUT_MS);
  });
  await Promise.race([client.connect().catch(() => undefined), late]);
  clearTimeout(timer);
}

function openClient(settings: RedisSettings, tlsNow: TlsNow, options: RedisOptions): Redis | Cluster {
  const client = makeClient(settings, settings.tls && tlsOptions(tlsNow), options);
  if (client instanceof Redis) {
    gatherWrites(client);
    leaveWrongDatabase(client);
  } else client.on("+node", gatherWrites);
  return client;
}

function makeClient(settings: RedisSettings, tls: RedisOptions["tls"], options: RedisOptions): Redis | Cluster {
  const withTls = tls === undefined ? {} : { tls };
  switch (settings.kind) {
    case "redis":
      return new Redis(settings.url.reveal(), { ...options, ...withTls });
    case "redis-sentinel":
      return new Redis({
        ...options,
        sentinels: settings.sentinels.map(({ host, port }) => ({ host, port })),
        name: settings.name,
        role: "master",
        failoverDetector: true,
        sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
        sentinelRetryStrategy: reconnectDelayMs,
        ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
        ...(settings.sentinelUsername === undefined ? {} : { sentinelUsername: settings.sentinelUsername }),
        ...(settings.sentinelPassword === undefined ? {} : { sentinelPassword: settings.sentinelPassword.reveal() }),
        ...withTls,
        ...credentials(settings),
      });
    case "redis-cluster": {
      // With stringNumbers ioredis 6.0.0 compares slot numbers of CLUSTER SLOTS as texts and leaves slots without a
      // node ("5461" > "10921"). Our scripts reply in texts anyway.
      const { retryStrategy: _perNode, enableOfflineQueue: _cluster, stringNumbers: _texts, ...nodeOptions } = options;
      return new Cluster(
        settings.nodes.map(({ host, port }) => ({ host, port })),
        {
          enableOfflineQueue: false,
          scaleReads: "master",
          lazyConnect: true,
          clusterRetryStrategy: reconnectDelayMs,
          slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
          // A slot that had no node when the map was read would stay without one: ioredis learns only from MOVED.
          slotsRefreshInterval: SLOTS_REFRESH_MS,
          retryDelayOnTryAgain: TRY_AGAIN_MS,
          retryDelayOnClusterDown: TRY_AGAIN_MS,
          // ioredis would resolve host names first, and then compare the certificate with an address instead of a name.
          ...(tls === undefined ? {} : { dnsLookup: (host, found) => found(null, host) }),
          redisOptions: { ...nodeOptions, ...withTls, ...credentials(settings) },
        },
      );
    }
  }
}

/**
 * When a server refuses to select the database in the address, ioredis (6.0.0) continues in the first database. Then
 * the money of two gateways could be in one place, or the money of one in two.
 */
function leaveWrongDatabase(client: Redis): void {
  client.on("error", ({ command }: ConnectionFailure) => {
    if (command?.name === "select") client.disconnect(true);
  });
}

/** Members that ioredis copies for each connection. For Node an undefined member is the same as an absent one. */
function tlsOptions(tlsNow: TlsNow): NonNullable<RedisOptions["tls"]> {
  return {
    get ca() {
      return tlsNow()?.ca;
    },
    get cert() {
      return tlsNow()?.identity?.cert;
    },
    get key() {
      return tlsNow()?.identity?.key.reveal();
    },
    get servername() {
      return tlsNow()?.serverName;
    },
  };
}

function credentials(settings: Extract<RedisSettings, { username: unknown }>): RedisOptions {
  return {
    ...(settings.username === undefined ? {} : { username: settings.username }),
    ...(settings.password === undefined ? {} : { password: settings.password.reveal() }),
  };
}

function wrap(client: Redis | Cluster): RedisConnection {
  // One promise for all waiters, so that an outage adds one listener and not one for each request.
  let next: Promise<void> | undefined;
  const losses = countLosses(client);
  const close = connectAgainUntilClosed(client);
  const primaries = (): Redis[] => (client instanceof Cluster ? client.nodes("master") : [client]);
  return {
    evalsha(sha, keys, values) {
      const command = new ReadyScript(evalshaText(sha, keys, values), keys);
      client.sendCommand(command);
      return command.promise;
    },
    eval: (script, keys, values) => client.eval(script, keys.length, ...keys, ...values),
    get: (key) => client.get(key),
    hget: (key, field) => client.hget(key, field),
    hgetall: (key) => client.hgetall(key),
    hmget: (key, fields) => client.hmget(key, ...fields),
    hscan: (key, cursor, count) => client.hscan(key, cursor, "COUNT", count),
    entriesAfter: (key, id, count) => client.xrange(key, `(${id}`, "+", "COUNT", count),
    namesAfter: (key, after, count) =>
      client.zrangebylex(key, after === undefined ? "-" : `(${after}`, "+", "LIMIT", 0, count),
    scan: (pattern, from) =>
      client instanceof Cluster ? scanCluster(client, pattern, from) : scan(client, pattern, from),
    infos() {
      const nodes = primaries();
      // Without a known primary there is nothing to ask, and an empty answer would look fit.
      if (nodes.length === 0) return Promise.reject(new Error("no primary is known"));
      // One server that does not reply must not delay the others' answers.
      return Promise.allSettled(nodes.map((node) => within(INFO_TIMEOUT_MS, () => node.info())));
    },
    nodeOf: (key) => (client instanceof Cluster ? addressOfSlot(client, slotOf(key)) : ""),
    ready() {
      if (client.status === "ready") return Promise.resolve();
      next ??= new Promise((resolve) => {
        client.once("ready", () => {
          next = undefined;
          resolve();
        });
      });
      return next;
    },
    async replicated(keys, withinMs) {
      const nodes = new Map(keys.map((key) => [client instanceof Cluster ? primaryOf(client, key) : client, key]));
      const found = await Promise.all([...nodes].map(([node, key]) => isReplicated(node, key, withinMs)));
      return found.every(Boolean);
    },
    losses,
    primaries: () => (client instanceof Cluster ? primaries().map(addressOf) : [""]),
    runOn(node, script, values) {
      const primary = client instanceof Cluster ? primaries().find((one) => addressOf(one) === node) : client;
      if (!primary) return Promise.reject(new Error(`${node} is not a connected primary`));
      return runScript(primary, script, values);
    },
    close,
  };
}

const AS_TEXTS = { replyEncoding: "utf8" } as const;

/**
 * A script command that is already text. ioredis copies the arguments of a command three times and measures each: 1.5
 * us of the 4.9 us that a command takes.
 */
class ReadyScript extends Command {
  readonly #text: string;
  readonly #keys: readonly string[];

  constructor(text: string, keys: readonly string[]) {
    super("evalsha", [], AS_TEXTS);
    this.#text = text;
    this.#keys = keys;
  }

  override toWritable(): string {
    return this.#text;
  }

  /** A cluster finds the node by the first key. */
  override getKeys(): string[] {
    return [...this.#keys];
  }
}

/**
 * ioredis (6.0.0) gives up a connection permanently when Sentinel announces a failover while the new primary is being
 * looked up: `SentinelConnector.connect` rejects, the client ends, and no retry strategy is asked. Without this
 * function a gateway would have no store until it is restarted.
 * @returns a function that closes the connection.
 */
function connectAgainUntilClosed(client: Redis | Cluster): () => void {
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  client.on("end", () => {
    if (closed) return;
    timer = setTimeout(() => void client.connect().catch(() => undefined), reconnectDelayMs(1));
  });
  return () => {
    closed = true;
    clearTimeout(timer);
    client.disconnect();
  };
}

function countLosses(client: Redis | Cluster): () => number {
  let count = 0;
  const lost = () => {
    count++;
  };
  client.on("close", lost);
  client.on("+node", (node: Redis) => void node.on("close", lost));
  return () => count;
}

const addressOf = ({ options }: Redis): string => `${options.host}:${options.port}`;

async function runScript(node: Redis, { sha, source }: Script, values: readonly string[]): Promise<unknown> {
  try {
    return await node.evalsha(sha, 0, ...values);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return node.eval(source, 0, ...values);
  }
}

function primaryOf(cluster: Cluster, key: string): Redis {
  const node = primaryAt(cluster, addressOfSlot(cluster, slotOf(key)));
  if (!node) throw new Error("the key's primary is not known");
  return node;
}

const addressOfSlot = (cluster: Cluster, slot: number): string => cluster.slots[slot]?.[0] ?? "";

const primaryAt = (cluster: Cluster, address: string): Redis | undefined =>
  cluster.nodes("master").find((one) => addressOf(one) === address);

const BEGINNING = "0";
const IS_PRIMARY = /^role:master\r?$/m;

async function scan(client: Redis, pattern: string, from?: ScanPlace): ReturnType<RedisConnection["scan"]> {
  const [next, keys] = await client.scan(from?.cursor ?? BEGINNING, "MATCH", pattern, "COUNT", SCAN_COUNT);
  return { keys, next: next === BEGINNING ? undefined : { slot: 0, node: "", cursor: next } };
}

async function scanCluster(cluster: Cluster, pattern: string, from?: ScanPlace): ReturnType<RedisConnection["scan"]> {
  const firstSlots = new Map<string, number>();
  for (let slot = 0; slot < cluster.slots.length; slot++) {
    const node = addressOfSlot(cluster, slot);
    if (node !== "" && !firstSlots.has(node)) firstSlots.set(node, slot);
  }
  const slot = from?.slot ?? Math.min(...firstSlots.values());
  const node = addressOfSlot(cluster, slot);
  const primary = primaryAt(cluster, node);
  // If it were skipped, its keys would seem not to exist.
  if (!primary) throw new Error("the primary for this part of the walk is not known");
  const at = from?.node === node ? from.cursor : BEGINNING;
  const [next, keys] = await primary.scan(at, "MATCH", pattern, "COUNT", SCAN_COUNT);
  if (!IS_PRIMARY.test(await primary.info("replication"))) {
    // Our list is older than a failover. A replica answers SCAN too, but is empty while it copies its new primary.
    cluster.refreshSlotsCache();
    throw new Error("the server of this walk is no longer a primary");
  }
  if (next !== BEGINNING) return { keys, next: { slot, node, cursor: next } };
  const [after] = [...firstSlots].filter(([, first]) => first > slot).sort((a, b) => a[1] - b[1]);
  return { keys, next: after && { slot: after[1], node: after[0], cursor: BEGINNING } };
}

/** A write that changed nothing has no replication offset to wait for; the fence written after it has one. */
async function isReplicated(node: Redis, key: string, withinMs: number): Promise<boolean> {
  await node.set(fenceKey(key), "1", "PX", FENCE_LIFE_MS);
  const info = await node.info("replication");
  if (!/^slave\d+:.*state=online/m.test(info)) return true;
  return Number(await node.wait(1, withinMs)) >= 1;
}
