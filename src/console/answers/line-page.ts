/** A page of ledger lines, read and shown a few at a time: other requests are served in between. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import type { LedgerLine } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";

/** Lines that are read and shown at a time: a few milliseconds of the process. */
const STEP_LINES = 100;
/** Characters of text in the lines of a page, about; a page of very long lines has fewer of them. */
const PAGE_CHARS = 524_288;

/**
 * @param limit lines at most.
 * @returns what `show` made of them, and the `after` of the next page, null on the last one.
 * @throws StoreError
 */
export async function linePage<T>(
  store: Pick<Store, "readLedger">,
  tag: AccountTag,
  { after, limit }: { readonly after: number; readonly limit: number },
  show: (line: LedgerLine) => T,
): Promise<{ readonly items: T[]; readonly next: number | null }> {
  const items: T[] = [];
  let last = after;
  let chars = 0;
  while (items.length < limit && chars < PAGE_CHARS) {
    const count = Math.min(STEP_LINES, limit - items.length);
    const lines = await store.readLedger(tag, last, count);
    for (const line of lines) {
      items.push(show(line));
      chars += line.memo.length + line.debit.length + line.credit.length + line.reference.length;
    }
    last = lines.at(-1)?.seq ?? last;
    if (lines.length < count) return { items, next: null };
    await setImmediate();
  }
  return { items, next: last };
}
