/**
 * Helpers of the tests of shared money: gateways as separate processes over one store, and a simulated upstream in the
 * test's process. The tests act as operators and clients do, through the admin API and the public port.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { type Simulator, startSimulator } from "../../../../src/simulator/server.ts";
import { formatUsd, parseUsd } from "../../../../src/values/money.ts";
import { type ShownLine as JudgedLine, type Memo, shownLedger } from "../../../endurance/judge/line.ts";
import { baseConfig, type ConfigFile, type ConfigPlaces, changed, yamlOf } from "../../../rig/config.ts";
import { type GatewayProcess, spawnGateway } from "../../../rig/gateway.ts";
import type { MachineClock } from "../../../rig/machine-clock.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";

/** The admin token that `testConfig` configures. */
export const ADMIN_TOKEN = "test-admin-token";
/** Longest duration of a request in these tests. A hold lasts a minute longer. */
export const TOTAL_MS = 30_000;
export const HOLD_LIFE_MS = TOTAL_MS + 60_000;

/**
 * `testConfig` with: a model whose answers cost next to nothing compared with their hold, groups with one limit each,
 * short timeouts, a trusted front (so that failures of revoked keys are not counted against one address), and
 * idempotency keys for the tests that send one.
 */
function moneyConfig(places: ConfigPlaces): ConfigFile {
  const [whole, all] = [`${TOTAL_MS}ms`, ["chat-*"]];
  return changed(baseConfig(places), {
    trust_proxy: ["127.0.0.1/32"],
    idempotency: { enabled: true },
    upstreams: {
      "up-chat": {
        timeouts: { first_byte: whole, whole, idle: whole, total: whole },
        max_concurrency: 1000,
      },
    },
    models: {
      "chat-cheap": {
        plans: ["free", "pro"],
        price: { input: "1", cached_input: "0.001", output: "0.001" },
        context_tokens: 200000,
        routes: [{ upstream: "up-chat" }],
      },
    },
    groups: {
      elsewhere: { kind: "pay_per_use", models: ["other-family"] },
      "one-at-a-time": { kind: "pay_per_use", models: all, limits: { concurrency: 1 } },
      "five-at-a-time": { kind: "pay_per_use", models: all, limits: { concurrency: 5 } },
      "sixty-a-minute": { kind: "pay_per_use", models: all, limits: { requests_per_minute: 60 } },
    },
  });
}

/** What a client received. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** `error.cause` of a refusal. */
  readonly cause: string | undefined;
}

export interface MoneyAccount {
  readonly name: string;
  readonly keyId: string;
  readonly key: string;
}

/** Nano-dollars. */
export interface Funds {
  readonly balance: bigint;
  readonly held: bigint;
}

export interface ShownLine extends JudgedLine {
  readonly group: string;
  readonly usage: (Memo & { readonly hold?: string }) | null;
}

export interface ChatAsk {
  readonly model?: string;
  readonly maxTokens?: number;
  readonly stream?: boolean;
}

export interface Deployment {
  readonly simulator: Simulator;
  /** Only if the store is Redis. */
  readonly redis: TestRedis | undefined;
  readonly gateways: readonly GatewayProcess[];
  /** Starts one more process over the same store. */
  open(): Promise<GatewayProcess>;
  close(): Promise<void>;
}

/** Starts this many processes over one store: embedded (one process at a time) or Redis. */
export async function startDeployment(options: {
  store: "embedded" | "redis";
  gateways?: number;
  /** Redis uses the test's time; set it with `redis.setTime`. */
  faketime?: boolean;
  redisArgs?: readonly string[];
  /** The wall clocks of the processes, in no particular order; without them the machine's clock. */
  clocks?: readonly MachineClock[];
}): Promise<Deployment> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-money-"));
  const simulator = await startSimulator();
  const redis =
    options.store === "redis"
      ? await startRedis({ faketime: options.faketime ?? false, args: options.redisArgs ?? [] })
      : undefined;
  const config = moneyConfig({ upstreamUrl: simulator.url, dir, store: redis?.url });
  const gateways: GatewayProcess[] = [];
  let opened = 0;
  const open = async (): Promise<GatewayProcess> => {
    const number = opened++;
    // A journal belongs to one process. With the embedded store only one process runs at a time, and takes over the
    // last one's journal.
    const journal = redis ? `journal-${number + 1}` : "journal";
    const gateway = await spawnGateway(yamlOf(changed(config, { journal: { dir: join(dir, journal) } })), [], {
      env: options.clocks?.[number]?.env ?? {},
    });
    gateways.push(gateway);
    return gateway;
  };
  const close = async (): Promise<void> => {
    simulator.release();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await simulator.close();
    await redis?.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const starts = await Promise.allSettled(Array.from({ length: options.gateways ?? 1 }, open));
  const failed = starts.find((start) => start.status === "rejected");
  if (!failed) return { simulator, redis, gateways, open, close };
  await close();
  throw failed.reason;
}

/** Sends all requests of these tests; it opens as many connections as there are concurrent requests. */
const agent = new Agent({ keepAliveTimeout: 60_000, bodyTimeout: TOTAL_MS, headersTimeout: TOTAL_MS });

/** Sends a request as a client does. Resolves with the last byte. */
export async function ask(
  gateway: GatewayProcess,
  key: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const reply = await request(`${gateway.url}/v1/chat/completions`, {
    dispatcher: agent,
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body,
  });
  const text = await reply.body.text();
  const cause = reply.statusCode === 200 ? undefined : causeOf(text);
  return { status: reply.statusCode, headers: reply.headers, text, cause };
}

function causeOf(text: string): string | undefined {
  const { error } = JSON.parse(text) as { error?: { cause?: string } };
  return error?.cause;
}

/** The body of a chat request. */
export function chat({ model = "chat-1", maxTokens = 100, stream = false }: ChatAsk = {}): string {
  return JSON.stringify({
    model,
    max_tokens: maxTokens,
    messages: [{ role: "user", content: "Say something." }],
    // `null` is as long as `true`, so whole and streamed requests have the same size, hence the same hold.
    stream: stream ? true : null,
    stream_options: { include_usage: stream ? true : null },
  });
}

/** Calls the admin API. @throws Error with the answer if it is not a success. */
export async function admin<T>(gateway: GatewayProcess, method: string, path: string, body?: object): Promise<T> {
  const reply = await request(`${gateway.adminUrl}/admin/v1${path}`, {
    dispatcher: agent,
    method: method as "GET",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, ...(body ? { "content-type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : null,
  });
  const text = await reply.body.text();
  if (reply.statusCode >= 300) throw new Error(`${method} ${path}: ${reply.statusCode} ${text}`);
  return JSON.parse(text) as T;
}

let accounts = 0;

/** Creates an account with funds (nano-dollars) and one key. */
export async function openAccount(
  gateway: GatewayProcess,
  { funds, group = "money" }: { funds: bigint; group?: string },
): Promise<MoneyAccount> {
  accounts += 1;
  const name = `account-${accounts}`;
  await admin(gateway, "POST", "/accounts", { name });
  if (funds > 0n) await admin(gateway, "POST", `/accounts/${name}/topups`, { usd: formatUsd(funds), id: "funds" });
  return { name, ...(await newKey(gateway, name, group)) };
}

/** Adds another key to an account. */
export async function newKey(
  gateway: GatewayProcess,
  name: string,
  group: string,
): Promise<Pick<MoneyAccount, "key" | "keyId">> {
  const made = await admin<{ id: string; key: string }>(gateway, "POST", `/accounts/${name}/keys`, { group });
  return { keyId: made.id, key: made.key };
}

export async function fundsOf(gateway: GatewayProcess, name: string): Promise<Funds> {
  const shown = await admin<{ balance_usd: string; held_usd: string }>(gateway, "GET", `/accounts/${name}`);
  return { balance: nano(shown.balance_usd), held: nano(shown.held_usd) };
}

/** The whole ledger of an account, oldest line first. */
export function ledgerOf(gateway: GatewayProcess, name: string): Promise<readonly ShownLine[]> {
  return shownLedger<ShownLine>(name, (path) => admin(gateway, "GET", path));
}

/** What this request holds if funds are plenty, and what it costs: measured once on a separate account. */
export async function priceOf(gateway: GatewayProcess, body: string): Promise<{ hold: bigint; cost: bigint }> {
  const rich = await openAccount(gateway, { funds: 1_000_000_000n });
  const answer = await ask(gateway, rich.key, body);
  if (answer.status !== 200) throw new Error(answer.text);
  const line = await untilCharged(gateway, rich.name, 1);
  return { hold: BigInt(line.usage?.hold ?? "-1"), cost: nano(line.usd) };
}

/** Settlement is not on the client's path: polls until the n-th charge is in the ledger. @returns that line. */
export async function untilCharged(gateway: GatewayProcess, name: string, count: number): Promise<ShownLine> {
  for (;;) {
    const lines = (await ledgerOf(gateway, name)).filter((line) => line.kind === "usage");
    const last = lines[count - 1];
    if (last) return last;
  }
}

/** Polls until nothing is held; a store that was just restarted may not have answered yet. */
export async function untilNothingHeld(gateway: GatewayProcess, name: string): Promise<Funds> {
  for (;;) {
    const funds = await fundsOf(gateway, name).catch((error: unknown) => {
      if (!String(error).includes("store_unavailable")) throw error;
    });
    if (funds?.held === 0n) return funds;
  }
}

/** Formats an amount as the admin API does. */
export function nano(usd: string): bigint {
  const amount = parseUsd(usd, { signed: true });
  if (amount === undefined) throw new Error(`not an amount: ${usd}`);
  return amount;
}
