/** A gateway of several processes over a real Redis, in front of a model server that the test plays by hand. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Store } from "../../../../src/store/contract.ts";
import { openStore } from "../../../../src/store/open.ts";
import type { AccountState } from "../../../../src/store/records.ts";
import { baseConfig, type Changes, changed, each, yamlOf } from "../../../rig/config.ts";
import {
  type GatewayProcess,
  makeAccount,
  type SpawnWorld,
  settingsOf,
  spawnGateway,
  type TestAccount,
} from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import {
  CHAT_END,
  chatFrame,
  chatStream,
  type HandRequest,
  type HandUpstream,
  type ReadStream,
  startHandUpstream,
} from "../fronts/fronts.ts";

/** 10 tokens in at 1 USD and 5 out at 10 USD per million. */
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
export const CHARGE_NANO_USD = 60_000n;
const WHOLE = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "chat-1",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: USAGE,
};
const USAGE_FRAME = `data: ${JSON.stringify({ ...WHOLE, object: "chat.completion.chunk", choices: [] })}\n\n`;

interface SpawnOptions extends SpawnWorld {
  readonly nodeArgs?: readonly string[];
}

export interface Scene {
  readonly dir: string;
  readonly account: TestAccount;
  readonly upstream: HandUpstream;
  /** The address of the store, with its password. */
  readonly storeUrl: string;
  /** The configuration text that `start` writes. */
  text(workers: number, change?: Changes): string;
  /** Starts a gateway with this many workers; the journal's folder is the same each time. */
  start(workers: number, change?: Changes, how?: SpawnOptions): Promise<GatewayProcess>;
  state(): Promise<AccountState>;
  /** Runs a function on the store, independently of the gateway. */
  withStore<T>(work: (store: Store) => Promise<T>): Promise<T>;
}

/**
 * @param options.password of the store; none by default.
 * @param options.usd the account's balance.
 */
export async function workersScene(
  t: { after(undo: () => Promise<void>): void },
  { password, usd }: { password?: string; usd?: string } = {},
): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-workers-"));
  const upstream = await startHandUpstream(WHOLE);
  const redis = await startRedis();
  if (password !== undefined) await redis.command("CONFIG", "SET", "requirepass", password);
  const storeUrl = password === undefined ? redis.url : redis.url.replace("//", `//:${password}@`);
  const config = baseConfig({ upstreamUrl: upstream.url, dir, store: storeUrl });
  const text: Scene["text"] = (workers, change = {}) => {
    const own: Changes = { workers, drain: { lame_duck: "3s", deadline: "60s" }, log: { level: "info" } };
    return yamlOf(changed(changed(config, own), change));
  };
  const gateways: GatewayProcess[] = [];
  t.after(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop("SIGKILL")));
    await redis.stop();
    await upstream.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const withStore = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStore(settingsOf(yamlOf(config)).store, PATIENT);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const account = await withStore((store) => makeAccount(store, usd === undefined ? {} : { usd }));
  return {
    dir,
    account,
    upstream,
    storeUrl,
    text,
    async start(workers, change, { nodeArgs = [], ...world } = {}) {
      const gateway = await spawnGateway(text(workers, change), nodeArgs, world);
      gateways.push(gateway);
      return gateway;
    },
    withStore,
    async state() {
      const state = await withStore((store) => store.inspect(account.tag));
      assert.ok(state);
      return state;
    },
  };
}

export interface OpenStream {
  readonly reader: ReadStream;
  readonly request: HandRequest;
}

/** Opens streams that have sent two words each, so that each has its checkpoint. */
export async function openStreams({ upstream, account }: Scene, url: string, count: number): Promise<OpenStream[]> {
  const streams: OpenStream[] = [];
  for (let i = 0; i < count; i++) {
    const asked = chatStream(url, account.key);
    const request = await upstream.next();
    request.send(chatFrame("first. "));
    const reader = await asked;
    assert.equal(reader.status, 200);
    await reader.until("first.");
    request.send(chatFrame("second. "));
    await reader.until("second.");
    streams.push({ reader, request });
  }
  return streams;
}

/** All models of the scene at this price. */
export function pricedAt(price: { readonly input?: string; readonly output?: string }): Changes {
  const { models } = baseConfig({ upstreamUrl: "", dir: "" });
  return { models: each(Object.keys(models), { price }) };
}

/** Ends a stream as a model server does. */
export function finish({ request }: Pick<OpenStream, "request">): void {
  request.send(chatFrame("", "stop") + USAGE_FRAME + CHAT_END);
  request.end();
}

/** The process ids of the workers by their number, from the log; the newest of each. */
export function workerPids(gateway: GatewayProcess): Map<number, number> {
  const serving = lines(gateway).filter(({ msg }) => msg === "a worker serves");
  return new Map(serving.map(({ worker, pid }) => [Number(worker), Number(pid)]));
}

/** The log so far. */
export function lines(gateway: GatewayProcess): Record<string, unknown>[] {
  return gateway
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** The delay between two polls: polling without a delay takes the CPU from the process that is awaited. */
export function aMoment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 60));
}

/** Resolves when none of these processes exists any more. */
export async function gone(pids: Iterable<number>): Promise<void> {
  for (const pid of pids) {
    while (isThere(pid)) await aMoment();
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export async function metricsPage({ adminUrl }: GatewayProcess): Promise<string> {
  const reply = await fetch(`${adminUrl}/metrics`, { headers: { authorization: "Bearer test-admin-token" } });
  assert.equal(reply.status, 200);
  return reply.text();
}

/** The sum of a metric's series whose labels contain `part`. */
export function metricSum(page: string, name: string, part = ""): number {
  const found = page.split("\n").filter((line) => /^[a-z_]+/.exec(line)?.[0] === name && line.includes(part));
  return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

export interface Readiness {
  readonly ready: boolean;
  readonly reasons: string[];
  readonly notes: string[];
}

/** Polls until the answer has this status; there is no bound on when a signal reaches a process. */
export async function untilStatus(url: string, status: number): Promise<Readiness> {
  return untilReadiness(url, (_, got) => got === status);
}

/** Polls until readiness is as wanted. */
export async function untilReadiness(
  url: string,
  isWanted: (readiness: Readiness, status: number) => boolean,
): Promise<Readiness> {
  for (;;) {
    const reply = await fetch(url);
    const readiness = (await reply.json()) as Readiness;
    if (isWanted(readiness, reply.status)) return readiness;
    await aMoment();
  }
}

/** Polls until every worker serves and readiness has no reasons. */
export async function untilAllServe(gateway: GatewayProcess): Promise<void> {
  await untilReadiness(`${gateway.adminUrl}/readyz`, ({ ready, notes }) => ready && notes.length === 0);
  // The log may lag: a worker that has ended according to it must serve again according to it.
  const newest = () =>
    new Map(
      lines(gateway)
        .map(({ msg, worker }) => [worker, msg] as const)
        .filter(isOfLife),
    );
  while ([...newest().values()].includes(ENDED)) await aMoment();
}

const ENDED = "a worker has ended";
const isOfLife = ([worker, msg]: readonly [unknown, unknown]): boolean =>
  worker !== undefined && (msg === ENDED || msg === "a worker serves");
