/** Cards and codes for the tests in this folder. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import type { Store } from "../../../../src/store/contract.ts";
import type { CardFacts } from "../../../../src/store/records.ts";
import { type CodeHash, newCode } from "../../../../src/values/code.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { type Ran, run } from "../../../unit/cli/captured-run.ts";
import { ADMIN_TOKEN, CATALOG, type RunningConsole, startConsole } from "../../../unit/console/running-console.ts";
import type { Bench } from "../../../unit/store/contract.ts";

export const DAY_MS = 86_400_000;

/** A day card of 5 USD, unless `changes` says otherwise. */
export function card(changes: Partial<Omit<CardFacts, "quota">> & { quota?: bigint | undefined } = {}): CardFacts {
  const { quota = 5_000_000_000n, ...rest } = changes;
  return {
    card: "day",
    plan: "pro",
    group: "cards",
    lastsMs: DAY_MS,
    starts: "at_redemption",
    ...rest,
    quota: "quota" in changes && changes.quota === undefined ? undefined : nanoUsd(quota),
  };
}

export interface SoldCode {
  readonly id: string;
  readonly hash: CodeHash;
  readonly text: string;
}

/** Creates codes as the console does. */
export async function sell(store: Store, count: number, facts: CardFacts = card()): Promise<SoldCode[]> {
  const codes = Array.from({ length: count }, () => newCode(Date.now(), randomBytes));
  await store.createCodes(
    facts,
    codes.map(({ id, hash }) => ({ id, hash })),
  );
  return codes;
}

const kind = { plan: "pro", group: "cards", starts: "at_redemption", quotaSpend: 5_000_000_000n } as const;
/** A day card, a week card that starts after the previous card, and a card without a quota. */
const CARDS = new Map([
  ["day", { ...kind, name: "day", lastsMs: DAY_MS }],
  ["week", { ...kind, name: "week", lastsMs: 7 * DAY_MS, starts: "after_previous" as const }],
  ["flat", { ...kind, name: "flat", lastsMs: DAY_MS, quotaSpend: undefined }],
]);

/** A console on a store, the command line that calls it, and one clock for both. */
export interface Shop extends Pick<RunningConsole, "ask"> {
  tollgate(...argv: string[]): Promise<Ran>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape and fail on the wrong one.
  json(...argv: string[]): Promise<any>;
  setTime(epochMs: number): void;
  /** The environment by which the command line finds the console. */
  readonly env: Readonly<Record<string, string>>;
}

export async function shopOn(t: TestContext, bench: Bench): Promise<Shop> {
  let nowMs: number | undefined;
  const clock = Object.assign(Object.create(systemClock), { wallMs: () => nowMs ?? Date.now() });
  const { ask, url } = await startConsole(t, {
    store: bench.store,
    clock,
    catalog: () => ({ ...CATALOG, cards: CARDS }),
  });
  const env = { TOLLGATE_ADMIN_URL: url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const tollgate = (...argv: string[]) => run(argv, { env });
  return {
    ask,
    env,
    tollgate,
    async json(...argv) {
      const ran = await tollgate(...argv, "--json");
      assert.equal(ran.status, 0, `${argv.join(" ")}: ${ran.err}`);
      return JSON.parse(ran.out);
    },
    setTime(epochMs) {
      nowMs = epochMs;
      bench.setTime(epochMs);
    },
  };
}
