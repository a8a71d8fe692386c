/**
 * Runs one step against Redis within a time limit. A reply is authoritative. Any error (timeout, lost connection,
 * LOADING, READONLY, OOM, MASTERDOWN, CLUSTERDOWN, BUSY, MISCONF, NOREPLICAS, NOAUTH, TRYAGAIN, any other) means that
 * the outcome is unknown: the step is tried once more with the same ids, and then fails with StoreError. No error is
 * ever read as "there is no such key" (docs/failure-model.md invariant 34, rows B4, B5 and B9).
 */
import { errorText } from "../../../values/program/error-text.ts";
import { StoreError, StoreUnreachableError } from "../../contract.ts";
import type { Script } from "../scripts.ts";
import type { RedisConnection } from "./connect.ts";
import { isOfRights, type Rights } from "./rights.ts";
import { within } from "./within.ts";

/** Time limits of a step. */
export interface StepLimits {
  /** The first try. */
  readonly tryMs: number;
  /** Both attempts together. */
  readonly totalMs: number;
}

/** Pause before the second try, with jitter. */
const PAUSE_MS = 10;
/**
 * How long the second try waits for a lost connection, as a share of the first try's time (200 of 400 ms). A connection
 * reset is over by then; an outage is not.
 */
const RECONNECT_SHARE = 0.5;
/**
 * The most steps that wait for Redis at the same time. Further steps are refused at once, so that a slow Redis does not
 * fill the memory.
 */
const STEPS_IN_FLIGHT_MAX = 10_000;

export class Runner {
  readonly connection: RedisConnection;
  readonly rights: Rights | undefined;
  readonly #limits: StepLimits;
  #inFlight = 0;

  /** @param rights keeps scripts from servers where they could stop half-way; without it no script is held back. */
  constructor(connection: RedisConnection, limits: StepLimits, rights?: Rights) {
    this.connection = connection;
    this.rights = rights;
    this.#limits = limits;
  }

  /** Runs a script: EVALSHA, and EVAL where Redis has forgotten it (restart, SCRIPT FLUSH, failover: row B8). */
  script(script: Script, keys: readonly string[], values: readonly string[]): Promise<unknown> {
    return this.step((connection) => {
      const known = this.rights?.pass(keys[0] ?? "");
      const run = () =>
        connection.evalsha(script.sha, keys, values).catch((error: unknown) => {
          if (!isForgotten(error)) throw error;
          return connection.eval(script.source, keys, values);
        });
      return known ? known.then(run) : run();
    });
  }

  /** Runs anything that may be run twice. */
  async step<T>(work: (connection: RedisConnection) => Promise<T>): Promise<T> {
    if (this.#inFlight >= STEPS_IN_FLIGHT_MAX) {
      throw new StoreError("unavailable", "too many steps wait for Redis", { outcome: "unsent" });
    }
    this.#inFlight++;
    const { tryMs, totalMs } = this.#limits;
    const firstMs = Math.min(tryMs, totalMs);
    const startMs = performance.now();
    try {
      return await within(firstMs, () => work(this.connection));
    } catch (error) {
      return await this.#again(work, error, startMs, startMs + firstMs);
    } finally {
      this.#inFlight--;
    }
  }

  /** The second try, after an inconclusive error of the first. @param dueMs when the first try's time ended. */
  async #again<T>(
    work: (connection: RedisConnection) => Promise<T>,
    failure: unknown,
    startMs: number,
    dueMs: number,
  ): Promise<T> {
    refuseDefect(failure);
    if (isOfRights(errorText(failure))) this.rights?.doubt();
    // The delay of this process itself: after a long turn of the event loop, timers run before the replies that are
    // already in its sockets. It does not count against the second try.
    const heldUpMs = Math.max(0, performance.now() - dueMs);
    const { tryMs, totalMs } = this.#limits;
    const leftMs = (): number => Math.max(1, totalMs + heldUpMs - (performance.now() - startMs));
    await pause(PAUSE_MS * (0.5 + Math.random()));
    try {
      await within(Math.min(RECONNECT_SHARE * tryMs, leftMs()), () => this.connection.ready());
      return await within(leftMs(), () => work(this.connection));
    } catch (error) {
      refuseDefect(error);
      const outcome = isOfThisStep(error) ? "refused" : "unknown";
      const text = errorText(error);
      if (replyOf(error) !== undefined) {
        throw new StoreError("unavailable", `Redis answered with an error: ${text}`, { cause: error, outcome });
      }
      throw new StoreUnreachableError("unavailable", `Redis did not answer: ${text}`, { cause: error, outcome });
    }
  }
}

/**
 * Our own argument checks inside the scripts found a defect of ours, before anything was written. A retry is of no use.
 */
function refuseDefect(error: unknown): void {
  const message = errorText(error);
  if (message.startsWith("BADARG")) throw new RangeError(`store: ${message}`, { cause: error });
  if (error instanceof StoreError) throw error;
}

/** Error replies that describe the state of the server, and not a fault of one step. */
const SERVER_STATES = [
  ..."LOADING READONLY MASTERDOWN CLUSTERDOWN BUSY OOM MISCONF NOREPLICAS NOAUTH NOPERM NORIGHT WRONGPASS".split(" "),
  ..."EXECABORT MOVED ASK NOSCRIPT".split(" "),
];

/** A reply that may come from one account's own records: others are served, so it does not indicate an outage. */
function isOfThisStep(error: unknown): boolean {
  const reply = replyOf(error);
  if (reply === undefined) return false;
  return isOfSlot(error, reply) || !SERVER_STATES.includes(reply.split(" ", 1)[0] as string);
}

/** How ioredis reports the last reply after it has used up its redirections of a command. */
const LAST_REPLY = "Too many Cluster redirections. Last error: ReplyError: ";

/**
 * The account's slot is half-moved, and nodes that answer redirect a command to each other; or the slot is unassigned.
 */
function isOfSlot(error: unknown, reply: string): boolean {
  if (reply === "CLUSTERDOWN Hash slot not served") return true;
  return errorText(error).startsWith(LAST_REPLY) && /^(TRYAGAIN|MOVED|ASK) /.test(reply);
}

/** Redis has no script of this hash. After redirections by a half-moved slot, that is the reply of the node that gets it. */
function isForgotten(error: unknown): boolean {
  const message = errorText(error);
  return message.startsWith("NOSCRIPT") || message.startsWith(`${LAST_REPLY}NOSCRIPT`);
}

/** The error reply behind an error; undefined when Redis has not answered. */
function replyOf(error: unknown): string | undefined {
  const message = errorText(error);
  if (message.startsWith(LAST_REPLY)) return message.slice(LAST_REPLY.length);
  return error instanceof Error && error.name === "ReplyError" ? message : undefined;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
