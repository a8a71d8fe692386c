/**
 * Charges and administrative writes that verification could not finish, because something they need is missing or
 * broken in the store. They are set aside so that one account does not hold up others, and are retried. The journal
 * keeps their records until then.
 */
import { StoreError } from "../../store/contract.ts";
import type { AccountTag } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { AdminRecord } from "../journal.ts";
import type { RecordedCharge } from "./payload.ts";

/** The same number as charges that may wait in the journal for their first answer. A charge takes about a kilobyte. */
const MEMBERS_MAX = 100_000;
/** Pause between two rounds of retries; it doubles while none succeeds. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 10_000;

export interface PlacedCharge {
  readonly charge: RecordedCharge;
  /** The journal segment that has it. */
  readonly segment: number;
}

interface PlacedWrite {
  readonly record: AdminRecord;
  readonly segment: number;
}

export interface RetrySteps {
  /** False if the write must keep waiting. */
  readonly write: (record: AdminRecord) => Promise<boolean>;
  /** @returns the charges that must keep waiting. */
  readonly charges: (charges: readonly PlacedCharge[]) => Promise<readonly PlacedCharge[]>;
}

export class SetAside {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #charges = new Map<AccountTag, Map<RequestId, PlacedCharge>>();
  /** By their JSON text, in order of arrival. */
  readonly #writes = new Map<string, PlacedWrite>();
  #size = 0;
  #dueAtMs = 0;
  #pauseMs = PAUSE_FIRST_MS;

  /** @param max how many charges and writes it holds at most. */
  constructor(clock: Clock, max = MEMBERS_MAX) {
    this.#clock = clock;
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.#max;
  }

  /** The first journal segment that is still needed for what is set aside; undefined if nothing is set aside. */
  get oldestSegment(): number | undefined {
    let oldest: number | undefined;
    const look = ({ segment }: { segment: number }) => {
      oldest = Math.min(oldest ?? segment, segment);
    };
    for (const write of this.#writes.values()) look(write);
    for (const charges of this.#charges.values()) for (const charge of charges.values()) look(charge);
    return oldest;
  }

  /**
   * Sets a charge aside, if it is not already. @throws StoreError if there is no room: the caller must then wait with
   * it.
   */
  addCharge(placed: PlacedCharge): void {
    const { tag, requestId } = placed.charge;
    const charges = this.#charges.get(tag) ?? new Map<RequestId, PlacedCharge>();
    if (charges.has(requestId)) return;
    this.#count();
    this.#charges.set(tag, charges.set(requestId, placed));
  }

  /** Like `addCharge`, for a write. */
  addWrite(placed: PlacedWrite): void {
    const text = JSON.stringify(placed.record);
    if (this.#writes.has(text)) return;
    this.#count();
    this.#writes.set(text, placed);
  }

  /**
   * Retries what is set aside, if it is due. First all writes, oldest first, because charges need them and writes may
   * need each other. Then one charge of each account, and the account's other charges only if that one need not wait
   * any longer. Rejects with the errors of `steps`; what is not finished stays.
   */
  async retry(steps: RetrySteps): Promise<void> {
    const before = this.#size;
    const nowMs = this.#clock.monotonicMs();
    if (before === 0 || nowMs < this.#dueAtMs) return;
    for (const [text, { record }] of [...this.#writes]) {
      if ((await steps.write(record)) && this.#writes.delete(text)) this.#size--;
    }
    const first = [...this.#charges.values()].flatMap((charges) => charges.values().take(1).toArray());
    await this.#retryCharges(steps, first);
    const freed = first.filter(({ charge }) => !this.#charges.get(charge.tag)?.has(charge.requestId));
    const others = freed.flatMap(({ charge: { tag } }) => [...(this.#charges.get(tag)?.values() ?? [])]);
    await this.#retryCharges(steps, others);
    this.#pauseMs = this.#size < before ? PAUSE_FIRST_MS : Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    this.#dueAtMs = nowMs + this.#pauseMs;
  }

  async #retryCharges(steps: RetrySteps, placed: readonly PlacedCharge[]): Promise<void> {
    const waiting = new Set((await steps.charges(placed)).map(({ charge }) => charge.requestId));
    for (const { charge } of placed) {
      const charges = this.#charges.get(charge.tag);
      if (!waiting.has(charge.requestId) && charges?.delete(charge.requestId)) this.#size--;
      if (charges?.size === 0) this.#charges.delete(charge.tag);
    }
  }

  #count(): void {
    if (this.isFull) throw new StoreError("unavailable", "too many charges wait to be verified");
    this.#size++;
  }
}
