/**
 * Notices that belong to no account: upstreams that are ejected, books that do not balance. They go into the store's
 * queue for such notices. If the store must not be touched because it lost data, this process delivers them from
 * memory; after a restart the gateway finds the loss again and notifies again.
 */
import { type Store, StoreError } from "../store/contract.ts";
import { GATEWAY_OUTBOX, type NewNotice, type WaitingNotices } from "../store/notices.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { NoticeKind, NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { DirectQueue } from "./deliverer.ts";

/** Maximum of notices in memory, for each of the two queues; above it the oldest is dropped. */
const WAITING_MAX = 64;
const AGAIN_AFTER_MS = 2_000;

interface GatewayQueueParts {
  readonly store: Pick<Store, "addNotice">;
  readonly settings: () => NoticeSettings | undefined;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "noticesLost">;
  /** Identifies this replica, so that a receiver can merge what several replicas report of one event. */
  readonly replica: Readonly<Record<string, string>>;
  readonly generation: () => number;
  /** Called when a notice is to be delivered from memory; undefined in a process that does not deliver. */
  readonly onDirect: (() => void) | undefined;
}

interface QueuedNotice extends NewNotice {
  readonly atMs: number;
}

export class GatewayQueue implements DirectQueue {
  readonly #parts: GatewayQueueParts;
  #waiting: QueuedNotice[] = [];
  #direct: { readonly seq: number; readonly notice: QueuedNotice }[] = [];
  #count = 0;
  #taken = 0;
  #last = 0;
  #adding: Promise<void> | undefined;
  #stopped = false;
  #cancel = () => {};

  constructor(parts: GatewayQueueParts) {
    this.#parts = parts;
  }

  /** Queues a notice, if notices of this kind are configured. */
  note(kind: NoticeKind, data: Readonly<Record<string, string>>): void {
    const { settings, clock, metrics, replica, generation } = this.#parts;
    if (this.#stopped || !settings()?.kinds.has(kind)) return;
    const ref = `${replica.instance}:${++this.#count}`;
    const facts = { ...data, ...replica, generation: `${generation()}` };
    this.#waiting.push({ kind, ref, data: facts, atMs: clock.wallMs() });
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift();
      metrics.noticesLost.inc({ cause: "dropped" });
    }
    void this.#add();
  }

  read(): WaitingNotices {
    const notices = this.#direct.slice(0, 1).map(({ seq, notice }) => ({ ...notice, seq }));
    return { name: "", taken: this.#taken, last: this.#last, notices };
  }

  take(seq: number): void {
    this.#taken = seq;
    this.#direct = this.#direct.filter((one) => one.seq > seq);
  }

  /** Makes a last attempt; resolves when nothing is in flight to the store. */
  async stop(): Promise<void> {
    const adding = this.#add();
    this.#stopped = true;
    this.#cancel();
    await adding;
  }

  async #add(): Promise<void> {
    this.#cancel();
    this.#adding ??= this.#addAll().then((isTaken) => {
      this.#adding = undefined;
      if (this.#waiting.length === 0) return;
      // A notice queued after this pass last looked at the queue found the pass still running and did not start
      // another.
      if (isTaken) return this.#add();
      if (!this.#stopped) this.#cancel = this.#parts.clock.after(AGAIN_AFTER_MS, () => void this.#add());
    });
    await this.#adding;
  }

  /** @returns false if the store failed, so that the rest must be retried. */
  async #addAll(): Promise<boolean> {
    for (let [first] = this.#waiting; first; [first] = this.#waiting) {
      const { atMs: _, ...notice } = first;
      try {
        await this.#parts.store.addNotice(GATEWAY_OUTBOX, notice);
      } catch (error) {
        if (!(error instanceof StoreError && error.kind === "older")) return false;
        this.#keep(first);
      }
      this.#waiting = this.#waiting.filter((one) => one !== first);
    }
    return true;
  }

  /**
   * Queues for delivery from memory. A process that does not deliver drops it: the one that delivers sees the same
   * event.
   */
  #keep(notice: QueuedNotice): void {
    const { onDirect } = this.#parts;
    if (!onDirect) return;
    this.#direct.push({ seq: ++this.#last, notice });
    // The gap in the numbers between the last one taken and the first that is left is reported as dropped.
    if (this.#direct.length > WAITING_MAX) this.#direct.shift();
    onDirect();
  }
}
