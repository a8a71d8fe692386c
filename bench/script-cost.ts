/**
 * `node bench/script-cost.ts [--trees DIR,DIR] [--rounds N] [--requests N]`: CPU time of Redis for an admission and for a settlement, in
 * microseconds, for the scripts of one checkout or of several. Each tree has its own Redis; rounds in turn, so that a slow minute of the
 * machine affects every tree. Medians of rounds, and the ratio to the first.
 */
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Store } from "../src/store/contract.ts";
import type * as open from "../src/store/open.ts";
import { Secret } from "../src/values/secret.ts";
import { programOptions } from "../test/rig/program-options.ts";
import { startRedis, type TestRedis } from "../test/rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk, terms } from "../test/unit/store/asks.ts";
import { cpuUs } from "./cpu.ts";
import { machineFacts } from "./machine.ts";

/** Requests in flight at a time: admissions, then their settlements. */
const BATCH = 50;
const WARM_UP_REQUESTS = 500;
const TOKENS = { input: 40, cachedInput: 10, cacheWrite: 0, output: 20, reasoning: 5 };
/** About the length of a real memo. */
const MEMO = JSON.stringify({ model: "chat-1", attempts: [{ upstream: "east", outcome: "ok" }], pad: "x".repeat(200) });

const { values } = programOptions({
  options: {
    trees: { type: "string", default: "." },
    rounds: { type: "string", default: "7" },
    requests: { type: "string", default: "2000" },
  },
});
const rounds = Number(values.rounds);
const requests = Number(values.requests);

interface Subject {
  readonly tree: string;
  readonly redis: TestRedis;
  readonly store: Store;
  readonly admit: number[];
  readonly settle: number[];
  run(count: number): Promise<{ admit: number; settle: number }>;
}

async function subject(tree: string): Promise<Subject> {
  const { openStore } = (await import(pathToFileURL(resolve(tree, "src/store/open.ts")).href)) as typeof open;
  const redis = await startRedis();
  const store = await openStore({ kind: "redis", url: new Secret(redis.url) });
  await store.check();
  const tag = await makeAccount(store, "Bench", { funds: 1_000_000_000n });
  const groups = [terms({ requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000, concurrency: BATCH })];
  let number = 0;
  async function batch(): Promise<{ admit: number; settle: number }> {
    const asks = Array.from({ length: BATCH }, () =>
      admitAsk({ tag, requestId: ridOf(++number), groups, inputTokens: 50 }),
    );
    const startUs = cpuUs(redis.pid);
    const permits = [];
    for (const ask of asks) permits.push(admitted(await store.admit(ask)));
    const admittedUs = cpuUs(redis.pid);
    for (const [i, ask] of asks.entries()) {
      const charge = { amount: 1n, tokensTaken: 50, tokensUsed: 70, tokens: TOKENS, memo: MEMO };
      await store.settle(settleAsk(ask, permits[i] as (typeof permits)[number], charge));
    }
    return { admit: admittedUs - startUs, settle: cpuUs(redis.pid) - admittedUs };
  }
  return {
    ...{ tree, redis, store, admit: [], settle: [] },
    async run(count) {
      const sum = { admit: 0, settle: 0 };
      for (let done = 0; done < count; done += BATCH) {
        const one = await batch();
        sum.admit += one.admit / count;
        sum.settle += one.settle / count;
      }
      return sum;
    },
  };
}

function median(of: readonly number[]): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] as number;
}

const subjects: Subject[] = [];
try {
  for (const tree of values.trees.split(",")) subjects.push(await subject(tree));
  for (const one of subjects) await one.run(WARM_UP_REQUESTS);
  for (let round = 0; round < rounds; round++) {
    for (const one of subjects) {
      const { admit, settle } = await one.run(requests);
      one.admit.push(admit);
      one.settle.push(settle);
    }
  }
  const lines = subjects.flatMap(({ tree, admit, settle }) =>
    Object.entries({ admit, settle }).map(([script, us]) => {
      const first = subjects[0]?.[script as "admit" | "settle"] ?? us;
      const ratio = (median(us) / median(first)).toFixed(2);
      const [least, most] = [Math.min(...us).toFixed(1), Math.max(...us).toFixed(1)];
      return `| ${tree} | ${script} | ${median(us).toFixed(1)} | ${least} to ${most} | ${ratio} |`;
    }),
  );
  const head = ["| tree | script | CPU us, median | rounds | times the first |", "|---|---|---:|---|---:|"];
  process.stdout.write(`${[JSON.stringify(machineFacts()), "", ...head, ...lines].join("\n")}\n`);
} finally {
  for (const { store, redis } of subjects) {
    await store.close();
    await redis.stop();
  }
}
