/** `tollgate card`. */
import type { JsonObject } from "../../values/json-object.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, itemsOf } from "../admin-commands.ts";
import { CliFailure } from "../failure.ts";
import { type ListingOptions, listing } from "../output/listing.ts";
import { cell } from "../output/table.ts";
import { CARD_COLUMNS, cardRow } from "./rows.ts";

export interface ListCardsOptions extends ListingOptions {
  readonly account?: string;
}

/**
 * @param named the account as an argument, instead of `--account`. @throws CliFailure 2 if neither or both are given
 */
export async function listCards(
  admin: AdminClient,
  named: string | undefined,
  options: ListCardsOptions,
): Promise<CommandResult> {
  const account = named ?? options.account;
  if (account === undefined)
    throw new CliFailure(2, `Name the account whose cards are listed: ${admin.command} card list ACCOUNT`);
  if (named !== undefined && options.account !== undefined) {
    throw new CliFailure(2, "The account is named twice; do not use --account.");
  }
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/cards`);
  const rows = itemsOf(body).map(cardRow);
  return { json: body, text: listing(options, { columns: CARD_COLUMNS, rows, json: body, none: "No time cards." }) };
}

export async function giveCard(
  admin: AdminClient,
  account: string,
  card: string,
  id: string | undefined,
): Promise<CommandResult> {
  const asked = id === undefined ? { card } : { card, id };
  const { body } = await admin.call("POST", `/accounts/${segment(account)}/gifts`, asked);
  const what = cardWords(body);
  const text =
    body.repeated === true
      ? `The id ${cell(id)} was already counted; nothing was changed. The card is ${what}.\n`
      : `The account ${cell(body.account)} was given ${what}.\n`;
  return { json: body, text };
}

/** Describes the card of an answer: "a day card worth 5.00 USD for the group cards, from … until …". */
export function cardWords(body: JsonObject): string {
  const card = (body.entitlement ?? {}) as JsonObject;
  const quota = card.quota_usd === null ? "without a quota" : `worth ${cell(card.quota_usd)} USD`;
  const span = `from ${cell(card.from)} until ${cell(card.until)}`;
  return `a ${cell(body.card)} card ${quota} for the group ${cell(card.group)}, ${span}`;
}
