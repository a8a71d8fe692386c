/**
 * Reloads under load, with workers killed, stopped and drained at random, and with every startup secret replaced by a
 * wrong one. Each reload sets another price, so the ledger line of a request shows which configuration admitted it;
 * that configuration must have been in force at some moment between the request's sending and its answer.
 */

import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { type Store, StoreError } from "../../../../src/store/contract.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { parseUsd } from "../../../../src/values/money.ts";
import { printRequestId, type RequestId } from "../../../../src/values/request-id.ts";
import { type Finding, wordsOf } from "../../../endurance/judge/findings.ts";
import { judge, NOTHING, type SeenRequest, SOMETHING } from "../../../endurance/judge/judge.ts";
import { lineOf } from "../../../endurance/judge/line.ts";
import { type Changes, each } from "../../../rig/config.ts";
import { freePorts } from "../../../rig/ports.ts";
import { seeded } from "../../../unit/settle/rig.ts";
import { bodyOf } from "../../protocol/whole/asking.ts";
import { lines as logLines, metricSum, metricsPage, pricedAt, untilAllServe, workersScene } from "./rig.ts";

export interface EnduranceOptions {
  readonly workers: number;
  /** Accepted reloads after which the run ends. */
  readonly reloads: number;
  readonly clients: number;
  readonly seed: number;
  /** Called with events, as they happen. */
  readonly log?: (what: string) => void;
}

export interface EnduranceFigures {
  readonly seconds: number;
  readonly reloads: number;
  readonly kills: number;
  readonly stops: number;
  readonly drains: number;
  /** Workers that were killed by their parent as stuck. */
  readonly stuck: number;
  readonly answered: number;
  /** Requests whose connection ended with its worker. */
  readonly cut: number;
  /** Requests that found no worker, because all were down. */
  readonly refusedConnections: number;
  /** Answers other than 200, by cause. */
  readonly refused: Readonly<Record<string, number>>;
  /** Different prices among the charges. */
  readonly prices: number;
  readonly slowestReloadMs: number;
  /** From here on everything must be zero. */
  readonly refusedReloads: number;
  /** Requests that were neither answered nor cut within a minute. */
  readonly hung: number;
  /** The findings of the judge; must be empty. */
  readonly findings: readonly Finding[];
}

const PASSWORD = "the-password-of-the-start";
const HUNG_MS = 60_000;
const RELOAD_MS = [20, 300] as const;
const FAULT_MS = [300, 2_000] as const;
const STOP_MS = [100, 2_500] as const;
const POLL_MS = 100;
const PAGE = 200;
const LATE_MAX = 100;

interface Asked {
  readonly id: string;
  readonly sentMs: number;
  readonly endMs: number;
}

/** @param after runs its argument when all is over, even after a failure. */
export async function reloadEndurance(
  after: (undo: () => Promise<void>) => void,
  options: EnduranceOptions,
): Promise<EnduranceFigures> {
  const { workers, reloads, clients, seed, log = () => {} } = options;
  const random = seeded(seed);
  const between = ([least, most]: readonly [number, number]) => least + random() * (most - least);
  const scene = await workersScene({ after }, { password: PASSWORD, usd: "1000" });
  const simulator = await startSimulator({ uniqueIds: true, pace: { betweenMs: 5 } });
  after(() => simulator.close());
  const [port = 0] = await freePorts(1);
  const store = join(scene.dir, "store");
  writeFileSync(store, scene.storeUrl);

  /** When the text of a generation was about to be written, and when a later one was reported as in force. */
  const issuedMs: number[] = [0];
  const overMs: number[] = [];
  const byDigest = new Map<string, number>();
  let slowestReloadMs = 0;
  const serving = new Set<number>();
  const onLine = (line: string) => {
    if (!line.includes('"event":"')) return;
    const { event, worker, sha256 } = JSON.parse(line) as { event: string; worker: number; sha256: string };
    if (event.startsWith("worker_")) log(line);
    if (event === "worker_serves") serving.add(worker);
    if (event === "worker_ended") serving.delete(worker);
    if (event !== "config_reloaded") return;
    const index = byDigest.get(sha256) as number;
    const nowMs = performance.now();
    slowestReloadMs = Math.max(slowestReloadMs, nowMs - (issuedMs[index] as number));
    for (let older = index - 1; older >= 0 && overMs[older] === undefined; older--) overMs[older] = nowMs;
  };
  const change: Changes = {
    overload: { loop_delay: "10m" },
    listen: `127.0.0.1:${port}`,
    store: `file:${store}`,
    upstreams: each(["up-chat", "up-messages", "up-responses"], { base_url: simulator.url }),
  };
  const gateway = await scene.start(workers, change, { onLine });
  const startedMs = performance.now();

  let isOver = false;
  const accepted = async () => metricSum(await metricsPage(gateway), "tollgate_config_reloads_total", "accepted");
  const reloading = async (): Promise<void> => {
    for (let index = 1; !isOver; index++) {
      const text = scene.text(workers, { ...change, ...pricedAt({ input: priceOf(index) }) });
      byDigest.set(createHash("sha256").update(text).digest("hex").slice(0, 16), index);
      issuedMs[index] = performance.now();
      writeFileSync(`${gateway.file}.new`, text);
      renameSync(`${gateway.file}.new`, gateway.file);
      writeFileSync(`${store}.new`, scene.storeUrl.replace(PASSWORD, `wrong-${index}`));
      renameSync(`${store}.new`, store);
      gateway.child.kill("SIGHUP");
      await pause(between(RELOAD_MS));
      if (index % 20 === 0 && (await accepted()) >= reloads) isOver = true;
    }
  };

  const faults = { kills: 0, stops: 0, drains: 0 };
  const stopped = new Set<number>();
  const faulting = async (): Promise<void> => {
    while (!isOver) {
      await pause(between(FAULT_MS));
      // Mostly one after the other, so that requests are answered as well; sometimes an additional one.
      const least = random() < 0.85 ? workers : 0;
      while (serving.size < least && !isOver) await pause(POLL_MS);
      const pids = childrenOf(gateway.child.pid as number);
      const pid = pids[Math.floor(random() * pids.length)];
      const chance = random();
      if (pid === undefined) continue;
      if (chance < 0.6) {
        faults.kills++;
        signal(pid, "SIGKILL");
      } else if (chance < 0.8) {
        faults.drains++;
        signal(pid, "SIGTERM");
      } else {
        faults.stops++;
        stopped.add(pid);
        signal(pid, "SIGSTOP");
        void pause(between(STOP_MS)).then(() => signal(pid, "SIGCONT"));
      }
      log(
        `${Math.round(performance.now() - startedMs)} ms: ${chance < 0.6 ? "kill" : chance < 0.8 ? "drain" : "stop"} ${pid}`,
      );
    }
  };

  const asked: Asked[] = [];
  const refused: Record<string, number> = {};
  const refusals: SeenRequest[] = [];
  let cut = 0;
  let refusedConnections = 0;
  let hung = 0;
  const client = async (number: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const stream = (turn + number) % 3 === 0;
      const sentMs = performance.now();
      const deadline = AbortSignal.timeout(HUNG_MS);
      try {
        const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${scene.account.key}`,
            "content-type": "application/json",
            ...(turn % 4 === 0 ? { connection: "close" } : {}),
          },
          body: JSON.stringify(bodyOf("chat", stream ? { stream: true } : {})),
          signal: deadline,
        });
        const text = await reply.text();
        const id = reply.headers.get("x-request-id") as string;
        if (reply.status === 200) asked.push({ id, sentMs, endMs: performance.now() });
        else {
          const cause = String((JSON.parse(text) as { error: { cause: string } }).error.cause);
          refused[cause] = (refused[cause] ?? 0) + 1;
          refusals.push({ id, owed: NOTHING });
        }
      } catch (error) {
        if (deadline.aborted) {
          hung++;
          log(`client ${number} has waited since ${Math.round(sentMs - startedMs)} ms`);
        } else if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ECONNREFUSED")
          refusedConnections++;
        else cut++;
        // No worker may be there; the speed of the client is not the subject.
        await pause(20);
      }
    }
  };

  await Promise.all([reloading(), faulting(), ...Array.from({ length: clients }, (_, number) => client(number))]);
  for (const pid of stopped) signal(pid, "SIGCONT");
  await untilAllServe(gateway);
  const page = await metricsPage(gateway);
  const seconds = (performance.now() - startedMs) / 1_000;
  const status = await gateway.stop("SIGTERM");
  if (status !== 0) throw new Error(`the gateway ended with ${status}:\n${gateway.output()}`);

  const ledger = await scene.withStore((opened) => wholeLedger(opened, scene.account.tag));
  const lines = ledger.map((line) => lineOf(line, referenceOf(line)));
  const usage = lines.filter(({ kind }) => kind === "usage");
  /** Input prices that were in force at some moment between a request's sending and its answer. */
  const pricesOf = ({ sentMs, endMs }: Asked): ReadonlySet<bigint> => {
    const inForce = issuedMs.keys().filter((index) => {
      return (issuedMs[index] as number) <= endMs && (overMs[index] ?? Number.POSITIVE_INFINITY) >= sentMs;
    });
    return new Set(inForce.map((index) => parseUsd(priceOf(index)) as bigint));
  };
  const name = scene.account.tag;
  const seen = asked.map((one) => ({ id: one.id, account: name, owed: SOMETHING, inputPrices: pricesOf(one) }));
  const findings = judge({
    requests: [...seen, ...refusals],
    // Requests whose connection ended with its worker may have been charged.
    unnamed: cut + hung,
    payments: [],
    accounts: [{ name, lines }],
  });
  return {
    seconds: Math.round(seconds),
    reloads: metricSum(page, "tollgate_config_reloads_total", "accepted"),
    ...faults,
    stuck: metricSum(page, "tollgate_worker_ends_total", "stuck"),
    answered: asked.length,
    cut,
    refusedConnections,
    refused,
    prices: new Set(usage.map(({ bill }) => bill?.inputPrice)).size,
    slowestReloadMs: Math.round(slowestReloadMs),
    refusedReloads:
      metricSum(page, "tollgate_config_reloads_total", "refused") +
      logLines(gateway).filter(({ event, worker }) => event === "config_refused" && worker !== undefined).length,
    hung,
    findings,
  };
}

/** What must be zero and is not, and the judge's findings. */
export function faultsOf({ refusedReloads, hung, findings }: EnduranceFigures): string[] {
  const counts = Object.entries({ refusedReloads, hung }).filter(([, count]) => count !== 0);
  return [...counts.map(([name, count]) => `${name}: ${count}`), ...wordsOf(findings)];
}

/** All lines, oldest first, however busy the machine is: a read that times out is repeated. */
async function wholeLedger(store: Store, tag: AccountTag): Promise<LedgerLine[]> {
  const all: LedgerLine[] = [];
  for (let late = 0; ; ) {
    try {
      const some = await store.readLedger(tag, all.at(-1)?.seq ?? 0, PAGE);
      if (some.length === 0) return all;
      all.push(...some);
    } catch (error) {
      if (!(error instanceof StoreError) || ++late > LATE_MAX) throw error;
    }
  }
}

/** US dollars per million input tokens. */
function priceOf(index: number): string {
  return (1 + index / 1_000).toFixed(3);
}

/** The id by which a client knows the request of a charge. */
function referenceOf({ kind, reference }: LedgerLine): string {
  return kind === "usage" || kind === "absorbed" ? printRequestId(reference as RequestId) : reference;
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended in the meantime.
  }
}
