/** `tollgate code`, with its batches, and `tollgate card`. */
import type { PageOptions } from "../admin-commands.ts";
import { type Ask, type Command, listingFormat, ONCE, Option } from "../command-line.ts";
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
    .description("make codes and show them, this once; repeating makes others, or with an id none")
    .requiredOption("--card <card>", "the card kind of the configuration")
    .requiredOption("--count <count>", "how many, at most 1000")
    .option("--label <text>", "make them a batch that people call so")
    .option("--redeem-by <day>", "the last UTC day on which they can be redeemed, YYYY-MM-DD")
    .option("--idempotency-id <id>", ONCE)
    .addOption(
      new Option("--format <format>", "as text, for spreadsheets, or as a page to print")
        .choices(CODE_FORMATS)
        .default("text"),
    )
    .option("--output <file>", "write the codes there in place of showing them; a file that is there is never changed")
    .action((options: codes.NewCodesOptions) => ask((c) => codes.createCodes(c, options)));
  code
    .command("list")
    .description("list codes by id, without their text; all of them unless a page is asked for")
    .option("--batch <batch-id>", "those of a batch")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "codes on a page, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions & { batch?: string }) => ask((c) => codes.listCodes(c, options)));
  code
    .command("void <code-id>")
    .description("void a code that nobody has redeemed, for good")
    .action((id: string) => ask((c) => codes.voidCode(c, id)));
  code
    .command("redeem <code>")
    .description("redeem a code for an account; counts once")
    .requiredOption("--account <name>", "the account that gets the card")
    .action((text: string, options: { account: string }) => ask((c) => codes.redeemCode(c, text, options.account)));
  addBatchCommands(code, ask);
  addAccountCardCommands(program, ask);
}

function addBatchCommands(code: Command, ask: Ask): void {
  const batch = code.command("batch").description("batches of codes: list, show, void, report");
  batch
    .command("list")
    .description("list batches by id; all of them unless a page is asked for")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "batches on a page, at most 200")
    .addOption(listingFormat())
    .action((options: PageOptions & ListingOptions) => ask((c) => batches.listBatches(c, options)));
  batch
    .command("show <batch-id>")
    .description("show what a batch was made with")
    .action((id: string) => ask((c) => batches.showBatch(c, id)));
  batch
    .command("void <batch-id>")
    .description("void every code of a batch that nobody has redeemed, for good; harmless to repeat")
    .action((id: string) => ask((c) => batches.voidBatch(c, id), VOID_GOES_ON));
  batch
    .command("report <batch-id>")
    .description("what became of a batch's codes, and what was spent on their cards")
    .addOption(listingFormat())
    .action((id: string, options: ListingOptions) => ask((c) => batches.reportBatch(c, id, options)));
}

const VOID_GOES_ON = "Interrupted. Some codes may be void by now: the same command voids the rest.";

function addAccountCardCommands(program: Command, ask: Ask): void {
  const card = program.command("card").description("time cards of an account: list, gift");
  card
    .command("list [account]")
    .description("list an account's cards in the order in which they pay, and what comes after each")
    .option("--account <name>", "the account, as lists of keys and of ledgers name it")
    .addOption(listingFormat())
    .action((account: string | undefined, options: cards.ListCardsOptions) =>
      ask((c) => cards.listCards(c, account, options)),
    );
  card
    .command("gift <account> <card-kind>")
    .description("give an account a card without a code; counts once per id")
    .option("--id <id>", "your id of this gift; without one each repetition gives another card")
    .action((account: string, kind: string, options: { id?: string }) =>
      ask((c) => cards.giveCard(c, account, kind, options.id)),
    );
}
