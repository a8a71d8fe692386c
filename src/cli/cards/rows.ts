/** Time cards of an account, as rows of a table. */
import type { JsonObject } from "../../values/json-object.ts";
import { type Column, cell } from "../output/table.ts";

/**
 * Columns of cards. `-` means a card without a quota, and for the kind of a card that is older than the record of
 * kinds.
 */
export const CARD_COLUMNS: readonly Column[] = [
  { title: "TIME CARD", member: "id" },
  { title: "KIND", member: "card" },
  { title: "PLAN", member: "plan" },
  { title: "GROUP", member: "group" },
  { title: "STATE", member: "state" },
  { title: "FROM", member: "from" },
  { title: "UNTIL", member: "until" },
  { title: "QUOTA USD", member: "quota_usd", right: true },
  { title: "SPENT USD", member: "spent_usd", right: true },
  { title: "HELD USD", member: "held_usd", right: true },
  { title: "LEFT USD", member: "rest_usd", right: true },
  { title: "NEXT", member: "next_card" },
];

/** A card as a row, with the next card and the state as text. */
export function cardRow(card: JsonObject): JsonObject {
  const next = card.next as JsonObject | null;
  const after = next === null ? null : `${cell(next.card)} ${cell(next.id)} from ${cell(next.from)}`;
  return { ...card, state: String(card.state).replace("_", " "), next_card: after };
}
