/**
 * The rights that the Redis user needs, and the check that it has them: each command that the scripts and `connect.ts`
 * send, on each kind of key. The scripts' part is read from their source, so it is always up to date; a test compares
 * the whole with what Redis observes. A missing right would stop a script half-way.
 */

import type { CodeHash } from "../../../values/code.ts";
import type { AccountTag } from "../../../values/key.ts";
import { StoreError } from "../../contract.ts";
import * as keys from "../keys.ts";
import type { Script, Scripts } from "../scripts.ts";
import type { RedisConnection } from "./connect.ts";
import { within } from "./within.ts";

/** A command, with the key that it is sent on if it has one; variable parts of the key are asterisks. */
interface Right {
  readonly command: string;
  readonly key: string | undefined;
}

const ANY_TAG = "*" as AccountTag;
const ANY = "*";

/** The names of the keys in the scripts. A key with another name is a defect. */
const KEYS_OF_SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  account: [keys.accountKey(ANY_TAG)],
  outbox: [keys.accountKey(ANY_TAG), keys.GATEWAY_NOTICES],
  lease: [keys.NOTICES_LEASE],
  holds: [keys.holdsKey(ANY_TAG)],
  expiries: [keys.expiriesKey(ANY_TAG)],
  settled: [keys.settledKey(ANY_TAG, ANY)],
  idem: [keys.idempotencyKey(ANY_TAG, ANY)],
  ledger: [keys.ledgerKey(ANY_TAG)],
  opening: [keys.openingKey(ANY_TAG)],
  payments: [keys.paymentsKey(ANY_TAG)],
  day: [keys.dayKey(ANY_TAG, ANY)],
  day_counts: [keys.dayCountsKey(ANY_TAG, ANY)],
  counts: [keys.dayCountsKey(ANY_TAG, ANY)],
  sums: [keys.dayKey(ANY_TAG, ANY), keys.dayCountsKey(ANY_TAG, ANY)],
  hash: [
    ...[keys.accountKey(ANY_TAG), keys.paymentsKey(ANY_TAG)],
    ...[keys.dayKey(ANY_TAG, ANY), keys.dayCountsKey(ANY_TAG, ANY)],
  ],
  names: [keys.NAME_INDEX],
  names_in_order: [keys.NAMES_IN_ORDER],
  code: [keys.codeKey(ANY as CodeHash)],
  codes: [keys.CODE_INDEX],
  codes_in_order: [keys.CODES_IN_ORDER],
  batches: [keys.BATCHES_IN_ORDER],
  batch: [keys.batchKey(ANY)],
  batch_codes: [keys.batchCodesKey(ANY)],
  claims: [keys.CLAIMS],
  history: [keys.epochKey(ANY)],
  sign_ins: [keys.signInsKey(ANY_TAG), keys.signInsKey("operator")],
};

const CALL = /\bcall\('(?<command>[A-Z]+)'(?:, (?<key>[\w[\]]+))?/g;
/** A command in a list that is run later. */
const STEP = /\{\s*'(?<command>[A-Z]{2,})', (?<key>\w+)/g;
const COMMENT = /--.*$/gm;

/** @throws TypeError when a script sends a command on a key of an unknown kind. */
function rightsOfScript({ name, source }: Pick<Script, "name" | "source">): Right[] {
  const text = source.replace(COMMENT, "");
  return [...text.matchAll(CALL), ...text.matchAll(STEP)].flatMap((match): Right[] => {
    const { command = "", key } = match.groups ?? {};
    if (key === undefined) return [{ command, key }];
    const spelled = KEYS_OF_SCRIPTS[key];
    if (spelled === undefined)
      throw new TypeError(`${name}.lua sends ${command} on ${key}, which is not a known kind of key`);
    return spelled.map((one) => ({ command, key: one }));
  });
}

const on = (command: string, ...of: string[]): Right[] => of.map((key) => ({ command, key }));

/** What `connect.ts` sends besides scripts. */
function rightsOfConnection(sharded: boolean): Right[] {
  const account = keys.accountKey(ANY_TAG);
  const code = keys.codeKey(ANY as CodeHash);
  const ofAccount = [keys.holdsKey, keys.paymentsKey].map((key) => key(ANY_TAG));
  const ofDay = [keys.dayKey, keys.dayCountsKey].map((key) => key(ANY_TAG, ANY));
  const ofOperator = keys.signInsKey("operator");
  const fences = [account, keys.NAME_INDEX, keys.CODE_INDEX, code, ofOperator].map(keys.fenceKey);
  const commands = [
    "EVALSHA",
    "EVAL",
    "INFO",
    "SCAN",
    "WAIT",
    ...(sharded ? ["CLUSTER SLOTS", "CLUSTER INFO", "ASKING"] : []),
  ];
  return [
    ...commands.map((command) => ({ command, key: undefined })),
    ...on("GET", keys.idempotencyKey(ANY_TAG, ANY)),
    ...on("HGET", account, keys.openingKey(ANY_TAG), keys.NAME_INDEX, keys.CODE_INDEX),
    ...on("HGETALL", code, keys.batchKey(ANY)),
    ...on("HMGET", account, keys.NAME_INDEX),
    ...on("HSCAN", account, ...ofAccount, ...ofDay),
    ...on("XRANGE", keys.ledgerKey(ANY_TAG)),
    ...on("ZRANGEBYLEX", keys.NAMES_IN_ORDER, keys.CODES_IN_ORDER, keys.BATCHES_IN_ORDER, keys.batchCodesKey(ANY)),
    ...on("SET", ...fences),
  ];
}

/** Everything that the user needs, each right once, in order. */
export function neededRights(scripts: Scripts, sharded: boolean): readonly Right[] {
  const all = [...Object.values(scripts).flatMap(rightsOfScript), ...rightsOfConnection(sharded)];
  const once = new Map(all.map((right) => [words(right), right]));
  return [...once.keys()].sort().map((text) => once.get(text) as Right);
}

const words = ({ command, key }: Right): string => (key === undefined ? command : `${command} on ${key}`);

/** The rest of a whole command, after its key or name. Redis 7.0 crashes when it is asked about an incomplete EVAL. */
const REST: Readonly<Record<string, readonly string[]>> = {
  ASKING: [],
  "CLUSTER INFO": [],
  "CLUSTER SLOTS": [],
  DEL: [],
  EXISTS: [],
  EVAL: ["return 0", "0"],
  EVALSHA: ["0".repeat(40), "0"],
  GET: [],
  HDEL: ["f"],
  HEXISTS: ["f"],
  HGET: ["f"],
  HGETALL: [],
  HLEN: [],
  HMGET: ["f"],
  HSCAN: ["0"],
  HSET: ["f", "0"],
  INFO: [],
  SCAN: ["0"],
  SET: ["0"],
  TIME: [],
  WAIT: ["1", "1"],
  XADD: ["1-0", "f", "0"],
  XRANGE: ["-", "+"],
  XREVRANGE: ["+", "-"],
  XTRIM: ["MINID", "0"],
  ZADD: ["0", "m"],
  ZRANGEBYLEX: ["-", "+"],
  ZRANGEBYSCORE: ["0", "0"],
  ZREM: ["m"],
  ZSCORE: ["m"],
};

function asArguments(rights: readonly Right[]): string[] {
  return rights.flatMap(({ command, key }) => {
    const rest = REST[command];
    if (rest === undefined) throw new TypeError(`the arguments of ${command} are not known`);
    const args = [...command.split(" "), ...(key === undefined ? [] : [key]), ...rest];
    return [`${args.length}`, ...args];
  });
}

/** What is known of a server: the missing rights of its user, for a certain connection. */
interface KnownRights {
  readonly lacking: readonly string[];
  /** Connections lost by then. A new connection may lead to another server, or another user. */
  readonly losses: number;
  readonly atMs: number;
}

/** The pause before a server whose user lacks rights is asked again. */
const ASK_AGAIN_MS = 250;
/** How long a server may take to report its user's rights; a script's own time limit is over by then. */
const ASK_TIMEOUT_MS = 1_000;

/**
 * Keeps scripts from a server whose user lacks rights that they need. A server is asked after each new connection, and
 * again with every `check`, which notices rights that were taken away or given back.
 */
export class Rights {
  readonly #connection: RedisConnection;
  readonly #probe: Script;
  readonly #needed: readonly Right[];
  readonly #values: readonly string[];
  readonly #known = new Map<string, KnownRights>();
  readonly #asking = new Map<string, Promise<void>>();
  #wasWhole = false;
  /** Servers for which a warning was given that has not been withdrawn. */
  readonly #warnedOf = new Set<string>();

  /** @param probe the script that finds the missing ones of the needed rights. */
  constructor(connection: RedisConnection, needed: readonly Right[], probe: Script) {
    this.#connection = connection;
    this.#probe = probe;
    this.#needed = needed;
    this.#values = asArguments(needed);
  }

  /**
   * Whether a script may go to the server of a key; undefined: it may.
   * @returns a promise that resolves when it may, and rejects with StoreError when it may not.
   */
  pass(key: string): Promise<void> | undefined {
    const node = this.#connection.nodeOf(key);
    const known = this.#known.get(node);
    if (known?.losses === this.#connection.losses()) {
      if (known.lacking.length === 0) return undefined;
      if (performance.now() - known.atMs < ASK_AGAIN_MS)
        return Promise.reject(unsent(lackingRights(node, known.lacking)));
    }
    return this.#ask(node)
      .then(() => this.#demand(node))
      .catch((error: unknown) => {
        throw error instanceof StoreError ? unsent(error) : error;
      });
  }

  /** Called after an error about rights: they are checked before the next script. */
  doubt(): void {
    this.#known.clear();
  }

  /**
   * Asks every server. Rejects with StoreError when all servers that answer lack rights. Until one check has found no
   * fault, it rejects even when only one server lacks rights. After that, such a part of a cluster affects only its own
   * accounts.
   * @param warn called for each server that lacks rights and is not named by the error, and again when the server has
   * them.
   */
  async check(warn: (message: string) => void): Promise<void> {
    const nodes = this.#connection.primaries();
    const asked = await Promise.allSettled(nodes.map((node) => this.#ask(node)));
    const answered = nodes.filter((_, i) => asked[i]?.status === "fulfilled");
    if (answered.length === 0) throw (asked[0] as PromiseRejectedResult | undefined)?.reason ?? new Error("no primary");
    const lacking = answered.filter((node) => (this.#known.get(node)?.lacking.length ?? 0) > 0);
    const isRefused = lacking.length === answered.length || (lacking.length > 0 && !this.#wasWhole);
    this.#warnOf(answered, isRefused ? lacking[0] : undefined, warn);
    if (isRefused) this.#demand(lacking[0] as string);
    this.#wasWhole ||= lacking.length === 0;
  }

  #warnOf(answered: readonly string[], refused: string | undefined, warn: (message: string) => void): void {
    for (const node of answered) {
      const lacking = this.#known.get(node)?.lacking ?? [];
      if (lacking.length === 0) {
        if (this.#warnedOf.delete(node)) warn(`the user of ${placeOf(node)} has all its rights again`);
      } else if (node !== refused) {
        this.#warnedOf.add(node);
        warn(lackingRights(node, lacking).message);
      }
    }
  }

  /** One question at a time to each server, shared by all callers. */
  #ask(node: string): Promise<void> {
    const asked = this.#asking.get(node) ?? this.#askNow(node).finally(() => this.#asking.delete(node));
    this.#asking.set(node, asked);
    return asked;
  }

  async #askNow(node: string): Promise<void> {
    const losses = this.#connection.losses();
    const lacking = await this.#lackingOf(node);
    this.#known.set(node, { lacking, losses, atMs: performance.now() });
  }

  async #lackingOf(node: string): Promise<string[]> {
    try {
      // Scripts that arrive meanwhile wait for this, so it must end.
      const asked = within(ASK_TIMEOUT_MS, () => this.#connection.runOn(node, this.#probe, this.#values));
      const [wrong, places] = (await asked) as [string, string[]];
      if (wrong !== "")
        throw new StoreError("unavailable", `${placeOf(node)} is not fit: ${wrong}`, { outcome: "refused" });
      return places.map((place) => words(this.#needed[Number(place) - 1] as Right));
    } catch (error) {
      const command = /^NOPERM .*'(?<command>[\w|]+)' command/.exec(error instanceof Error ? error.message : "")?.groups
        ?.command;
      if (command === undefined) throw error;
      return [command.toUpperCase()];
    }
  }

  #demand(node: string): void {
    const lacking = this.#known.get(node)?.lacking ?? [];
    if (lacking.length > 0) throw lackingRights(node, lacking);
  }
}

function lackingRights(node: string, lacking: readonly string[]): StoreError {
  const message = `the user of ${placeOf(node)} may not ${lacking.join(", ")}; deploy/redis-acl.conf has all that it needs`;
  return new StoreError("unavailable", message, { outcome: "refused" });
}

/**
 * The rejection of a script that was not sent: it describes the server, and nothing about the script or its account.
 */
function unsent(error: StoreError): StoreError {
  return new StoreError(error.kind, error.message, { cause: error, outcome: "unsent" });
}

const placeOf = (node: string): string => (node === "" ? "Redis" : `Redis at ${node}`);

/** Whether an error reply is about rights. */
export function isOfRights(message: string): boolean {
  return /\bNO(?:PERM|RIGHT) |The user executing the script can't /.test(message);
}
