/** `tollgate webhook` and `tollgate account notify`: notices, their receiver, and below which balance there is one. */

import type { JsonObject } from "../../values/json-object.ts";
import { COMMAND } from "../../values/program/program.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOrAll, withMore } from "../admin-commands.ts";
import { typedAmount } from "../amounts.ts";
import { type Ask, type Command, listingFormat } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { type ListingOptions, listing } from "../output/listing.ts";
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
  const how = delivered === true ? `taken with ${cell(status)}` : `not taken: ${cell(reason)}`;
  const text = `The test notice ${cell(id)} was ${how}, after ${cell(milliseconds)} ms.\n${cell(advice)}\n`;
  return delivered === true
    ? { json: body, text }
    : { json: body, text, failure: "The receiver does not take notices." };
}

async function listWaiting(admin: AdminClient, options: PageOptions & ListingOptions): Promise<CommandResult> {
  const body = await pageOrAll(admin, "/notices", options, {});
  const rows = itemsOf(body).map((row) => ({ ...row, account: row.account ?? "(the gateway)" }));
  const listed = listing(options, { columns: COLUMNS, rows, json: body, none: "No notice waits." });
  const text = listed + (isPlain(options) ? receiverWords(body) : "");
  return withMore(body, text, (next) => `More accounts: ${COMMAND} webhook list --cursor ${next}\n`);
}

const isPlain = ({ format }: ListingOptions): boolean => format === undefined || format === "table";

function receiverWords({ receiver, delivering, stopped }: JsonObject): string {
  if (typeof receiver !== "string") return "The configuration names no receiver.\n";
  if (typeof stopped === "string")
    return `None is sent to ${receiver} any more: ${stopped}. ${COMMAND} webhook retry\n`;
  return delivering === true
    ? `This gateway delivers to ${receiver}.\n`
    : `Another gateway delivers to ${receiver}; failures that it has seen are not shown here.\n`;
}

async function retryWebhook(admin: AdminClient): Promise<CommandResult> {
  const { body } = await admin.call("POST", "/notices/retry", {});
  return { json: body, text: `What waits is tried again now. See what is left with: ${COMMAND} webhook list\n` };
}

/**
 * @param below US dollars, or `none` for what the configuration says.
 * @throws CliFailure 2 for what is neither
 */
async function setThreshold(admin: AdminClient, name: string, below: string): Promise<CommandResult> {
  const sent = typedAmount("--below", below, "0");
  const typed = asTyped(admin, { below_usd: "--below" });
  const { body } = await typed.call("PUT", `/accounts/${segment(name)}/notify`, { below_usd: sent });
  const { name: shown, notify_below_usd: set } = body;
  const text =
    typeof set === "string"
      ? `There is a notice when the balance of ${cell(shown)} goes below ${set} USD.\n`
      : `There is a notice of ${cell(shown)}'s balance as the configuration says.\n`;
  return (await hasReceiver(admin)) ? { json: body, text } : { json: body, text, hint: NOBODY_IS_TOLD };
}

const NOBODY_IS_TOLD =
  "But the configuration names no receiver: nobody is told until it has one (notices, docs/notices.md).\n";

/** Whether the gateway has somebody to tell; taken for true where it does not say, since the threshold is set either way. */
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
  const group = program.command("webhook").description("notices: test their receiver, see what waits, try again");
  group
    .command("test")
    .description("send a signed test notice now; 1 when the receiver does not take it")
    .action(() => ask(testWebhook));
  group
    .command("list")
    .description("what waits, how old it is and why; all accounts unless a page is asked for")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "accounts that a page looks at, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions) => ask((c) => listWaiting(c, options)));
  group
    .command("retry")
    .description("try everything that waits again, now")
    .action(() => ask(retryWebhook));
}

/** Defines `tollgate account notify`. */
export function addNotifyCommand(account: Command, ask: Ask): void {
  account
    .command("notify <name>")
    .description("set below which balance there is a notice, by the webhook of the configuration")
    .requiredOption("--below <amount>", "US dollars; 0 is never, none what the configuration says")
    .action((name: string, { below }: { below: string }) => ask((c) => setThreshold(c, name, below)));
}
