/** The forms of the store under test, with a clock that the test sets where possible. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "../../../src/store/contract.ts";
import type { NoticeWriter } from "../../../src/store/notices.ts";
import { type OpenOptions, openStore } from "../../../src/store/open.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { Secret } from "../../../src/values/secret.ts";
import { NOTICE_KINDS } from "../../../src/values/settings.ts";
import { startRedis, startRedisCluster, startSentinel, type TestRedis } from "../../rig/redis.ts";
import type { Bench } from "./contract.ts";

const START_MS = Date.UTC(2026, 5, 1, 12);

/** For tests that are not about time: a step may take as long as a busy machine needs, and is not retried. */
export const PATIENT = { commandTimeoutMs: 20_000, stepTimeoutMs: 40_000 } as const;

/** Writes notices of everything, and of balances below 300. */
export const NOTICES: NoticeWriter = {
  terms: () => ({ kinds: new Set(NOTICE_KINDS), balanceBelow: nanoUsd(300n) }),
  noted: () => undefined,
};

/** @param options PATIENT for tests that are not about time, unless given. */
export const openUrl = (redis: TestRedis, options: OpenOptions = PATIENT): Promise<Store> =>
  openStore({ kind: "redis", url: new Secret(redis.url) }, options);

export async function embeddedBench(): Promise<Bench & { readonly dir: string }> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-embedded-"));
  let nowMs = START_MS;
  // Without gathering, since a test that awaits each of a thousand settlements would wait for the gathering time each time.
  const options = { now: () => nowMs, notices: NOTICES, gatherMs: 0 };
  const store = await openStore({ kind: "embedded", dir: join(dir, "data") }, options);
  return {
    dir: join(dir, "data"),
    store,
    nowMs: () => nowMs,
    setTime(epochMs) {
      nowMs = epochMs;
    },
    async close() {
      await store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * A real Redis on the test's clock (libfaketime). @param user name and password, `name:password@`, for a server with these
 * further arguments.
 */
export async function redisBench(
  user = "",
  args: readonly string[] = [],
): Promise<Bench & { readonly redis: TestRedis }> {
  const redis = await startRedis({ faketime: true, args });
  let nowMs = START_MS;
  redis.setTime(nowMs);
  const url = new Secret(`redis://${user}127.0.0.1:${redis.port}`);
  const store = await openStore({ kind: "redis", url }, { ...PATIENT, notices: NOTICES });
  return {
    redis,
    store,
    nowMs: () => nowMs,
    setTime(epochMs) {
      nowMs = epochMs;
      redis.setTime(epochMs);
    },
    async close() {
      await store.close();
      await redis.stop();
    },
  };
}

const noClock = (): never => {
  throw new Error("this form uses the machine's clock");
};

export async function clusterBench(): Promise<Bench> {
  const cluster = await startRedisCluster();
  const { nodes } = cluster;
  const none = { username: undefined, password: undefined };
  const store = await openStore(
    { kind: "redis-cluster", nodes, tls: undefined, ...none },
    { ...PATIENT, notices: NOTICES },
  );
  const close = async () => {
    await store.close();
    await cluster.stop();
  };
  return { store, nowMs: Date.now, setTime: noClock, close };
}

export async function sentinelBench(): Promise<Bench> {
  const primary = await startRedis();
  const sentinel = await startSentinel("tollgate", primary);
  const sentinels = [{ host: "127.0.0.1", port: sentinel.port }];
  const none = { username: undefined, password: undefined, sentinelUsername: undefined, sentinelPassword: undefined };
  const store = await openStore(
    { kind: "redis-sentinel", sentinels, name: "tollgate", tls: undefined, ...none },
    { ...PATIENT, notices: NOTICES },
  );
  const close = async () => {
    await store.close();
    await sentinel.stop();
    await primary.stop();
  };
  return { store, nowMs: Date.now, setTime: noClock, close };
}
