/** Cards and codes as these tests sell them. */
import { randomBytes } from "node:crypto";
import type { Store } from "../../../../src/store/contract.ts";
import type { CardFacts } from "../../../../src/store/records.ts";
import { type CodeHash, newCode } from "../../../../src/values/code.ts";
import { nanoUsd } from "../../../../src/values/money.ts";

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

/** Makes codes as the console does. */
export async function sell(store: Store, count: number, facts: CardFacts = card()): Promise<SoldCode[]> {
  const codes = Array.from({ length: count }, () => newCode(Date.now(), randomBytes));
  await store.createCodes(
    facts,
    codes.map(({ id, hash }) => ({ id, hash })),
  );
  return codes;
}
