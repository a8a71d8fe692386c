/** A gateway on a real Redis with a fault proxy in between, and the assertions of the outage tests. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { StoreError } from "../../../../src/store/contract.ts";
import type { AccountState } from "../../../../src/store/records.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type FaultProxy, startFaultProxy } from "../../../rig/fault-proxy.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis, type TestRedisOptions } from "../../../rig/redis.ts";
import { stopwatch } from "../../../rig/stopwatch.ts";
import { ask, errorOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";

/**
 * docs/failure-model.md invariant 28, plus the pause between two timers; `assertRefused` adds the delay of the machine
 * itself.
 */
export const REFUSED_WITHIN_MS = 520;
/** Invariant 28: everything is settled within this time after the store is back. */
const SETTLED_WITHIN_MS = 5_000;

const CLOSED = "the store answers in time again";
const OPENED = "the store does not answer in time; new requests are refused until it does";

export interface Scene {
  readonly here: GatewayHere;
  readonly redis: TestRedis;
  readonly proxy: FaultProxy;
  readonly account: TestAccount;
  /** Resolves when the breaker has opened, or closed, for the n-th time. */
  opened(times?: number): Promise<void>;
  closed(times?: number): Promise<void>;
  /** Sends one request and reads its body. @returns its status, and the cause of a refusal. */
  status(protocol?: Protocol): Promise<string>;
  metric(name: string): Promise<number>;
}

export async function scene(
  t: TestContext,
  options: Parameters<typeof startGatewayHere>[0] & { redis?: TestRedisOptions; usd?: string } = {},
): Promise<Scene> {
  const redis = await startRedis(options.redis);
  const proxy = await startFaultProxy(redis.port);
  const here = await startGatewayHere({ ...options, store: proxy.url });
  t.after(async () => {
    await here.close();
    await proxy.close();
    await redis.stop();
  });
  const account = await here.account({ usd: options.usd ?? "1000" });
  // `here.log` has the line already when `logged` reads it.
  const times = async (message: string, count: number) => {
    await here.logged(() => here.log.filter(({ msg }) => msg === message).length >= count);
  };
  return {
    here,
    redis,
    proxy,
    account,
    opened: (count = 1) => times(OPENED, count),
    closed: (count = 1) => times(CLOSED, count),
    async status(protocol = "chat") {
      const reply = await ask(here, protocol, account.key);
      if (reply.status === 200) await reply.arrayBuffer();
      return reply.status === 200 ? "200" : `${reply.status} ${(await errorOf(reply)).cause}`;
    },
    async metric(name) {
      const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
      return Number(new RegExp(`^tollgate_${name} (\\S+)$`, "m").exec(page)?.[1]);
    },
  };
}

/** Sends this many requests at once, on all protocols, and asserts that each gets 503 `store_unavailable` in time. */
export async function assertRefused(scene: Scene, count: number, withinMs = REFUSED_WITHIN_MS) {
  // The time of requests that need no store is the machine's and not the outage's; the machine may become busy in
  // between.
  const beforeMs = await busyMs(scene, count);
  const protocols = Array.from({ length: count }, (_, i) => PROTOCOL_LIST[i % 3] as Protocol);
  const tookMs = await Promise.all(
    protocols.map(async (protocol) => {
      const timed = stopwatch();
      const reply = await ask(scene.here, protocol, scene.account.key);
      const refusedMs = timed();
      assert.equal(reply.status, 503);
      assert.equal(reply.headers.get("retry-after"), "2");
      const error = await errorOf(reply);
      assert.equal(error.cause, "store_unavailable");
      return refusedMs;
    }),
  );
  const limitMs = withinMs + 8 * Math.max(beforeMs, await busyMs(scene, count));
  const slowestMs = Math.max(...tookMs);
  assert.ok(slowestMs < limitMs, `refused after ${slowestMs} ms of ${limitMs}`);
}

/** The duration of the slowest of this many concurrent requests that need no store. */
async function busyMs({ here, account }: Scene, count: number): Promise<number> {
  const tookMs = await Promise.all(
    Array.from({ length: count }, async () => {
      const startMs = performance.now();
      assert.equal((await ask(here, "chat", account.key, {}, { path: "/v1/nothing" })).status, 404);
      return performance.now() - startMs;
    }),
  );
  return Math.max(...tookMs);
}

/** Waits, within the promised time, until the account has no open request; then its ledger must be consistent. */
export async function settledState(
  { here, account }: Pick<Scene, "here" | "account">,
  served: number,
): Promise<AccountState> {
  const timed = stopwatch();
  for (;;) {
    // A connection that does not reply is closed after two seconds.
    const state = await here.store.inspect(account.tag).catch((error: unknown) => {
      assert.ok(error instanceof StoreError && timed() < SETTLED_WITHIN_MS, String(error));
    });
    if (state === undefined) continue;
    const usage = state.ledger.filter(({ kind }) => kind === "usage");
    if (state.account.held === 0n && state.inFlight === 0 && usage.length >= served) {
      assert.equal(usage.length, served, "one line for each request that was served");
      assert.equal(new Set(usage.map(({ reference }) => reference)).size, served);
      const spent = usage.reduce((sum, { amount }) => sum + amount, 0n);
      const funds = state.ledger.find(({ kind }) => kind === "topup")?.amount ?? 0n;
      assert.equal(state.account.balance, funds - spent);
      assert.deepEqual(state.holds, []);
      return state;
    }
    const left = { held: state.account.held, inFlight: state.inFlight, usage: usage.length, served };
    assert.ok(
      timed() < SETTLED_WITHIN_MS,
      `not settled in time: ${JSON.stringify(left, (_, v) => (typeof v === "bigint" ? String(v) : v))}`,
    );
  }
}
