/** `tollgate account` and `tollgate topup`. */
import * as admin from "../admin-commands.ts";
import { type Ask, type Command, type ConfirmName, listingFormat, Option } from "../command-line.ts";
import { addAccountLimitCommand } from "../limits/limit-commands.ts";
import { addNotifyCommand } from "../notices/webhook-commands.ts";
import * as accounts from "./changes.ts";

/** Defines `tollgate account`. */
export function addAccountCommands(program: Command, ask: Ask, confirm: ConfirmName): void {
  const account = program
    .command("account")
    .description("accounts: create, list, show, change, limit, adjust, invite, sign-out, suspend, resume, close");
  account
    .command("create <name>")
    .description("create an account; safe to repeat")
    .option("--plan <plan>", "base plan; default: default_plan of the configuration")
    .action((name: string, options: { plan?: string }) => ask((c) => admin.createAccount(c, name, options.plan)));
  account
    .command("list")
    .description("list accounts by name; all, or a page with --limit or --cursor")
    .option(
      "--search <text>",
      "only accounts whose name or label value contains this text, or whose id or key id equals it",
    )
    .option("--label <label>", "only accounts with this label: team=red, or team for any value")
    .addOption(new Option("--status <status>", "only accounts with this status").choices(admin.ACCOUNT_STATUSES))
    .option("--cursor <cursor>", "start of the next page, as shown by the page before")
    .option("--limit <count>", "accounts per page, at most 200")
    .addOption(listingFormat())
    .action((options: admin.ListAccountsOptions) => ask((c) => admin.listAccounts(c, options)));
  account
    .command("show <name>")
    .description("show an account, its balance and its time cards")
    .action((name: string) => ask((c) => admin.showAccount(c, name)));
  account
    .command("set-plan <name> <plan>")
    .description("change an account's base plan, effective from the next request")
    .action((name: string, plan: string) => ask((c) => admin.setPlan(c, name, plan)));
  addAccountChanges(account, ask, confirm);
  addAccountLimitCommand(account, ask);
  account
    .command("adjust <name>")
    .description("add to or subtract from a balance; counts once per id")
    .requiredOption("--usd <amount>", "US dollars, such as -1.50")
    .requiredOption("--id <id>", "your id for this adjustment; safe to repeat")
    .requiredOption("--note <text>", "the reason; it is kept in the ledger")
    .action((name: string, options: { usd: string; id: string; note: string }) =>
      ask((c) => admin.adjust(c, { account: name, ...options })),
    );
  addNotifyCommand(account, ask);
}

function addAccountChanges(account: Command, ask: Ask, confirm: ConfirmName): void {
  account
    .command("rename <name> <new-name>")
    .description("rename an account; the old name becomes free")
    .action((name: string, to: string) => ask((c) => accounts.renameAccount(c, name, to)));
  account
    .command("label <name> <labels...>")
    .description("set labels (NAME=VALUE) or remove them (NAME=); they are for lists and searches")
    .action((name: string, pairs: string[]) => ask((c) => accounts.labelAccount(c, name, pairs)));
  account
    .command("invite <name>")
    .description("create a link with which an account's owner can sign in to the console once")
    .action((name: string) => ask((c) => accounts.inviteOwner(c, name)));
  account
    .command("sessions <name>")
    .description("list the sessions of an account's console, and its passkeys")
    .action((name: string) => ask((c) => accounts.listSessions(c, name)));
  account
    .command("sign-out <name>")
    .description("end all sessions of an account's console, and revoke its sign-in links")
    .option("--passkeys", "also remove its passkeys; then the owner needs a new link to sign in")
    .action((name: string, options: { passkeys?: true }) => ask((c) => accounts.signOutAccount(c, name, options)));
  account
    .command("suspend <name>")
    .description("suspend all keys of an account from the next request, until it is resumed")
    .action((name: string) => ask((c) => accounts.suspendAccount(c, name)));
  account
    .command("resume <name>")
    .description("resume a suspended account; its keys work again from the next request")
    .action((name: string) => ask((c) => accounts.resumeAccount(c, name)));
  account
    .command("close <name>")
    .description("close an account permanently: its keys are revoked, its ledger stays, funds can only be paid out")
    .option("--yes", "do not ask for the name as confirmation; without a terminal it is never asked")
    .action((name: string, { yes }: { yes?: true }) =>
      ask((c) => accounts.closeAccount(c, name, yes ? undefined : confirm)),
    );
}

/** Defines `tollgate topup`. */
export function addTopUpCommand(program: Command, ask: Ask): void {
  program
    .command("topup")
    .description("add funds to an account; counts once per payment id")
    .requiredOption("--account <name>", "the account")
    .requiredOption("--usd <amount>", "US dollars, such as 10.00")
    .requiredOption("--id <payment-id>", "the payment's id; safe to repeat")
    .action((options: admin.Payment) => ask((c) => admin.topUp(c, options)));
}
