/** The notices of one process on a real store and a real receiver, at the test's time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Notices } from "../../../src/notices/notices.ts";
import type { Store } from "../../../src/store/contract.ts";
import { openEmbedded } from "../../../src/store/embedded/store.ts";
import { overlay } from "../../../src/store/overlay.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics, type Metrics } from "../../../src/telemetry/metrics.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { Secret } from "../../../src/values/secret.ts";
import { NOTICE_KINDS, type NoticeSettings } from "../../../src/values/settings.ts";
import { type Receiver, startReceiver, webhookSecret } from "../../e2e/money/notices/receiver.ts";
import { ManualClock } from "../settle/rig.ts";
import { makeAccount } from "../store/asks.ts";

export interface Rig {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly receiver: Receiver;
  readonly notices: Notices;
  readonly metrics: Metrics;
  readonly log: Record<string, unknown>[];
  /** An account with 1,000 nano-dollars. */
  readonly tag: AccountTag;
  /** Writes a notice about the account. */
  addNotice(ref: string): Promise<void>;
  /** The value of a series on the metrics page. */
  metric(series: string): Promise<number>;
}

export interface RigOptions {
  readonly settings?: Partial<NoticeSettings>;
  /** Replaces some calls of the store. */
  readonly calls?: Partial<Store>;
  /** Called before there is a store. */
  readonly early?: (notices: Notices) => void;
  /** Replaces the network. */
  readonly fetch?: typeof fetch;
}

export async function startRig(t: TestContext, options: RigOptions = {}): Promise<Rig> {
  const { settings, calls = {}, early, fetch: fetcher = fetch } = options;
  const dir = mkdtempSync(join(tmpdir(), "tollgate-notices-"));
  const clock = new ManualClock();
  const receiver = await startReceiver(webhookSecret("one"), { anyTime: true });
  const metrics = createMetrics();
  const log: Record<string, unknown>[] = [];
  const notices = new Notices({
    settings: settingsOf(receiver, settings),
    delivers: true,
    generation: () => 1,
    clock,
    metrics,
    log: createLog({
      level: "debug",
      destination: { write: (text: string) => void log.push(JSON.parse(text) as Record<string, unknown>) },
    }),
    random: (bytes) => Buffer.alloc(bytes, 7),
    jitter: () => 0.5,
    fetch: fetcher,
  });
  early?.(notices);
  const opened = openEmbedded(join(dir, "data"), () => clock.wallMs(), notices.writer);
  const store = overlay(opened, calls);
  const tag = await makeAccount(store, "Told");
  notices.start(store);
  t.after(async () => {
    await notices.stop();
    await receiver.close();
    await opened.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    clock,
    store,
    receiver,
    notices,
    metrics,
    log,
    tag,
    async addNotice(ref) {
      await store.addNotice(tag, { kind: "balance_low", ref, data: { balance: "1", below: "2" } });
    },
    async metric(series) {
      const { body } = await metrics.page();
      const line = body.split("\n").find((one) => one.startsWith(`tollgate_${series} `));
      return Number(line?.split(" ").at(-1));
    },
  };
}

export function settingsOf(receiver: Receiver, changes: Partial<NoticeSettings> = {}): NoticeSettings {
  return {
    url: new Secret(receiver.url),
    secrets: [new Secret(webhookSecret("one"))],
    kinds: new Set(NOTICE_KINDS),
    balanceBelowNano: 300,
    cardEndsWithinMs: 86_400_000,
    ...changes,
  };
}

/**
 * Runs turns of the event loop, which deliver real answers, and the timers due at this instant, until the condition
 * holds.
 */
export async function until(clock: ManualClock, isSo: () => boolean): Promise<void> {
  while (!isSo()) await clock.advance(0);
}

/** Enough turns for all that could still be sent. */
export async function rest(clock: ManualClock): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await clock.advance(0);
}
