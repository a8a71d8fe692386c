/**
 * Cuts who keeps a request back from a listener that closes (docs/failure-model.md row D5). Node does it while it listens, and ends
 * its checks with `close`: half a request would hold a drain up to its deadline.
 */
import type { Clock } from "../values/time.ts";
import type { ClientConnection } from "./connection.ts";
import type { HttpLimits } from "./http-limits.ts";

interface LateRequestsParts {
  readonly clock: Clock;
  readonly limits: Pick<HttpLimits, "headersTimeoutMs" | "requestTimeoutMs" | "checkingIntervalMs">;
  /** Those that are open. */
  readonly connections: () => readonly ClientConnection[];
}

export class LateRequests {
  readonly #parts: LateRequestsParts;
  /** Connections on which a head is due, and since when that is known. */
  #heads = new Map<ClientConnection, number>();
  #cancel = () => {};

  constructor(parts: LateRequestsParts) {
    this.#parts = parts;
  }

  /** From now on, until `stop`, who is later than the limits is answered so, and cut. */
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
      // Nobody has seen the first byte of a head that is not complete.
      const sinceMs = due === "head" ? (before.get(connection) ?? nowMs) : due.sinceMs;
      if (due === "head") this.#heads.set(connection, sinceMs);
      const limitMs = due === "head" ? limits.headersTimeoutMs : limits.requestTimeoutMs;
      if (nowMs - sinceMs >= limitMs) connection.failed(tooLate());
    }
  }
}

/** What Node itself says of it. */
const tooLate = () => Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
