/**
 * Enforces the request timeouts on a listener that is closing (docs/failure-model.md row D5). Node's own checks stop at
 * `close`; without this, half a request would delay a drain until its deadline.
 */
import type { Clock } from "../values/time.ts";
import type { ClientConnection } from "./connection.ts";
import type { HttpLimits } from "./http-limits.ts";

interface LateRequestsParts {
  readonly clock: Clock;
  readonly limits: Pick<HttpLimits, "headersTimeoutMs" | "requestTimeoutMs" | "checkingIntervalMs">;
  /** The open connections. */
  readonly connections: () => readonly ClientConnection[];
}

export class LateRequests {
  readonly #parts: LateRequestsParts;
  /** Connections on which a head is due, and since when this is known. */
  #heads = new Map<ClientConnection, number>();
  #cancel = () => {};

  constructor(parts: LateRequestsParts) {
    this.#parts = parts;
  }

  /** From now on until `stop`, answers requests that exceed the limits with a timeout, and closes their connections. */
  watch(): void {
    this.#cancel();
    this.#look();
    this.#cancel = this.#parts.clock.after(this.#parts.limits.checkingIntervalMs, () => this.watch());
  }

  stop(): void {
    this.#cancel();
    this.#heads.clear();
  }

  #look(): void {
    const { clock, limits, connections } = this.#parts;
    const nowMs = clock.monotonicMs();
    const before = this.#heads;
    this.#heads = new Map();
    for (const connection of connections()) {
      const due = connection.due;
      if (due === undefined) continue;
      // The time of the first byte of an incomplete head is not known.
      const sinceMs = due === "head" ? (before.get(connection) ?? nowMs) : due.sinceMs;
      if (due === "head") this.#heads.set(connection, sinceMs);
      const limitMs = due === "head" ? limits.headersTimeoutMs : limits.requestTimeoutMs;
      if (nowMs - sinceMs >= limitMs) connection.failed(tooLate());
    }
  }
}

/** The same error as Node's own. */
const tooLate = () => Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
