/**
 * What an outsider saw: which requests were admitted, what they produced and when their charge was promised, and what
 * operators were answered. The store and the journals are held against it at the end.
 */
import type { SettleAsk } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { RequestId } from "../../../src/values/request-id.ts";

export interface SeenRequest {
  readonly tag: AccountTag;
  readonly gateway: string;
  readonly hold: bigint;
  readonly entitlement: string | undefined;
  /** Whether anything of an answer was produced. */
  attempted: boolean;
  /** Every way in which it may be charged, `wordOf` each: what was written to the journal, in part or whole. */
  readonly told: Set<Word>;
  /** Those that nothing later supersedes that is in the file for sure: the ones left after a mere kill. */
  readonly left: Set<Word>;
  last: SettleAsk;
  /** The client may have got the end of its answer: the charge is promised. */
  answered: boolean;
  /** The journal could not take the charge, so that the store alone may have it. */
  unrecorded: boolean;
}

export interface SeenPayment {
  readonly tag: AccountTag;
  readonly amount: bigint;
  answered: boolean;
}

export interface SeenKey {
  readonly tag: AccountTag;
  /** The group of the last change that was answered; undefined while one is not. */
  group: string | undefined;
  created: boolean;
  /** The highest that an operator was answered; contested once a lower or equal one followed. */
  revision: number;
  contested: boolean;
  revocation: "none" | "asked" | "answered";
}

export interface SeenCode {
  readonly id: string;
  answered: boolean;
  voiding: "none" | "asked" | "answered";
  /** Accounts that were answered that it is theirs. */
  readonly redeemers: Set<AccountTag>;
}

/** No charge. */
export const VOID = "void";
/** How a settlement will show in the ledger: with its charge, nano-dollars, or without. */
export type Word = bigint | typeof VOID;

export function wordOf({ voided, amount }: Pick<SettleAsk, "voided" | "amount">): Word {
  return voided ? VOID : amount;
}

export class Truth {
  readonly requests = new Map<RequestId, SeenRequest>();
  readonly payments = new Map<string, SeenPayment>();
  readonly keys = new Map<string, SeenKey>();
  readonly codes = new Map<string, SeenCode>();
  readonly accounts = new Map<AccountTag, { answered: boolean }>();
  /** Charges that are in a file of dead letters, by request, with the reason. */
  readonly letters = new Map<string, string>();
  /** Administrative writes that the store did not take again: what, and why. */
  readonly refusedAgain: { readonly write: string; readonly id: string; readonly problem: string }[] = [];
  /** Administrative writes that no journal has. */
  readonly unrecordedWrites = new Set<string>();
  /** Gateways that were short of room and gave history up early, which they tell. */
  readonly forgetful = new Set<string>();
}
