/** `tollgate code`, with its batches, and `tollgate card`. */
import type { PageOptions } from "../admin-commands.ts";
import { type Ask, type Command, listingFormat, ONCE, Option, pathOf } from "../command-line.ts";
import type { ListingOptions } from "../output/listing.ts";
import * as batches from "./batches.ts";
import * as cards from "./cards.ts";
import * as codes from "./codes.ts";
import { CODE_FORMATS } from "./export.ts";

/** Defines `tollgate code` and `tollgate card`. */
export function addCardCommands(program: Command, ask: Ask): void {
  const code = program.command("code").description("codes of time cards: create, list, void, redeem, batches");
  code
    .command("create")
    .description("create codes and show them once; a repeat creates more, unless it has the same --idempotency-id")
    .requiredOption("--card <card>", "kind of card, as in the configuration")
    .requiredOption("--count <count>", "number of codes, at most 1000")
    .option("--label <text>", "make them a batch with this label")
    .option("--redeem-by <day>", "the last UTC day on which they can be redeemed, YYYY-MM-DD")
    .option("--idempotency-id <id>", ONCE)
    .addOption(
      new Option("--format <format>", "text, csv for spreadsheets, or html for a page to print")
        .choices(CODE_FORMATS)
        .default("text"),
    )
    .option(
      "--output <file>",
      "write the codes to this file instead of showing them; an existing file is never changed",
      pathOf,
    )
    .action((options: codes.NewCodesOptions) => ask((c) => codes.createCodes(c, options)));
  code
    .command("list")
    .description("list codes by id, without the codes themselves; all, or a page with --limit or --cursor")
    .option("--batch <batch-id>", "only codes of this batch")
    .option("--cursor <cursor>", "start of the next page, as shown by the page before")
    .option("--limit <count>", "codes per page, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions & { batch?: string }) => ask((c) => codes.listCodes(c, options)));
  code
    .command("void <code-id>")
    .description("permanently void a code that has not been redeemed")
    .action((id: string) => ask((c) => codes.voidCode(c, id)));
  code
    .command("redeem <code>")
    .description("redeem a code for an account; safe to repeat")
    .requiredOption("--account <name>", "the account that gets the card")
    .action((text: string, options: { account: string }) => ask((c) => codes.redeemCode(c, text, options.account)));
  addBatchCommands(code, ask);
  addAccountCardCommands(program, ask);
}

function addBatchCommands(code: Command, ask: Ask): void {
  const batch = code.command("batch").description("batches of codes: list, show, void, report");
  batch
    .command("list")
    .description("list batches by id; all, or a page with --limit or --cursor")
    .option("--cursor <cursor>", "start of the next page, as shown by the page before")
    .option("--limit <count>", "batches per page, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions) => ask((c) => batches.listBatches(c, options)));
  batch
    .command("show <batch-id>")
    .description("show the settings of a batch")
    .action((id: string) => ask((c) => batches.showBatch(c, id)));
  batch
    .command("void <batch-id>")
    .description("permanently void all codes of a batch that have not been redeemed; safe to repeat")
    .action((id: string) => ask((c) => batches.voidBatch(c, id), VOID_GOES_ON));
  batch
    .command("report <batch-id>")
    .description("show the states of a batch's codes, and the spending of their cards")
    .addOption(listingFormat())
    .action((id: string, options: ListingOptions) => ask((c) => batches.reportBatch(c, id, options)));
}

const VOID_GOES_ON = "Interrupted. Some codes may already be void; run the same command to void the rest.";

function addAccountCardCommands(program: Command, ask: Ask): void {
  const card = program.command("card").description("time cards of an account: list, gift");
  card
    .command("list [account]")
    .description("list an account's cards in the order in which they pay, with the card that follows each")
    .option("--account <name>", "the account, instead of the argument")
    .addOption(listingFormat())
    .action((account: string | undefined, options: cards.ListCardsOptions) =>
      ask((c) => cards.listCards(c, account, options)),
    );
  card
    .command("gift <account> <card-kind>")
    .description("give an account a card without a code; safe to repeat with the same --id")
    .option("--id <id>", "your id for this gift; without it, each repeat gives another card")
    .action((account: string, kind: string, options: { id?: string }) =>
      ask((c) => cards.giveCard(c, account, kind, options.id)),
    );
}
