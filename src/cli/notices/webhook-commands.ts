/** `tollgate webhook` and `tollgate account notify`: notices, their receiver, and thresholds for balance notices. */

import type { JsonObject } from "../../values/json-object.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOptions, pageOrAll, withMore } from "../admin-commands.ts";
import { typedAmount } from "../amounts.ts";
import { type Ask, type Command, listingFormat } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { type ListingOptions, listing } from "../output/listing.ts";
import { optionWords } from "../output/printed-command.ts";
import { type Column, cell } from "../output/table.ts";
import { asTyped } from "../typed-names.ts";

const COLUMNS: readonly Column[] = [
  { title: "ACCOUNT", member: "account" },
  { title: "WAITING", member: "waiting", right: true },
  { title: "DROPPED", member: "dropped", right: true },
  { title: "OLDEST", member: "oldest_kind" },
  { title: "OF, UTC", member: "oldest_at" },
  { title: "FAILURES", member: "failures", right: true },
  { title: "LAST ERROR", member: "last_error" },
  { title: "NEXT TRY, UTC", member: "next_try_at" },
];

async function testWebhook(admin: AdminClient): Promise<CommandResult> {
  const { body } = await admin.call("POST", "/notices/test", {});
  const { id, delivered, status, milliseconds, reason, advice } = body;
  const how = delivered === true ? `accepted with ${cell(status)}` : `not accepted: ${cell(reason)}`;
  const text = `The test notice ${cell(id)} was ${how}, after ${cell(milliseconds)} ms.\n${cell(advice)}\n`;
  return delivered === true
    ? { json: body, text }
    : { json: body, text, failure: "The receiver did not accept the test notice." };
}

async function listWaiting(admin: AdminClient, options: PageOptions & ListingOptions): Promise<CommandResult> {
  const body = await pageOrAll(admin, "/notices", options, {});
  const rows = itemsOf(body).map((row) => ({ ...row, account: row.account ?? "(the gateway)" }));
  const listed = listing(options, { columns: COLUMNS, rows, json: body, none: "No notices are waiting." });
  const text = listed + (isPlain(options) ? receiverWords(body, admin.command) : "");
  const again = `${admin.command} webhook list${optionWords(pageOptions(options))}`;
  return withMore(body, text, (next) => `More accounts: ${again} --cursor ${next}\n`);
}

const isPlain = ({ format }: ListingOptions): boolean => format === undefined || format === "table";

function receiverWords({ receiver, delivering, stopped }: JsonObject, command: string): string {
  if (typeof receiver !== "string") return "The configuration has no receiver.\n";
  if (typeof stopped === "string")
    return `No more notices are sent to ${receiver}: ${stopped}. To resume: ${command} webhook retry\n`;
  return delivering === true
    ? `This gateway delivers to ${receiver}.\n`
    : `Another gateway delivers to ${receiver}; failures that it saw are not shown here.\n`;
}

async function retryWebhook(admin: AdminClient): Promise<CommandResult> {
  const { body } = await admin.call("POST", "/notices/retry", {});
  return { json: body, text: `Waiting notices are retried now. To see what is left: ${admin.command} webhook list\n` };
}

/**
 * @param below US dollars, or `none` for the configured threshold.
 * @throws CliFailure 2 for anything else
 */
async function setThreshold(admin: AdminClient, name: string, below: string): Promise<CommandResult> {
  const sent = typedAmount("--below", below, "0");
  const typed = asTyped(admin, { below_usd: "--below" });
  const { body } = await typed.call("PUT", `/accounts/${segment(name)}/notify`, { below_usd: sent });
  const { name: shown, notify_below_usd: set } = body;
  const text =
    typeof set === "string"
      ? `A notice is sent when the balance of ${cell(shown)} falls below ${set} USD.\n`
      : `Balance notices of ${cell(shown)} use the configured threshold.\n`;
  return (await hasReceiver(admin)) ? { json: body, text } : { json: body, text, hint: NO_RECEIVER };
}

const NO_RECEIVER =
  "But the configuration has no receiver: no notice is sent until it has one (notices, docs/notices.md).\n";

/** Whether the gateway has a receiver for notices. True if it does not answer, because the threshold is already set. */
async function hasReceiver(admin: AdminClient): Promise<boolean> {
  try {
    const { receiver } = (await admin.call("GET", "/notices?limit=1")).body;
    return receiver !== null;
  } catch (error) {
    if (error instanceof CliFailure) return true;
    throw error;
  }
}

/** Defines `tollgate webhook`. */
export function addWebhookCommands(program: Command, ask: Ask): void {
  const group = program.command("webhook").description("notices: test the receiver, list waiting notices, retry them");
  group
    .command("test")
    .description("send a signed test notice to the receiver now; exit status 1 if it is not accepted")
    .action(() => ask(testWebhook));
  group
    .command("list")
    .description(
      "list waiting notices by account, with their age and the last error; all accounts, or a page with --limit or --cursor",
    )
    .option("--cursor <cursor>", "start of the next page, as shown by the page before")
    .option("--limit <count>", "accounts checked per page, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions) => ask((c) => listWaiting(c, options)));
  group
    .command("retry")
    .description("retry all waiting notices now")
    .action(() => ask(retryWebhook));
}

/** Defines `tollgate account notify`. */
export function addNotifyCommand(account: Command, ask: Ask): void {
  account
    .command("notify <name>")
    .description("set the balance below which a notice is sent to the configured webhook")
    .requiredOption("--below <amount>", "US dollars; 0: never, none: the configured threshold")
    .action((name: string, { below }: { below: string }) => ask((c) => setThreshold(c, name, below)));
}
