/** `tollgate account` and `tollgate topup`: accounts, what is done to them, and their money. */
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
    .description("create an account; harmless to repeat")
    .option("--plan <plan>", "its base plan; the configuration's default_plan when left out")
    .action((name: string, options: { plan?: string }) => ask((c) => admin.createAccount(c, name, options.plan)));
  account
    .command("list")
    .description("list accounts by name; all of them unless a page is asked for")
    .option(
      "--search <text>",
      "those whose name or a label's value has this somewhere, or whose id, or key's id, it is",
    )
    .option("--label <label>", "those with this label: team=red, or team for any value")
    .addOption(new Option("--status <status>", "those of this status").choices(admin.ACCOUNT_STATUSES))
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "accounts on a page, at most 200")
    .addOption(listingFormat())
    .action((options: admin.ListAccountsOptions) => ask((c) => admin.listAccounts(c, options)));
  account
    .command("show <name>")
    .description("show an account, its balance and its time cards")
    .action((name: string) => ask((c) => admin.showAccount(c, name)));
  account
    .command("set-plan <name> <plan>")
    .description("change an account's base plan, from the next request on")
    .action((name: string, plan: string) => ask((c) => admin.setPlan(c, name, plan)));
  addAccountChanges(account, ask, confirm);
  addAccountLimitCommand(account, ask);
  account
    .command("adjust <name>")
    .description("correct a balance either way; counts once per id")
    .requiredOption("--usd <amount>", "US dollars, such as -1.50")
    .requiredOption("--id <id>", "your id of this adjustment; repeating it is harmless")
    .requiredOption("--note <text>", "why; the ledger keeps it")
    .action((name: string, options: { usd: string; id: string; note: string }) =>
      ask((c) => admin.adjust(c, { account: name, ...options })),
    );
  addNotifyCommand(account, ask);
}

function addAccountChanges(account: Command, ask: Ask, confirm: ConfirmName): void {
  account
    .command("rename <name> <new-name>")
    .description("give an account another name; the old one is free then")
    .action((name: string, to: string) => ask((c) => accounts.renameAccount(c, name, to)));
  account
    .command("label <name> <labels...>")
    .description("set labels, NAME=VALUE, or take them away, NAME=; for lists and searches")
    .action((name: string, pairs: string[]) => ask((c) => accounts.labelAccount(c, name, pairs)));
  account
    .command("invite <name>")
    .description("make a link that signs an account's owner in to the console, once")
    .action((name: string) => ask((c) => accounts.inviteOwner(c, name)));
  account
    .command("sessions <name>")
    .description("list who is signed in to an account's console, and its passkeys")
    .action((name: string) => ask((c) => accounts.listSessions(c, name)));
  account
    .command("sign-out <name>")
    .description("end all sessions of an account's console, and its sign-in links")
    .option("--passkeys", "remove its passkeys, too: only a new link lets its owner in then")
    .action((name: string, options: { passkeys?: true }) => ask((c) => accounts.signOutAccount(c, name, options)));
  account
    .command("suspend <name>")
    .description("refuse all keys of an account from the next request on, until it is resumed")
    .action((name: string) => ask((c) => accounts.suspendAccount(c, name)));
  account
    .command("resume <name>")
    .description("let the keys of a suspended account work again, from the next request on")
    .action((name: string) => ask((c) => accounts.resumeAccount(c, name)));
  account
    .command("close <name>")
    .description("close an account for good: its keys are revoked, its ledger stays, funds can only be paid out")
    .option("--yes", "do not ask a person at a terminal for the name again; scripts without one are not asked")
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
    .requiredOption("--id <payment-id>", "the payment's id; repeating it is harmless")
    .action((options: admin.Payment) => ask((c) => admin.topUp(c, options)));
}
