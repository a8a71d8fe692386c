/**
 * Operators and key owners: they pay, change groups and plans, revoke keys, and create, void and redeem codes through
 * any gateway that they reach. Without an answer they retry with the same ids. One record is changed by one of them at
 * a time.
 */
import { createHash } from "node:crypto";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import type { CodeHash } from "../../../src/values/code.ts";
import type { AccountTag, KeyHash } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { GROUPS } from "./catalog.ts";
import type { Chance } from "./chance.ts";
import type { Caller } from "./client.ts";
import type { Running } from "./gateway.ts";
import type { SeenCode, Truth } from "./truth.ts";

/** How often an operator without an answer retries before giving up. */
const TRIES = 4;
const BETWEEN_TRIES_MS = 700;
const HOUR_MS = 3_600_000;

export interface OperatorParts {
  readonly chance: Chance;
  readonly truth: Truth;
  readonly callers: Caller[];
  /** Any gateway that serves; undefined if none does. */
  readonly anyGateway: () => Running | undefined;
  readonly sleep: (ms: number) => Promise<void>;
  readonly count: (what: string) => void;
  /** Whether codes can be redeemed, which they cannot if code and account are on two shards. */
  readonly codes: boolean;
  /** The number of losses of the store so far. */
  readonly losses: () => number;
  readonly step: () => number;
  /** Whether the store's clock has ever been set back. */
  readonly clockWentBack: () => boolean;
}

type Answer<T> = { readonly value: T } | undefined;

export class Operator {
  readonly #parts: OperatorParts;
  readonly #busy = new Set<string>();
  #count = 0;
  /** By key: the group of the last acknowledged change, its step, and the number of losses before it. */
  readonly settledGroups = new Map<string, { group: string; step: number; losses: number }>();

  constructor(parts: OperatorParts) {
    this.#parts = parts;
  }

  /** Performs one random action. */
  async act(): Promise<void> {
    const { chance, codes } = this.#parts;
    const acts = [
      () => this.pay(this.#anyTag(), BigInt(1 + chance.below(60_000))),
      () => this.#adjust(this.#anyTag()),
      () => this.#changeGroup(chance.pick(this.#parts.callers)),
      () => this.#changeGroup(chance.pick(this.#parts.callers)),
      () => this.addKey(this.#anyTag(), chance.pick(GROUPS)),
      ...(chance.is(0.3) ? [() => this.#revoke(chance.pick(this.#parts.callers))] : []),
      ...(chance.is(0.3) ? [() => this.addAccount()] : []),
      ...(codes ? [() => this.makeCode(), () => this.#redeem(), () => this.#redeem(), () => this.#void()] : []),
    ];
    await chance.pick(acts)();
  }

  async addAccount(): Promise<AccountTag> {
    const { truth } = this.#parts;
    const tag = `ACCT${String(truth.accounts.size).padStart(6, "0")}` as AccountTag;
    const seen = { answered: false };
    truth.accounts.set(tag, seen);
    const made = await this.#insist((store) => store.createAccount({ tag, name: `name-${tag}`, plan: "free" }));
    seen.answered = made !== undefined;
    return tag;
  }

  async addKey(tag: AccountTag, group: string): Promise<void> {
    const { truth, callers } = this.#parts;
    const keyId = `key-${++this.#count}`;
    const hash = hashOf(keyId) as KeyHash;
    const seen = { tag, group: undefined, created: false, revision: 1, contested: false, revocation: "none" } as const;
    truth.keys.set(keyId, { ...seen });
    const made = await this.#insist((store) => store.createKey(tag, { id: keyId, hash, group }));
    if (!made?.value) return;
    truth.keys.set(keyId, { ...seen, group, created: true });
    callers.push({ tag, hash, keyId });
  }

  async pay(tag: AccountTag, amount: bigint, kind: "topup" | "adjust" = "topup"): Promise<void> {
    const { truth } = this.#parts;
    const id = `pay-${++this.#count}`;
    const seen = { tag, amount, answered: false };
    truth.payments.set(id, seen);
    const paid = await this.#insist((store) => store.credit(tag, { id, amount, kind, note: "" }));
    seen.answered = paid !== undefined && (paid.value.outcome === "credited" || paid.value.outcome === "duplicate");
  }

  async makeCode(): Promise<void> {
    const { truth, chance } = this.#parts;
    const id = `code-${++this.#count}`;
    const seen: SeenCode = { id, answered: false, voiding: "none", redeemers: new Set() };
    truth.codes.set(id, seen);
    const facts = {
      card: "card",
      plan: "pro",
      group: "cards",
      lastsMs: chance.pick([20_000, HOUR_MS, 24 * HOUR_MS]),
      starts: chance.pick(["at_redemption", "after_previous"] as const),
      quota: chance.is(0.5) ? nanoUsd(BigInt(1_000 + chance.below(60_000))) : undefined,
    };
    const codes = [{ id, hash: hashOf(id) as CodeHash }];
    const made = await this.#insist((store) => store.createCodes(facts, codes));
    seen.answered = made !== undefined;
  }

  /** Sometimes two accounts redeem the same code at once. */
  async #redeem(): Promise<void> {
    const { truth, chance } = this.#parts;
    const code = chance.pick([...truth.codes.values(), undefined]);
    if (!code) return;
    const one = async (): Promise<void> => {
      const tag = this.#anyTag();
      const answer = await this.#insist((store) => store.redeem({ hash: hashOf(code.id) as CodeHash, tag }));
      const outcome = answer?.value.outcome;
      if (outcome === "redeemed" || outcome === "again") code.redeemers.add(tag);
    };
    await (chance.is(0.4) ? Promise.all([one(), one()]) : one());
  }

  async #void(): Promise<void> {
    const { truth, chance } = this.#parts;
    const code = chance.pick([...truth.codes.values(), undefined]);
    if (code?.voiding !== "none") return;
    code.voiding = "asked";
    // Voids a single code, or a batch of one.
    const answer = await this.#insist((store) =>
      this.#count % 2 === 0 ? store.voidCode(code.id) : store.voidCodes([code.id]).then(([one]) => one),
    );
    if (answer?.value?.state === "void") code.voiding = "answered";
  }

  async #adjust(tag: AccountTag): Promise<void> {
    await this.pay(tag, -BigInt(1 + this.#parts.chance.below(10_000)), "adjust");
  }

  async #changeGroup({ tag, keyId }: Caller): Promise<void> {
    const { truth, chance, step, losses, count } = this.#parts;
    const key = truth.keys.get(keyId);
    if (key?.revocation !== "none" || this.#busy.has(keyId)) return;
    this.#busy.add(keyId);
    this.settledGroups.delete(keyId);
    key.group = undefined;
    const group = chance.pick(GROUPS);
    const lossesBefore = losses();
    const answer = await this.#insist((store) => store.changeKey(tag, keyId, { group }));
    this.#busy.delete(keyId);
    if (!answer?.value) return;
    const { revision } = answer.value;
    // The store had lost changes, and its clock has not passed their revisions yet, so either change may win.
    if (revision <= key.revision) {
      key.contested = this.#parts.clockWentBack();
      count("contested_revisions");
    }
    key.revision = Math.max(key.revision, revision);
    if (key.contested) return;
    key.group = group;
    this.settledGroups.set(keyId, { group, step: step(), losses: lossesBefore });
  }

  async #revoke({ tag, keyId }: Caller): Promise<void> {
    const key = this.#parts.truth.keys.get(keyId);
    if (!key || this.#busy.has(keyId)) return;
    key.revocation = "asked";
    const answer = await this.#insist((store) => store.revokeKey(tag, keyId));
    if (answer?.value) key.revocation = "answered";
  }

  #anyTag(): AccountTag {
    return this.#parts.chance.pick([...this.#parts.truth.accounts.keys()]);
  }

  /** Sends the write until it is answered, possibly through another gateway; undefined if it never is. */
  async #insist<T>(ask: (store: Store) => Promise<T>): Promise<Answer<T>> {
    const { anyGateway, sleep, count } = this.#parts;
    for (let tried = 0; tried < TRIES; tried++) {
      const gateway = anyGateway();
      if (gateway) {
        const asked = ask(gateway.admin).then(
          (value) => ({ value }),
          (error: unknown) => {
            if (error instanceof StoreError) return undefined;
            throw error;
          },
        );
        // A gateway that dies never answers.
        const answer = await Promise.race([asked, sleep(2_000)]);
        if (answer) {
          count("admin_writes");
          return answer;
        }
      }
      await sleep(BETWEEN_TRIES_MS);
    }
    return undefined;
  }
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
