/**
 * What an outside observer saw: which requests were admitted, what they produced, when their charge was promised, and
 * what operators were answered. The store and the journals are compared with it at the end.
 */
import type { SettleAsk } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { RequestId } from "../../../src/values/request-id.ts";

export interface SeenRequest {
  readonly tag: AccountTag;
  readonly gateway: string;
  readonly hold: bigint;
  readonly entitlement: string | undefined;
  /** Whether any part of an answer was produced. */
  attempted: boolean;
  /**
   * All results that the charge may have, as `resultOf` gives them: everything that was written to the journal,
   * completely or in part.
   */
  readonly written: Set<SettledAs>;
  /**
   * The results that are possible after a mere kill: those that no later record that is certainly in the file replaces.
   */
  readonly left: Set<SettledAs>;
  last: SettleAsk;
  /** Whether the client may have received the end of its answer, so that the charge is promised. */
  answered: boolean;
  /** Whether the journal could not record the charge, so that only the store may have it. */
  unrecorded: boolean;
}

export interface SeenPayment {
  readonly tag: AccountTag;
  readonly amount: bigint;
  answered: boolean;
}

export interface SeenKey {
  readonly tag: AccountTag;
  /** The group of the last acknowledged change; undefined while a change is in progress. */
  group: string | undefined;
  created: boolean;
  /** The highest revision in an answer. It is contested once a lower or equal one followed. */
  revision: number;
  contested: boolean;
  revocation: "none" | "asked" | "answered";
}

export interface SeenCode {
  readonly id: string;
  answered: boolean;
  voiding: "none" | "asked" | "answered";
  /** Accounts whose redemption was answered as successful. */
  readonly redeemers: Set<AccountTag>;
}

/** No charge. */
export const VOID = "void";
/** How a settlement appears in the ledger: with its charge, nano-dollars, or without one. */
export type SettledAs = bigint | typeof VOID;

export function resultOf({ voided, amount }: Pick<SettleAsk, "voided" | "amount">): SettledAs {
  return voided ? VOID : amount;
}

export class Truth {
  readonly requests = new Map<RequestId, SeenRequest>();
  readonly payments = new Map<string, SeenPayment>();
  readonly keys = new Map<string, SeenKey>();
  readonly codes = new Map<string, SeenCode>();
  readonly accounts = new Map<AccountTag, { answered: boolean }>();
  /** Charges in a file of dead letters, by request, with the reason. */
  readonly letters = new Map<string, string>();
  /** Administrative writes that the store refused when they were replayed: what, and why. */
  readonly refusedAgain: { readonly write: string; readonly id: string; readonly problem: string }[] = [];
  /** Administrative writes that are in no journal. */
  readonly unrecordedWrites = new Set<string>();
  /** Gateways that were short of disk space, discarded history early and logged it. */
  readonly forgetful = new Set<string>();
}
