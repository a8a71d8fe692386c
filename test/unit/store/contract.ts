/** The test suite that every store passes: `keepsTheContract` registers it for one kind of store. */
import { after, before, describe } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { accountTests } from "./contract-accounts.ts";
import { admissionTests } from "./contract-admit.ts";
import { archiveRefusalTests, archiveTests } from "./contract-archive.ts";
import { budgetTests, budgetTimeTests } from "./contract-budgets.ts";
import { clockTests } from "./contract-clocks.ts";
import { codeTests } from "./contract-codes.ts";
import { costTests } from "./contract-costs.ts";
import { epochTimeTests } from "./contract-epochs.ts";
import { extensionTests, extensionTimeTests } from "./contract-extend.ts";
import { figureTests } from "./contract-figures.ts";
import { idempotencyTests, idempotencyTimeTests } from "./contract-idempotency.ts";
import { limitTests } from "./contract-limits.ts";
import { noticeTests } from "./contract-notices.ts";
import { recordTests } from "./contract-records.ts";
import { settlementTests, settlementTimeTests } from "./contract-settle.ts";
import { signInTests, signInTimeTests } from "./contract-sign-ins.ts";

/** A store under test, with a clock that the test sets. */
export interface Bench {
  readonly store: Store;
  /** The store's clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
  readonly setTime: (epochMs: number) => void;
  readonly close: () => Promise<void>;
}

/** Returns the bench of the running suite. */
export type Ask = () => Bench;

/** @param clock false if the store's clock cannot be set: the tests of time are left to the other forms. */
export function keepsTheContract(name: string, open: () => Promise<Bench>, { clock = true } = {}): void {
  describe(`${name} keeps the contract`, () => {
    let bench: Bench;
    before(async () => {
      bench = await open();
    });
    after(() => bench?.close());
    const ask: Ask = () => bench;
    admissionTests(ask);
    extensionTests(ask);
    budgetTests(ask);
    settlementTests(ask);
    recordTests(ask);
    accountTests(ask);
    codeTests(ask);
    idempotencyTests(ask);
    archiveRefusalTests(ask);
    costTests(ask);
    figureTests(ask);
    noticeTests(ask);
    signInTests(ask);
    if (!clock) return;
    limitTests(ask);
    budgetTimeTests(ask);
    settlementTimeTests(ask);
    idempotencyTimeTests(ask);
    extensionTimeTests(ask);
    signInTimeTests(ask);
    epochTimeTests(ask);
    archiveTests(ask);
    clockTests(ask);
  });
}
