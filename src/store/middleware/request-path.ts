/**
 * The calls of a request, and the later look-up of its charge, through every layer between the gateway and the store.
 * Outermost first: the gate (is the store's history unchanged?), the breaker (does it answer in time?), the timing
 * (`store_seconds`), the store.
 */
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { NanoUsd } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import { type AdmitAsk, type AdmitRefused, type Admitted, isKeyRefusal } from "../admission.ts";
import type { RequestStore, Store } from "../contract.ts";
import { keyRefusal } from "../decision.ts";
import type { ExtendAnswer, ExtendAsk } from "../extension.ts";
import type { KeyView } from "../records.ts";
import type { SettleAnswer, SettleAsk } from "../settlement.ts";
import type { Breakers } from "./breakers.ts";
import type { Gate } from "./gate.ts";

interface RequestPathParts {
  readonly store: RequestStore & Pick<Store, "settledAmounts">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly metrics: Pick<Metrics, "storeSeconds">;
  /** Undefined for a store in this process: it is never unreachable, and if it is slow, everything is. */
  readonly breakers: Breakers | undefined;
  /** Undefined: not asked, such as when the gate itself reads the store. */
  readonly gate: Gate | undefined;
}

const MS_PER_S = 1_000;

/** The labels of each operation's times. */
const READ_KEY = { operation: "readKey" };
const ADMIT = { operation: "admit" };
const EXTEND = { operation: "extend" };
const SETTLE = { operation: "settle" };
const SETTLED_AMOUNTS = { operation: "settledAmounts" };
type Operation = { readonly operation: string };

export class RequestPath implements RequestStore {
  readonly #parts: RequestPathParts;

  constructor(parts: RequestPathParts) {
    this.#parts = parts;
  }

  async readKey(tag: AccountTag, hash: KeyHash): Promise<KeyView | undefined> {
    const { store, gate } = this.#parts;
    const shut = this.#shut();
    if (shut) await shut;
    const view = await this.#request(tag, READ_KEY, () => store.readKey(tag, hash));
    if (!view || keyRefusal(view.key, view.storeTimeMs) !== undefined) await gate?.recheck(tag);
    return view;
  }

  async admit(ask: AdmitAsk): Promise<Admitted | AdmitRefused> {
    const { store, gate } = this.#parts;
    const shut = this.#shut();
    if (shut) await shut;
    const answer = await this.#request(ask.tag, ADMIT, () => store.admit(ask));
    // A known but refused key takes the same time as an unknown one, so that a caller cannot distinguish them.
    if (answer.outcome === "refused" && isKeyRefusal(answer.cause)) await gate?.recheck(ask.tag);
    return answer;
  }

  /** A running request has been admitted: no gate stops it. */
  extend(ask: ExtendAsk): Promise<ExtendAnswer> {
    return this.#request(ask.tag, EXTEND, () => this.#parts.store.extend(ask));
  }

  async settle(ask: SettleAsk, isAwaited = false): Promise<SettleAnswer> {
    const { store, gate } = this.#parts;
    const shut = this.#shut();
    if (shut) await shut;
    const answer = await this.#settlement(ask.tag, SETTLE, () => store.settle(ask), isAwaited);
    if (answer.outcome === "unknown_account") await gate?.recheck(ask.tag);
    return answer;
  }

  /** No request waits for it: it queues with the settlements. */
  async settledAmounts(tag: AccountTag, ids: readonly RequestId[]): Promise<readonly (NanoUsd | undefined)[]> {
    const shut = this.#shut();
    if (shut) await shut;
    return this.#settlement(tag, SETTLED_AMOUNTS, () => this.#parts.store.settledAmounts(tag, ids), false);
  }

  shardOf(tag: AccountTag): string {
    return this.#parts.store.shardOf(tag);
  }

  /** Undefined when the gate is open, so that nothing is deferred. */
  #shut(): Promise<void> | undefined {
    return this.#parts.gate?.pass();
  }

  #request<T>(tag: AccountTag, operation: Operation, ask: () => Promise<T>): Promise<T> {
    const { breakers } = this.#parts;
    return breakers ? breakers.request(tag, () => this.#timed(operation, ask)) : this.#timed(operation, ask);
  }

  #settlement<T>(tag: AccountTag, operation: Operation, ask: () => Promise<T>, isAwaited: boolean): Promise<T> {
    const { breakers } = this.#parts;
    if (!breakers) return this.#timed(operation, ask);
    return breakers.settlement(tag, () => this.#timed(operation, ask), isAwaited);
  }

  /** Observes the time on the side: the answer itself is not wrapped in another promise, which would delay it. */
  #timed<T>(operation: Operation, call: () => Promise<T>): Promise<T> {
    const { clock, metrics } = this.#parts;
    const startedMs = clock.monotonicMs();
    const observe = () => metrics.storeSeconds.observe(operation, (clock.monotonicMs() - startedMs) / MS_PER_S);
    const answer = call();
    answer.then(observe, observe);
    return answer;
  }
}
