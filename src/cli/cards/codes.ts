/** `tollgate code`. */

import type { JsonObject } from "../../values/json-object.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOptions, pageOrAll, withMore } from "../admin-commands.ts";
import { CliFailure } from "../failure.ts";
import { type ListingOptions, listing } from "../output/listing.ts";
import { optionWords } from "../output/printed-command.ts";
import { type Column, cell, many } from "../output/table.ts";
import { asTyped } from "../typed-names.ts";
import { cardWords } from "./cards.ts";
import { type CodeFormat, codesAsCsv, codesAsPage } from "./export.ts";
import { OutputFile } from "./output-file.ts";

/** Most codes that one command may create. */
const CODES_MAX = 1_000;

const CODE_COLUMNS: readonly Column[] = [
  { title: "ID", member: "id" },
  { title: "CARD", member: "card" },
  { title: "STATE", member: "state" },
  { title: "QUOTA USD", member: "quota_usd", right: true },
  { title: "CREATED", member: "created_at" },
  { title: "ACCOUNT", member: "account_id" },
  { title: "REDEEMED", member: "redeemed_at" },
  { title: "REDEEM BY", member: "redeem_by" },
  { title: "BATCH", member: "batch_id" },
];

export interface NewCodesOptions {
  readonly card: string;
  readonly count: string;
  readonly label?: string;
  readonly redeemBy?: string;
  readonly idempotencyId?: string;
  readonly format: CodeFormat;
  readonly output?: string;
}

/** @throws CliFailure 2 for an invalid count, 1 for a file that cannot be written; then no code was created. */
export async function createCodes(admin: AdminClient, options: NewCodesOptions): Promise<CommandResult> {
  const { count: typed, output } = options;
  const count = /^[1-9][0-9]{0,3}$/.test(typed) ? Number(typed) : 0;
  if (count < 1 || count > CODES_MAX) throw new CliFailure(2, `--count must be a whole number from 1 to ${CODES_MAX}.`);
  if (output === undefined) return shown(await made(admin, count, options), options.format);
  const file = new OutputFile(output);
  try {
    return exported(await made(admin, count, options), options.format, file);
  } catch (error) {
    file.drop();
    throw error;
  }
}

async function made(admin: AdminClient, count: number, options: NewCodesOptions): Promise<JsonObject> {
  const { card, label, redeemBy, idempotencyId } = options;
  const typed = asTyped(admin, { redeem_by: "--redeem-by", idempotency_id: "--idempotency-id" });
  const { body } = await typed.call("POST", "/codes", {
    ...{ card, count },
    ...(label === undefined ? {} : { label }),
    ...(redeemBy === undefined ? {} : { redeem_by: redeemBy }),
    ...(idempotencyId === undefined ? {} : { idempotency_id: idempotencyId }),
  });
  return body;
}

function shown(body: JsonObject, format: CodeFormat): CommandResult {
  const batch = body.batch_id === null ? "" : `The batch is ${cell(body.batch_id)}. `;
  const hint = `${batch}The codes are shown only this once; only their hashes are stored.\n`;
  return { json: body, text: codesAs(format, body), hint };
}

/** Writes the codes to a file only. If that fails, they are printed, so that they are not lost. */
function exported(body: JsonObject, format: CodeFormat, file: OutputFile): CommandResult {
  const fault = file.write(codesAs(format, body));
  if (fault !== undefined) {
    return {
      ...shown(body, format),
      failure: `${file.path} could not be written (${fault}); keep the codes that are shown above.`,
    };
  }
  const items = itemsOf(body).map(({ id }) => ({ id }));
  const batch = body.batch_id === null ? "" : ` of the batch ${cell(body.batch_id)}`;
  const hint = "Only this file has the codes; the gateway stores only their hashes.\n";
  return {
    json: { ...body, items, file: file.path },
    text: `Wrote ${many(items.length, "code")}${batch} to ${file.path}.\n`,
    hint,
  };
}

function codesAs(format: CodeFormat, body: JsonObject): string {
  const items = itemsOf(body);
  if (format === "csv") return codesAsCsv(body, items);
  if (format === "html") return codesAsPage(body, items);
  return items.map((item) => `${cell(item.code)}  ${cell(item.id)}\n`).join("");
}

export async function listCodes(
  admin: AdminClient,
  options: PageOptions & ListingOptions & { readonly batch?: string },
): Promise<CommandResult> {
  const { batch } = options;
  const body = await pageOrAll(admin, "/codes", options, { batch });
  const rows = itemsOf(body);
  const text = listing(options, { columns: CODE_COLUMNS, rows, json: body, none: "No codes." });
  const again = `${admin.command} code list${optionWords({ batch, ...pageOptions(options) })}`;
  return withMore(body, text, (next) => `More codes: ${again} --cursor ${next}\n`);
}

export async function voidCode(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/codes/${segment(id)}/void`);
  return { json: body, text: `The code ${cell(body.id)} is void: it can no longer be redeemed.\n` };
}

export async function redeemCode(admin: AdminClient, code: string, account: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(account)}/redemptions`, { code });
  const what = cardWords(body);
  const text =
    body.repeated === true
      ? `The account ${cell(body.account)} has already redeemed this code; nothing was changed. The card is ${what}.\n`
      : `The account ${cell(body.account)} has ${what}.\n`;
  return { json: body, text };
}
