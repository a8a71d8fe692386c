/** A ledger line as the judge reads it, from the store or from the admin API. */
import type { LedgerLine } from "../../../src/store/records.ts";
import { parseUsd } from "../../../src/values/money.ts";

export interface Line {
  readonly seq: number;
  readonly kind: string;
  readonly debit: string;
  readonly credit: string;
  /** Nano-dollars, like all amounts here. */
  readonly amount: bigint;
  /** The account's balance after this line. */
  readonly balance: bigint;
  readonly reference: string;
  /** The data from which the line was computed; undefined for lines that are not charges. */
  readonly bill: Bill | undefined;
}

export interface Bill {
  readonly hold: bigint;
  /** `complete`, or the reason why the answer was cut. */
  readonly ended: string;
  /** `upstream`, or how the tokens were estimated. */
  readonly counted: string;
  /** Nano-dollars per million input tokens. */
  readonly inputPrice: bigint;
  /** The price of the counts; undefined if calls of tools are priced, which it does not include. */
  readonly worth: bigint | undefined;
}

/** Counts and prices of a charge: the memo of a ledger line, or `usage` of the admin API. */
export type Memo = Readonly<Record<string, unknown>>;

/** A line of the store. @param reference the request id that clients know, if the store has another one. */
export function lineOf(line: LedgerLine, reference: string = line.reference): Line {
  const { seq, kind, debit, credit, amount, balance, memo } = line;
  const isCharge = (kind === "usage" || kind === "absorbed") && memo !== "";
  const bill = isCharge ? billOf(JSON.parse(memo) as Memo) : undefined;
  return { seq, kind, debit, credit, amount, balance, reference, bill };
}

/** A line of `GET /admin/v1/accounts/{account}/ledger`. */
export interface ShownLine {
  readonly seq: number;
  readonly kind: string;
  readonly debit: string;
  readonly credit: string;
  readonly usd: string;
  readonly balance_usd: string;
  readonly reference: string;
  readonly usage: Memo | null;
}

/** A line of the admin API. @throws RangeError if it has no amount. */
export function shownLineOf({ usd, balance_usd, usage, ...line }: ShownLine): Line {
  return { ...line, amount: nano(usd), balance: nano(balance_usd), bill: usage ? billOf(usage) : undefined };
}

/** Reads the whole ledger of an account, oldest line first. @param get sends a request to the admin API. */
export async function shownLedger<L extends ShownLine>(
  name: string,
  get: (path: string) => Promise<{ readonly items: readonly L[]; readonly next: number | null }>,
): Promise<L[]> {
  const lines: L[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page = await get(`/accounts/${name}/ledger?limit=1000&after=${after}`);
    lines.push(...page.items);
    after = page.next;
  }
  return lines;
}

/** Computes a charge from its memo alone: tokens times prices times multiplier, one division, rounded half up. */
export function worthOf(memo: Memo): bigint {
  const part = (count: string, price: string) => BigInt(memo[count] as number) * BigInt(memo[price] as string);
  const weighed =
    part("input", "price_input") +
    part("cached_input", "price_cached_input") +
    part("cache_write", "price_cache_write") +
    part("cache_write_1h", "price_cache_write_1h") +
    part("output", "price_output");
  const scaled = weighed * BigInt(memo.multiplier as string);
  const divisor = 1_000_000_000_000n;
  return (scaled * 2n + divisor) / (divisor * 2n);
}

function billOf(memo: Memo): Bill {
  const hasTools = Object.keys((memo.price_tools as object | undefined) ?? {}).length > 0;
  return {
    hold: BigInt(String(memo.hold)),
    ended: String(memo.ended),
    counted: String(memo.counted),
    inputPrice: BigInt(String(memo.price_input)),
    worth: hasTools ? undefined : worthOf(memo),
  };
}

function nano(usd: string): bigint {
  const amount = parseUsd(usd, { signed: true });
  if (amount === undefined) throw new RangeError(`not an amount: ${usd}`);
  return amount;
}
