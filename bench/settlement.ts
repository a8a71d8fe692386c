/**
 * `node bench/settlement.ts [--rounds N] [--operations N]`: the time that accounting adds to a request. Admission and settlement one after
 * the other on each store, and the journal between them; rounds in turn. How to read the figures: docs/benchmarks.md.
 */
import { closeSync, fdatasync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { openJournal } from "../src/settle/journal/open.ts";
import type { Store } from "../src/store/contract.ts";
import { openStore } from "../src/store/open.ts";
import type { SettleAsk } from "../src/store/settlement.ts";
import { Secret } from "../src/values/secret.ts";
import { systemClock } from "../src/values/time.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { startRedis } from "../test/rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "../test/unit/store/asks.ts";
import { machineFacts } from "./machine.ts";

const WARM_UP_OPERATIONS = 500;
const JOURNAL_BYTES_MAX = 256 * 1_024 * 1_024;
const RECORD_BYTES = 200;

const { values } = programOptions({
  options: { rounds: { type: "string", default: "5" }, operations: { type: "string", default: "2000" } },
});
const rounds = Number(values.rounds);
const operations = Number(values.operations);

/** Times of one round in milliseconds, by operation. */
type Times = ReadonlyMap<string, number[]>;

interface Subject {
  readonly name: string;
  run(count: number): Promise<Times>;
  close(): Promise<void>;
}

async function timed<T>(into: number[], work: () => T | Promise<T>): Promise<T> {
  const startMs = performance.now();
  const answer = await work();
  into.push(performance.now() - startMs);
  return answer;
}

/** One account, one request after the other: the minimum time of admission and settlement. */
async function storeSubject(name: string, store: Store, close: () => Promise<void>): Promise<Subject> {
  const tag = await makeAccount(store, "Bench", { funds: 1_000_000_000n });
  let number = 0;
  async function run(count: number): Promise<Times> {
    const admit: number[] = [];
    const settle: number[] = [];
    for (let i = 0; i < count; i++) {
      const ask = admitAsk({ tag, requestId: ridOf(++number) });
      const permit = admitted(await timed(admit, () => store.admit(ask)));
      await timed(settle, () => store.settle(settleAsk(ask, permit, { amount: 1n })));
    }
    return new Map([
      ["admit", admit],
      ["settle", settle],
    ]);
  }
  return {
    name,
    run,
    async close() {
      await store.close();
      await close();
    },
  };
}

async function redisSubject(name: string, args: readonly string[]): Promise<Subject> {
  const redis = await startRedis({ args });
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) });
  return storeSubject(name, store, () => redis.stop());
}

async function embeddedSubject(): Promise<Subject> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-embedded-"));
  const store = await openStore({ kind: "embedded", dir });
  return storeSubject("embedded", store, async () => rmSync(dir, { recursive: true }));
}

/** A complete charge: OPEN, FINAL until it is durable, ACK. */
async function journalSubject(fsync: "group" | "always"): Promise<Subject> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-journal-"));
  const settings = { dir, fsync, bytesMax: JOURNAL_BYTES_MAX };
  const { journal } = await openJournal(settings, { clock: systemClock, alarm: (message) => console.error(message) });
  let number = 0;
  return {
    name: `journal, ${fsync}`,
    async run(count) {
      const final: number[] = [];
      for (let i = 0; i < count; i++) {
        const ask = chargeOf(++number);
        journal.open({ voided: { ...ask, voided: true, amount: ask.absorbed }, hold: ask.amount });
        await timed(final, () => journal.final(ask));
        journal.ack(ask.requestId, "settled");
      }
      return new Map([["FINAL durable", final]]);
    },
    async close() {
      await journal.close();
      rmSync(dir, { recursive: true });
    },
  };
}

function chargeOf(number: number): SettleAsk {
  const ask = admitAsk({ tag: "Bench00000" as SettleAsk["tag"], requestId: ridOf(number) });
  const permit = { storeTimeMs: Date.now(), group: "big", keyId: "key_bench", entitlement: undefined };
  return settleAsk(ask, permit, { amount: 1n });
}

/** The time of the disk itself, for comparison. */
function diskSubject(): Subject {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-disk-"));
  const file = openSync(join(dir, "file"), "w");
  const record = Buffer.alloc(RECORD_BYTES);
  const sync = promisify(fdatasync);
  return {
    name: "the disk alone",
    async run(count) {
      const write: number[] = [];
      const synced: number[] = [];
      for (let i = 0; i < count; i++) {
        await timed(write, () => writeSync(file, record));
        await timed(synced, () => sync(file));
      }
      return new Map([
        [`write of ${RECORD_BYTES} bytes`, write],
        ["fdatasync", synced],
      ]);
    },
    async close() {
      closeSync(file);
      rmSync(dir, { recursive: true });
    },
  };
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function median(of: readonly number[]): number {
  return quantile(
    of.toSorted((a, b) => a - b),
    0.5,
  );
}

const subjects: Subject[] = [];
try {
  subjects.push(await embeddedSubject());
  subjects.push(await redisSubject("redis, no AOF", []));
  for (const fsync of ["everysec", "always"]) {
    subjects.push(await redisSubject(`redis, AOF ${fsync}`, ["--appendonly", "yes", "--appendfsync", fsync]));
  }
  for (const fsync of ["group", "always"] as const) subjects.push(await journalSubject(fsync));
  subjects.push(diskSubject());

  const seen = new Map<string, { p50: number[]; p99: number[] }>();
  for (let round = -1; round < rounds; round++) {
    for (const subject of subjects) {
      const times = await subject.run(round < 0 ? Math.min(WARM_UP_OPERATIONS, operations) : operations);
      if (round < 0) continue;
      for (const [what, one] of times) {
        const name = `| ${subject.name} | ${what}`;
        const sorted = one.toSorted((a, b) => a - b);
        const figures = seen.get(name) ?? { p50: [], p99: [] };
        figures.p50.push(quantile(sorted, 0.5));
        figures.p99.push(quantile(sorted, 0.99));
        seen.set(name, figures);
      }
    }
  }
  const { cores, cpu, linux, node, redis } = machineFacts();
  process.stdout.write(`${cores} cores (${cpu}), Linux ${linux}, Node ${node}, Redis ${redis}\n`);
  process.stdout.write(`${rounds} rounds of ${operations}, one after the other; medians of the rounds\n\n`);
  process.stdout.write("| subject | operation | p50, ms | p99, ms |\n|---|---|---|---|\n");
  for (const [name, { p50, p99 }] of seen) {
    process.stdout.write(`${name} | ${median(p50).toFixed(3)} | ${median(p99).toFixed(3)} |\n`);
  }
} finally {
  for (const subject of subjects) await subject.close();
}
