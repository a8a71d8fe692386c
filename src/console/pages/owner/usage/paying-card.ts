/** The time card that paid for a request. */
import type { OwnLineAnswer } from "../../../answers/own-usage.ts";

/**
 * Its id as in the lists of cards, without the prefix of the ledger's account; undefined if the balance has paid, or
 * if the line is not a charge.
 */
export function payingCard({ paid_by: payer }: Pick<OwnLineAnswer, "paid_by">): string | undefined {
  return payer === null || payer === "balance" ? undefined : payer.replace(/^ent_/, "");
}
