/**
 * Charges and administrative writes that verification could not bring to an end, since what they need is not in the store or
 * is broken there: kept apart from all others, so that one account holds up nobody else, and tried again. They are in the
 * journal too, which keeps them as long as they are here.
 */
import { StoreError } from "../../store/contract.ts";
import type { AccountTag } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { AdminRecord } from "../journal.ts";
import type { RecordedCharge } from "./payload.ts";

/** As many as may wait in the journal for their first answer; a charge takes about a kilobyte. */
const MEMBERS_MAX = 100_000;
/** Between two tries, while none of them succeeds. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 10_000;

export interface PlacedCharge {
  readonly charge: RecordedCharge;
  /** The segment of the journal that it is in. */
  readonly segment: number;
}

interface PlacedWrite {
  readonly record: AdminRecord;
  readonly segment: number;
}

export interface Tries {
  /** False when the write must wait further. */
  readonly write: (record: AdminRecord) => Promise<boolean>;
  /** @returns those that must wait further. */
  readonly charges: (charges: readonly PlacedCharge[]) => Promise<readonly PlacedCharge[]>;
}

export class SetAside {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #charges = new Map<AccountTag, Map<RequestId, PlacedCharge>>();
  /** By what they say, in the order in which they came. */
  readonly #writes = new Map<string, PlacedWrite>();
  #size = 0;
  #dueAtMs = 0;
  #pauseMs = PAUSE_FIRST_MS;

  /** @param max how many may be here. */
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

  /** The first segment of the journal that is needed for what is here; undefined when nothing is. */
  get oldestSegment(): number | undefined {
    let oldest: number | undefined;
    const look = ({ segment }: { segment: number }) => {
      oldest = Math.min(oldest ?? segment, segment);
    };
    for (const write of this.#writes.values()) look(write);
    for (const charges of this.#charges.values()) for (const charge of charges.values()) look(charge);
    return oldest;
  }

  /** One that is here already stays. @throws StoreError where there is no room: then its finder waits with it. */
  addCharge(placed: PlacedCharge): void {
    const { tag, requestId } = placed.charge;
    const charges = this.#charges.get(tag) ?? new Map<RequestId, PlacedCharge>();
    if (charges.has(requestId)) return;
    this.#count();
    this.#charges.set(tag, charges.set(requestId, placed));
  }

  /** The same for a write. */
  addWrite(placed: PlacedWrite): void {
    const text = JSON.stringify(placed.record);
    if (this.#writes.has(text)) return;
    this.#count();
    this.#writes.set(text, placed);
  }

  /**
   * Tries again what is here, if it is time: first all writes, oldest first, since charges need them and one may need
   * another; then of each account one charge, and the others only if that one is taken. Rejects as the tries do; what they have
   * not ended stays.
   */
  async tryAgain(tries: Tries): Promise<void> {
    const before = this.#size;
    const nowMs = this.#clock.monotonicMs();
    if (before === 0 || nowMs < this.#dueAtMs) return;
    for (const [text, { record }] of [...this.#writes]) {
      if ((await tries.write(record)) && this.#writes.delete(text)) this.#size--;
    }
    const first = [...this.#charges.values()].flatMap((charges) => charges.values().take(1).toArray());
    await this.#tryCharges(tries, first);
    const freed = first.filter(({ charge }) => !this.#charges.get(charge.tag)?.has(charge.requestId));
    const others = freed.flatMap(({ charge: { tag } }) => [...(this.#charges.get(tag)?.values() ?? [])]);
    await this.#tryCharges(tries, others);
    this.#pauseMs = this.#size < before ? PAUSE_FIRST_MS : Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    this.#dueAtMs = nowMs + this.#pauseMs;
  }

  async #tryCharges(tries: Tries, placed: readonly PlacedCharge[]): Promise<void> {
    const waiting = new Set((await tries.charges(placed)).map(({ charge }) => charge.requestId));
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
