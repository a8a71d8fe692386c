/** What the commands for codes of time cards ask and print. */

import type { JsonObject } from "../values/json-object.ts";
import { type AdminClient, segment } from "./admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOrAll, withMore } from "./admin-commands.ts";
import { CliFailure } from "./failure.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { type Column, cell } from "./output/table.ts";

/** Codes that one command may make. */
const CODES_MAX = 1_000;

const CODE_COLUMNS: readonly Column[] = [
  { title: "ID", member: "id" },
  { title: "CARD", member: "card" },
  { title: "STATE", member: "state" },
  { title: "QUOTA USD", member: "quota_usd", right: true },
  { title: "CREATED", member: "created_at" },
  { title: "ACCOUNT", member: "account_id" },
  { title: "REDEEMED", member: "redeemed_at" },
];

/** @throws CliFailure 2 for a count that is none */
export async function createCodes(
  admin: AdminClient,
  card: string,
  typedCount: string,
  once: string | undefined,
): Promise<CommandResult> {
  const count = /^[1-9][0-9]{0,3}$/.test(typedCount) ? Number(typedCount) : 0;
  if (count < 1 || count > CODES_MAX) throw new CliFailure(2, `--count must be a whole number from 1 to ${CODES_MAX}.`);
  const { body } = await admin.call(
    "POST",
    "/codes",
    once === undefined ? { card, count } : { card, count, idempotency_id: once },
  );
  const lines = itemsOf(body).map((item) => `${cell(item.code)}  ${cell(item.id)}\n`);
  const hint = "This is the only time that the codes are shown; only their hashes are stored.\n";
  return { json: body, text: lines.join(""), hint };
}

export async function listCodes(admin: AdminClient, options: PageOptions & ListingOptions): Promise<CommandResult> {
  const body = await pageOrAll(admin, "/codes", options);
  const rows = itemsOf(body);
  const text = listing(options, { columns: CODE_COLUMNS, rows, json: body, none: "No codes." });
  return withMore(body, text, (next) => `More codes: tollgate code list --cursor ${next}\n`);
}

export async function voidCode(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/codes/${segment(id)}/void`);
  return { json: body, text: `The code ${cell(body.id)} is void: nobody can redeem it any more.\n` };
}

export async function redeemCode(admin: AdminClient, code: string, account: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(account)}/redemptions`, { code });
  const card = (body.entitlement ?? {}) as JsonObject;
  const quota = card.quota_usd === null ? "without a quota" : `worth ${cell(card.quota_usd)} USD`;
  const span = `from ${cell(card.from)} until ${cell(card.until)}`;
  const what = `a ${cell(body.card)} card ${quota} for the group ${cell(card.group)}, ${span}`;
  const text =
    body.repeated === true
      ? `The account ${cell(body.account)} has redeemed this code before; nothing changed. It is ${what}.\n`
      : `The account ${cell(body.account)} has ${what}.\n`;
  return { json: body, text };
}
