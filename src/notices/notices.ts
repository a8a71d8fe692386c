/**
 * Puts the notices of one process together: those that the store writes, those of the gateway, cards about to expire,
 * and their delivery. `docs/notices.md` describes them for receivers.
 */
import { hostname } from "node:os";
import type { AdmitRefused } from "../store/admission.ts";
import type { Store } from "../store/contract.ts";
import { GATEWAY_OUTBOX, type NoticeTerms, type NoticeWriter, type Outbox } from "../store/notices.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AccountTag } from "../values/key.ts";
import { nanoUsd } from "../values/money.ts";
import type { NoticeKind, NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { budgetNotices } from "./budget-notices.ts";
import { watchCards } from "./card-watch.ts";
import { Deliverer, type LaneState } from "./deliverer.ts";
import { GatewayQueue } from "./gateway-queue.ts";
import { messageOf } from "./message.ts";
import { type Sent, send } from "./send.ts";

const EARLY_MAX = 16;

interface NoticesParts {
  readonly settings: NoticeSettings | undefined;
  /** Whether this process may deliver; the workers of a gateway leave that to their parent. */
  readonly delivers: boolean;
  readonly generation: () => number;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly random: (bytes: number) => Uint8Array;
  readonly jitter: () => number;
  readonly fetch: typeof fetch;
}

export class Notices {
  readonly #parts: NoticesParts;
  readonly #instance: string;
  #settings: NoticeSettings | undefined;
  #terms: NoticeTerms | undefined;
  #deliverer: Deliverer | undefined;
  #queue: GatewayQueue | undefined;
  #cards: ReturnType<typeof watchCards> | undefined;
  #budgets: ReturnType<typeof budgetNotices> | undefined;
  #tests = 0;
  /** Notices from before the store was open, for example of a loss found at the start. */
  #early: (() => void)[] = [];

  constructor(parts: NoticesParts) {
    this.#parts = parts;
    this.#instance = Buffer.from(parts.random(9)).toString("base64url");
    this.#take(parts.settings);
  }

  /** For the store, which is opened before the deliverer exists. */
  get writer(): NoticeWriter {
    return { terms: () => this.#terms, noted: (outbox: Outbox) => this.#deliverer?.wake(outbox) };
  }

  /** @param store behind the gate, as for every write of the gateway. */
  start(store: Store): void {
    const { delivers, clock, metrics, log, jitter, generation } = this.#parts;
    const settings = () => this.#settings;
    const queue = new GatewayQueue({
      store,
      settings,
      clock,
      metrics,
      replica: { instance: this.#instance, host: hostname() },
      generation,
      onDirect: delivers ? () => this.#deliverer?.wake("direct") : undefined,
    });
    this.#queue = queue;
    this.#budgets = budgetNotices({ store, clock, log });
    for (const note of this.#early) note();
    this.#early = [];
    if (!delivers) return;
    const deliverer = new Deliverer({
      store,
      settings,
      direct: queue,
      holder: this.#instance,
      clock,
      random: jitter,
      metrics,
      log,
      fetch: this.#parts.fetch,
    });
    this.#deliverer = deliverer;
    deliverer.start();
    this.#cards = watchCards({ store, settings, isLeader: () => deliverer.isLeader, clock, log });
  }

  /** Applies new settings: waiting notices go to the new receiver, at once if it has changed. */
  apply(settings: NoticeSettings | undefined): void {
    const isAnother = receiverText(settings) !== receiverText(this.#settings);
    this.#take(settings);
    if (isAnother) this.#deliverer?.reset();
  }

  /** Queues a notice that belongs to no account. */
  note(kind: NoticeKind, data: Readonly<Record<string, string>>): void {
    if (this.#queue) this.#queue.note(kind, data);
    else if (this.#early.length < EARLY_MAX) this.#early.push(() => this.note(kind, data));
  }

  /** Reports that a request was refused because of a budget; one notice per budget and span. */
  budgetMet(tag: AccountTag, refused: AdmitRefused): void {
    if (this.#settings?.kinds.has("budget_reached")) this.#budgets?.(tag, refused);
  }

  measure(): void {
    this.#deliverer?.measure();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#queue?.stop(), this.#cards?.stop()]);
    await this.#deliverer?.stop();
  }

  /** For operators: where notices go, and the state of delivery. */
  status(): NoticesStatus | undefined {
    const settings = this.#settings;
    if (!settings) return undefined;
    // Only the origin: path and query of the address may be a secret.
    const receiver = new URL(settings.url.reveal()).origin;
    const { isLeader = false, stopped } = this.#deliverer ?? {};
    return { receiver, kinds: [...settings.kinds], isLeader, stopped };
  }

  laneOf(outbox: Outbox): LaneState | undefined {
    return this.#deliverer?.state(outbox);
  }

  /** Sends a test message at once, ahead of all notices. Undefined: there is no receiver. */
  async test(): Promise<(Sent & { readonly id: string }) | undefined> {
    const settings = this.#settings;
    if (!settings) return undefined;
    const { clock, fetch: fetcher } = this.#parts;
    const data = { instance: this.#instance, host: hostname() };
    const ref = `${this.#instance}:test:${++this.#tests}`;
    const atMs = clock.wallMs();
    const message = messageOf({ kind: "test", ref, data, outbox: GATEWAY_OUTBOX, name: "", atMs, dropped: 0 });
    const { signal } = new AbortController();
    return { ...(await send(message, settings, { clock, fetch: fetcher, signal })), id: message.id };
  }

  /** Retries everything now, from this process. False: there is no receiver. Rejects with StoreError. */
  async retry(): Promise<boolean> {
    if (!this.#settings || !this.#deliverer) return false;
    await this.#deliverer.retry();
    return true;
  }

  #take(settings: NoticeSettings | undefined): void {
    this.#settings = settings;
    const { kinds, balanceBelowNano: below } = settings ?? {};
    this.#terms = kinds && { kinds, balanceBelow: below === undefined ? undefined : nanoUsd(BigInt(below)) };
  }
}

/** Identifies a receiver, for comparison; has secrets and is never shown. */
function receiverText(settings: NoticeSettings | undefined): string {
  return JSON.stringify(settings && [settings.url, ...settings.secrets].map((one) => one.reveal())) ?? "";
}

interface NoticesStatus {
  readonly receiver: string;
  readonly kinds: readonly NoticeKind[];
  /** Whether this gateway delivers; if not, another one that shares the store does. */
  readonly isLeader: boolean;
  readonly stopped: string | undefined;
}
