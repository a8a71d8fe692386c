/**
 * What is of no account: upstreams that go out of rotation, books that are off. It goes into the store's own queue for such
 * notices; where the store must not be touched, since it lost data, this process delivers it from memory: a gateway that is
 * started again finds the loss again and tells again.
 */
import { type Store, StoreError } from "../store/contract.ts";
import { GATEWAY_OUTBOX, type NewNotice, type WaitingNotices } from "../store/notices.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { NoticeKind, NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { DirectQueue } from "./deliverer.ts";

/** Notices that wait in memory at once, of each sort; beyond it the oldest goes. */
const WAITING_MAX = 64;
const AGAIN_AFTER_MS = 2_000;

interface GatewayQueueParts {
  readonly store: Pick<Store, "addNotice">;
  readonly settings: () => NoticeSettings | undefined;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "noticesLost">;
  /** Who tells: a receiver folds what several replicas say of one thing. */
  readonly replica: Readonly<Record<string, string>>;
  readonly generation: () => number;
  /** Called when something is to be delivered from memory; undefined in a process that delivers nothing. */
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

  /** Notes what has happened, where somebody wants to be told of it. */
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

  /** Resolves when nothing is on its way to the store; a last try is made. */
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
      // What was noted after the last look at the line found this pass still under way, and began none.
      if (isTaken) return this.#add();
      if (!this.#stopped) this.#cancel = this.#parts.clock.after(AGAIN_AFTER_MS, () => void this.#add());
    });
    await this.#adding;
  }

  /** @returns whether the store has taken all that it was asked to. */
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

  /** A process that delivers nothing leaves it to the one that does, which sees the same. */
  #keep(notice: QueuedNotice): void {
    const { onDirect } = this.#parts;
    if (!onDirect) return;
    this.#direct.push({ seq: ++this.#last, notice });
    // Those between the one taken and the first that is left count as dropped.
    if (this.#direct.length > WAITING_MAX) this.#direct.shift();
    onDirect();
  }
}
