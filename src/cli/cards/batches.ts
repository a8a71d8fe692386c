/** `tollgate code batch`. */
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOptions, pageOrAll, withMore } from "../admin-commands.ts";
import { type ListingOptions, listing } from "../output/listing.ts";
import { optionWords } from "../output/printed-command.ts";
import { type Column, cell, facts } from "../output/table.ts";

const BATCH_COLUMNS: readonly Column[] = [
  { title: "ID", member: "id" },
  { title: "LABEL", member: "label" },
  { title: "CARD", member: "card" },
  { title: "COUNT", member: "count", right: true },
  { title: "QUOTA USD", member: "quota_usd", right: true },
  { title: "REDEEM BY", member: "redeem_by" },
  { title: "CREATED", member: "created_at" },
];

const BATCH_FACTS = {
  id: "Id",
  label: "Label",
  card: "Card",
  plan: "Plan",
  group: "Group",
  lasts_seconds: "Lasts seconds",
  starts: "Starts",
  quota_usd: "Quota USD",
  redeem_by: "Redeem by",
  created_at: "Created",
  count: "Count",
};

const REPORT_FACTS = {
  id: "Id",
  label: "Label",
  card: "Card",
  redeem_by: "Redeem by",
  made: "Made",
  redeemed: "Redeemed",
  void: "Void",
  expired: "Expired",
  unused: "Unused",
  spent_usd: "Spent USD",
  redeemed_quota_usd: "Redeemed quota USD",
};

export async function listBatches(admin: AdminClient, options: PageOptions & ListingOptions): Promise<CommandResult> {
  const body = await pageOrAll(admin, "/code-batches", options);
  const text = listing(options, { columns: BATCH_COLUMNS, rows: itemsOf(body), json: body, none: "No batches." });
  const again = `${admin.command} code batch list${optionWords(pageOptions(options))}`;
  return withMore(body, text, (next) => `More batches: ${again} --cursor ${next}\n`);
}

export async function showBatch(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/code-batches/${segment(id)}`);
  return { json: body, text: facts(BATCH_FACTS, body) };
}

export async function voidBatch(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/code-batches/${segment(id)}/void`);
  const now = body.repeated === true ? "nothing changed" : `${cell(body.voided_now)} of them newly voided`;
  const codes = body.made === 1 ? "code" : "codes";
  const are = body.void === 1 ? "is" : "are";
  const text =
    `${cell(body.void)} of ${cell(body.made)} ${codes} of the batch ${cell(body.id)} (${cell(body.label)}) ${are} void, ${now}; ` +
    `${cell(body.redeemed)} ${body.redeemed === 1 ? "was" : "were"} already redeemed.\n`;
  return { json: body, text };
}

export async function reportBatch(
  admin: AdminClient,
  id: string,
  { format = "table" }: ListingOptions,
): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/code-batches/${segment(id)}/report`);
  const columns = Object.keys(REPORT_FACTS).map((member) => ({ title: member, member }));
  const text =
    format === "table"
      ? facts(REPORT_FACTS, body)
      : listing({ format }, { columns, rows: [body], json: body, none: "" });
  return { json: body, text };
}
