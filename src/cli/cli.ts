/**
 * The command line. `serve`, `check`, `schema` and `simulator` are handed in; `init`, `completion` and `man` need no gateway,
 * and `health` asks whether one lives; the others ask a running gateway's admin API. Exit status: 0 done, 1 refused (the
 * reason on standard error), 2 usage.
 */
import { setTimeout } from "node:timers/promises";
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { BUILD } from "../values/program/program.ts";
import { PROTOCOL_NAMES } from "../values/protocol.ts";
import { CONFIG_FILE } from "../values/settings.ts";
import * as accounts from "./accounts/changes.ts";
import { type AdminClient, connectAdmin, type Env, type GatewayPlace } from "./admin-client.ts";
import * as admin from "./admin-commands.ts";
import { type ArchiveOptions, archiveLedgers } from "./archive/command.ts";
import { type AuditOptions, showAudit } from "./audit-command.ts";
import * as batches from "./cards/batches.ts";
import * as cards from "./cards/cards.ts";
import * as codes from "./cards/codes.ts";
import { CODE_FORMATS } from "./cards/export.ts";
import { type ExplainOptions, explainRequest } from "./explain-command.ts";
import { CliFailure } from "./failure.ts";
import type { Follower } from "./follow/follow.ts";
import { completionScript, SHELLS, type Shell } from "./guide/completion.ts";
import { examplesOf, guideOf } from "./guide/guide.ts";
import { manualPage } from "./guide/man.ts";
import { askHealth } from "./health-command.ts";
import { ADMIN_ADDRESS, type InitOptions, STORE, writeConfiguration } from "./init/init.ts";
import type { Keyboard } from "./init/questions.ts";
import * as keys from "./key-commands.ts";
import { type LedgerOptions, showOrExport } from "./ledger-commands.ts";
import { type AccountLimitOptions, type KeyLimitOptions, limitAccount, limitKey } from "./limits/limit-commands.ts";
import * as webhook from "./notices/webhook-commands.ts";
import { LISTING_FORMATS, type ListingOptions } from "./output/listing.ts";
import { bold, type ProgressOut, showsColours, Terminal } from "./output/terminal.ts";
import { RECONCILE, type ReconcileOptions, reconcile } from "./reconcile-command.ts";
import { confirmStore, storeStatus } from "./store-commands.ts";
import { showUpstreams } from "./upstreams-command.ts";
import { showUsage, type UsageOptions } from "./usage-command.ts";
import { type VerifyOptions, verifyLedger } from "./verify-command.ts";
import { showVersion } from "./version-command.ts";

/** Options of `serve` and `check`. */
export interface RunOptions {
  /** The configuration file as typed; undefined when none was named. */
  readonly config: string | undefined;
  readonly json: boolean;
  /** `serve`: log lines for people in place of JSON. */
  readonly pretty?: boolean;
}

/** Where output goes: a stream that says when it is full, and when it has room again. */
interface Out {
  write(text: string): unknown;
  once?(event: "drain", listener: () => void): unknown;
  /** Whether a person looks at it: only then is anything in bold. */
  readonly isTTY?: boolean | undefined;
}

/** The world as the command line sees it; nothing here is read from globals. */
export interface CliIo {
  readonly stdout: Out;
  readonly stderr: ProgressOut;
  /** Where a person types the answers to `init`; nobody does when left out. */
  readonly stdin?: Keyboard;
  readonly env: Env;
  readonly fetch: typeof fetch;
  /** Runs the gateway until it is stopped; rejects with the reason when it cannot. */
  readonly serve: (options: RunOptions) => Promise<void>;
  /** Checks the configuration and prints its complaints; gives the exit status. */
  readonly check: (options: RunOptions) => Promise<number>;
  /** What the loader says of a configuration, one complaint a line. @param set environment variables that count as set. */
  readonly complaints?: (file: string, text: string, set: readonly string[]) => readonly string[];
  /** Starts the simulated model server, which runs until it is stopped. @param port 0 is any free one. */
  readonly simulate?: (port: number) => Promise<void>;
  /** The JSON Schema of the configuration. */
  readonly schema?: () => Promise<string>;
  /** Waits between two tries; the machine's timer when left out. */
  readonly wait?: (ms: number) => Promise<void>;
  /**
   * Runs `clear` when the command is interrupted (Ctrl-C), before the process ends as interrupted ones do; the result takes
   * that back.
   */
  readonly onInterrupt?: (clear: () => void) => () => void;
  /** Runs `stop` in place of the process's end when a command that goes on is interrupted; the result takes that back. */
  readonly onStop?: (stop: () => void) => () => void;
}

/**
 * Runs one command.
 * @param argv the arguments after the program's name
 * @returns the exit status: 0, 1 or 2
 */
export async function runCli(argv: readonly string[], io: CliIo): Promise<number> {
  let exitStatus = 0;
  const program = buildProgram(io, (status) => {
    exitStatus = status;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitStatus;
  } catch (error) {
    // Commander has printed its own complaint, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof VersionAsked) {
      program.parseOptions(argv.filter((word) => !VERSION_FLAGS.includes(word)));
      const json = program.opts<GlobalOptions>().json === true;
      io.stdout.write(await showVersion(placeOf(program, io), { json }));
      return 0;
    }
    if (error instanceof CliFailure) {
      io.stderr.write(`${error.message}\n`);
      return error.exitStatus;
    }
    io.stderr.write(`tollgate: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

const VERSION_FLAGS = ["-V", "--version"];
/** Thrown at the flag, before all words are read: what it prints depends on the others. */
class VersionAsked extends Error {}

interface GlobalOptions {
  readonly json?: true;
  readonly data?: string;
  readonly admin?: string;
}

/** Where the gateway of this command line is looked for. */
function placeOf(program: Command, { env, fetch: ask }: Pick<CliIo, "env" | "fetch">): GatewayPlace {
  const { data, admin: address } = program.opts<GlobalOptions>();
  return { env, fetch: ask, data, admin: address };
}

function buildProgram(io: CliIo, setExitStatus: (status: number) => void): Command {
  const program = new Command("tollgate")
    .description("A model gateway sidecar: keys, groups, limits and exact bills behind one public URL.")
    .option(VERSION_FLAGS.join(", "), "the version; with --json also the build, and what the gateway there runs")
    .on("option:version", () => {
      throw new VersionAsked();
    })
    .option("--json", "print the answer as JSON")
    .option("--admin <address>", "the gateway's admin address (else TOLLGATE_ADMIN_URL, else http://127.0.0.1:8788)")
    .option("--data <dir>", "folder that holds the admin token (else TOLLGATE_DATA, else ./data, else ./data/demo)")
    .configureHelp({ showGlobalOptions: true, styleTitle: bold })
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHasColors: () => showsColours(io.stdout, io.env),
      getErrHasColors: () => showsColours(io.stderr, io.env),
    })
    .showHelpAfterError("Add --help for the options.")
    .exitOverride();

  addInitCommand(program, io);
  const runOptions = (options: { config?: string; pretty?: true }): RunOptions => ({
    config: options.config,
    ...(options.pretty && { pretty: true }),
    json: program.opts<GlobalOptions>().json ?? false,
  });
  program
    .command("serve")
    .description("run the gateway")
    .option(
      "--config <file>",
      `configuration file; ${CONFIG_FILE} when left out, and where there is none a demonstration`,
    )
    .option("--pretty", "log lines for people in place of JSON")
    .action(async (options: { config?: string; pretty?: true }) => io.serve(runOptions(options)));
  program
    .command("check")
    .description("check the configuration: names file, line, key and what is wrong")
    .option("--config <file>", `configuration file; ${CONFIG_FILE} when left out`)
    .action(async (options: { config?: string }) => setExitStatus(await io.check(runOptions(options))));
  addOwnCommands(program, io);

  const ask: Ask = async (question, interrupted) => {
    const { json } = program.opts<GlobalOptions>();
    const terminal = new Terminal(io.stderr, io.wait ?? setTimeout);
    const release = io.onInterrupt?.(() => (interrupted ? terminal.note(interrupted) : terminal.clear()));
    try {
      const outcome = await question(await connectAdmin(placeOf(program, io)), terminal);
      await print(io, outcome, json === true);
      if (!json && outcome.hint) io.stderr.write(outcome.hint);
      if (outcome.failure !== undefined) throw new CliFailure(1, outcome.failure);
    } finally {
      terminal.clear();
      release?.();
    }
  };
  const follow = followOf(program, io, ask);
  addAccountCommands(program, ask);
  addKeyCommands(program, ask);
  addFundsCommands(program, ask, follow);
  addCardCommands(program, ask);
  addSpendingCommands(program, ask);
  addExplainCommand(program, ask);
  addStoreCommands(program, ask);
  addWebhookCommands(program, ask);
  addSightCommands(program, ask, follow);
  addGuideCommands(program, io);
  addExamples(program);
  return program;
}

function followOf(program: Command, io: CliIo, ask: Ask): Follow {
  return async (question, { follow: isFollowing }) => {
    if (!isFollowing) return ask((client, terminal) => question(client, { terminal, ...AT_ONCE }));
    const stop = new AbortController();
    const release = io.onStop?.(() => stop.abort());
    const { json } = program.opts<GlobalOptions>();
    const terminal = new Terminal(io.stderr, io.wait ?? setTimeout);
    const place = placeOf(program, { ...io, fetch: stoppable(io.fetch, stop.signal) });
    try {
      const outcome = await question(await connectAdmin(place), {
        terminal,
        stop: stop.signal,
        pause: (ms) => pauseUntil(stop.signal, io.wait, ms),
      });
      await print(io, outcome, json === true);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      release?.();
    }
  };
}

/** What a gateway did and how its upstreams do. */
function addSightCommands(program: Command, ask: Ask, follow: Follow): void {
  program
    .command("audit")
    .description("the newest writes of operators and owners at this gateway, newest first; the log has them all")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "lines on a page, at most 200")
    .option("--last <count>", "the newest lines, at most 1000")
    .option("--since <when>", "no line before then: 24h, 7d, or an instant (2026-11-01T00:00:00Z)")
    .option("--follow", FOLLOW)
    .option("--every <duration>", EVERY, "1s")
    .addOption(listingFormat())
    .action((options: AuditOptions) => follow((c, follower) => showAudit(c, options, follower), options));
  program
    .command("upstreams")
    .description("how each upstream does at this gateway: health, requests in flight and waiting, recent outcomes")
    .addOption(listingFormat())
    .action((options: ListingOptions) => ask((c) => showUpstreams(c, options)));
}

/** What usage is summed up by, as the admin API names it; a test compares them. */
const USAGE_BY = ["account", "group", "model", "key", "day", "upstream"] as const;
const listingFormat = () =>
  new Option("--format <format>", "for people, programs or spreadsheets").choices(LISTING_FORMATS).default("table");

/** What needs no gateway, or no more of one than that it is there. */
function addOwnCommands(program: Command, io: CliIo): void {
  const { simulate, schema } = io;
  program
    .command("health")
    .description("whether a gateway is alive: exit status 0 or 1; for container images, which have no curl")
    .action(async () => void io.stdout.write(await askHealth(placeOf(program, io))));
  if (schema) {
    program
      .command("schema")
      .description("print the JSON Schema of the configuration, for editors")
      .action(async () => void io.stdout.write(await schema()));
  }
  if (simulate) {
    program
      .command("simulator")
      .description("run a simulated model server for chat completions, messages and responses, on loopback")
      .option("--port <port>", "where it listens; any free port when left out", portOf, 0)
      .action(async ({ port }: { port: number }) => simulate(port));
  }
}

function portOf(typed: string): number {
  const port = Number(typed);
  if (typed !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError("That is not a port.");
}

const END = "how long from now (30d, 12h), or an instant (2027-01-31T12:00:00Z)";
const ONCE = "your id of this request: sent again, it makes nothing and names what it made before";

/**
 * Connects, asks one question, prints its outcome.
 * @param interrupted what to print when the command is interrupted: the state that it leaves.
 */
type Ask = (
  question: (client: AdminClient, terminal: Terminal) => Promise<admin.CommandResult>,
  interrupted?: string,
) => Promise<void>;

/** The same for a command that goes on until it is interrupted, if it is told to. */
type Follow = (
  question: (client: AdminClient, follower: Follower) => Promise<admin.CommandResult>,
  options: { readonly follow?: true },
) => Promise<void>;

/** Of a command that does not go on. */
const AT_ONCE = { stop: AbortSignal.abort(), pause: async () => {} };
const FOLLOW =
  "the last lines, oldest first, and then new ones as they come, until it is interrupted; json: one a line";
const EVERY = "with --follow, how often to look for new lines";

function stoppable(fetcher: typeof fetch, stop: AbortSignal): typeof fetch {
  return (input, init) =>
    fetcher(input, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, stop]) : stop });
}

async function pauseUntil(stop: AbortSignal, wait: CliIo["wait"], ms: number): Promise<void> {
  if (!wait) return setTimeout(ms, undefined, { signal: stop }).catch(() => {});
  const stopped = new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
  if (!stop.aborted) await Promise.race([wait(ms), stopped]);
}

/** Writes what a command has to say; a long output as fast as it is taken. */
async function print(
  { stdout: out, env }: CliIo,
  { json, text, pieces }: admin.CommandResult,
  asJson: boolean,
): Promise<void> {
  if (!pieces) {
    const words = showsColours(out, env) ? text.replace(TABLE_HEADING, bold) : text;
    out.write(asJson ? `${JSON.stringify(json)}\n` : words);
    return;
  }
  for await (const piece of pieces(asJson)) {
    if (out.write(piece) === false && out.once) await new Promise<void>((resolve) => out.once?.("drain", resolve));
  }
}

/** The line above a table's rows. */
const TABLE_HEADING = /^[A-Z][A-Z, ]*[A-Z]$/m;

function addInitCommand(program: Command, io: CliIo): void {
  program
    .command("init")
    .description("write a first tollgate.yaml: asks three questions on a terminal, or takes flags")
    .option("--config <file>", "the file to write; one that is there is never changed", CONFIG_FILE)
    .option("--base-url <url>", "address of the model server, up to and including /v1")
    .option("--model <name>", "the model that clients may use, as its server names it")
    .option("--api-key-env <variable>", "environment variable that holds the server's API key")
    .addOption(
      new Option("--protocol <protocol>", "what the model server speaks").choices(PROTOCOL_NAMES).default("chat"),
    )
    .option("--listen <address>", "where clients come in", "127.0.0.1:8787")
    .option("--store <address>", "embedded:DIR, or a Redis that several gateways share", STORE)
    .action(async (options: Omit<InitOptions, "admin">) => {
      const { stdin: keyboard, stderr: screen, complaints = () => [] } = io;
      // Here it is the address that will be, with the words of all other commands.
      const { json, admin: address = ADMIN_ADDRESS } = program.opts<GlobalOptions>();
      const written = await writeConfiguration({ ...options, admin: address }, { keyboard, screen, complaints });
      await print(io, written, json === true);
      if (written.hint) screen.write(written.hint);
    });
}

function addGuideCommands(program: Command, io: CliIo): void {
  program
    .command("completion")
    .description("print the script by which a shell completes commands and options")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action((shell: Shell) => void io.stdout.write(completionScript(shell, guideOf(program))));
  program
    .command("man")
    .description("print the manual page, for man(1)")
    .action(() => void io.stdout.write(manualPage(guideOf(program), BUILD.version)));
}

/** Below the help of each command that has examples. */
function addExamples(command: Command, path: readonly string[] = []): void {
  const examples = examplesOf(path).map((line) => `  ${line}`);
  if (examples.length > 0) command.addHelpText("after", ["", bold("Examples:"), ...examples].join("\n"));
  for (const below of command.commands) addExamples(below, [...path, below.name()]);
}

const NOTHING_CHANGED = "Interrupted; nothing was changed.";
const ARCHIVE_GOES_ON = "Interrupted. No line is lost: the same command goes on where this one has stopped.";

function addAccountCommands(program: Command, ask: Ask): void {
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
    .option("--search <text>", "those whose name or a label's value has this somewhere")
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
  addAccountChanges(account, ask);
  account
    .command("limit <name>")
    .description("limit what all keys of an account spend; what is not named stays as it is, none takes a limit away")
    .option("--day <usd>", "the most in a UTC day")
    .option("--month <usd>", "the most in a calendar month, UTC")
    .option("--clear", "take away all that is not named")
    .action((name: string, options: AccountLimitOptions) => ask((c) => limitAccount(c, name, options)));
  account
    .command("adjust <name>")
    .description("correct a balance either way; counts once per id")
    .requiredOption("--usd <amount>", "US dollars, such as -1.50")
    .requiredOption("--id <id>", "your id of this adjustment; repeating it is harmless")
    .requiredOption("--note <text>", "why; the ledger keeps it")
    .action((name: string, options: { usd: string; id: string; note: string }) =>
      ask((c) => admin.adjust(c, { account: name, ...options })),
    );
  account
    .command("notify <name>")
    .description("set below which balance there is a notice, by the webhook of the configuration")
    .requiredOption("--below <amount>", "US dollars; 0 is never, none what the configuration says")
    .action((name: string, { below }: { below: string }) => ask((c) => webhook.setThreshold(c, name, below)));
}

function addWebhookCommands(program: Command, ask: Ask): void {
  const group = program.command("webhook").description("notices: test their receiver, see what waits, try again");
  group
    .command("test")
    .description("send a signed test notice now; 1 when the receiver does not take it")
    .action(() => ask(webhook.testWebhook));
  group
    .command("list")
    .description("what waits, how old it is and why; all accounts unless a page is asked for")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "accounts that a page looks at, at most 200")
    .addOption(listingFormat())
    .action((options: admin.PageOptions & ListingOptions) => ask((c) => webhook.listWaiting(c, options)));
  group
    .command("retry")
    .description("try everything that waits again, now")
    .action(() => ask(webhook.retryWebhook));
}

function addAccountChanges(account: Command, ask: Ask): void {
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
    .action((name: string) => ask((c) => accounts.closeAccount(c, name)));
}

function addKeyCommands(program: Command, ask: Ask): void {
  const key = program.command("key").description("keys: create, list, change, limit, rotate, suspend, resume, revoke");
  key
    .command("create")
    .description("create a key and show it, this once; repeating makes another key, or with an id none")
    .requiredOption("--account <name>", "the account that pays")
    .requiredOption("--group <group>", "the group that decides what the key may use")
    .option("--name <name>", "what people call it")
    .option("--expires <when>", END)
    .option("--idempotency-id <id>", ONCE)
    .action((options: keys.NewKeyOptions) => ask((c) => keys.createKey(c, options)));
  key
    .command("list")
    .description("list an account's keys, without their text")
    .requiredOption("--account <name>", "the account")
    .option("--search <text>", "those whose name has this somewhere")
    .option("--group <group>", "those of this group")
    .addOption(new Option("--status <status>", "those of this status").choices(keys.KEY_STATUSES))
    .addOption(listingFormat())
    .action((options: keys.ListKeysOptions) => ask((c) => keys.listKeys(c, options)));
  key
    .command("set-group <key-id> <group>")
    .description("move a key to another group, from its next request on")
    .action((id: string, group: string) => ask((c) => keys.setKeyGroup(c, id, group)));
  key
    .command("rename <key-id> [name]")
    .description("give a key a name for people; without one, take it away")
    .action((id: string, name: string | undefined) => ask((c) => keys.renameKey(c, id, name)));
  key
    .command("expire <key-id> <when>")
    .description(`let a key end: ${END}, or never`)
    .action((id: string, when: string) => ask((c) => keys.setKeyExpiry(c, id, when)));
  addKeyLimitCommand(key, ask);
  key
    .command("rotate <key-id>")
    .description("give a key a new value and show it, this once; the old one works on for a while")
    .option("--overlap <duration>", "how long the old value works: 24h, 30m, 0", "24h")
    .action((id: string, options: { overlap: string }) => ask((c) => keys.rotateKey(c, id, options.overlap)));
  key
    .command("suspend <key-id>")
    .description("refuse a key from its next request on, until it is resumed")
    .action((id: string) => ask((c) => keys.suspendKey(c, id)));
  key
    .command("resume <key-id>")
    .description("let a suspended key work again, from its next request on")
    .action((id: string) => ask((c) => keys.resumeKey(c, id)));
  key
    .command("revoke <key-id>")
    .description("revoke a key for good, from its next request on")
    .action((id: string) => ask((c) => keys.revokeKey(c, id)));
}

function addKeyLimitCommand(key: Command, ask: Ask): void {
  key
    .command("limit <key-id>")
    .description("limit a key beside its group; what is not named stays as it is, none takes a limit away")
    .option("--day <usd>", "the most that it spends in a UTC day")
    .option("--week <usd>", "the most in a week from Monday, UTC")
    .option("--month <usd>", "the most in a calendar month, UTC")
    .option("--total <usd>", "the most in all")
    .option("--requests <count>", "requests per minute")
    .option("--tokens <count>", "tokens per minute")
    .option("--concurrency <count>", "requests at once")
    .option("--models <names>", "models that it may use, with commas; a final * stands for any ending")
    .option("--from <addresses>", "addresses and CIDR blocks that it may be used from, with commas")
    .option("--cap", "change the operator's caps: what the owner sets counts within them")
    .option("--clear", "take away all that is not named")
    .action((id: string, options: KeyLimitOptions) => ask((c) => limitKey(c, id, options)));
}

function addFundsCommands(program: Command, ask: Ask, follow: Follow): void {
  program
    .command("topup")
    .description("add funds to an account; counts once per payment id")
    .requiredOption("--account <name>", "the account")
    .requiredOption("--usd <amount>", "US dollars, such as 10.00")
    .requiredOption("--id <payment-id>", "the payment's id; repeating it is harmless")
    .action((options: admin.Payment) => ask((c) => admin.topUp(c, options)));
  const ledger = program.command("ledger").description("the ledger: every movement of money");
  ledger
    .command("show")
    .description("show an account's ledger, oldest first, a page at a time")
    .requiredOption("--account <name>", "the account")
    .option("--last <count>", "the newest lines, newest first, at most 1000")
    .option("--since <when>", "no line before then, newest first: 24h, 7d, or an instant (2026-11-01T00:00:00Z)")
    .option("--before <seq>", "with --last or --since, lines below this one")
    .option("--after <seq>", "show what comes after this line")
    .option("--limit <count>", "lines on a page, at most 1000")
    .option("--follow", FOLLOW)
    .option("--every <duration>", EVERY, "1s")
    .option("--attempts", "the tries at upstreams behind the charges, with what each cost and who pays")
    .addOption(
      new Option("--format <format>", "a page as a table, or the whole ledger as csv or json")
        .choices(LISTING_FORMATS)
        .default("table"),
    )
    .action((options: LedgerOptions) => follow((c, follower) => showOrExport(c, options, follower), options));
  ledger
    .command("verify")
    .description("compare balances, sums and charges with the ledger's lines; 1 when something is off")
    .option("--account <name>", "one account, with its trial balance; all of them when left out")
    .option("--archive <dir>", "go through the files of the archive, too, from the very first line")
    .addOption(listingFormat())
    .action((options: VerifyOptions) => ask((c, terminal) => verifyLedger(c, options, terminal), NOTHING_CHANGED));
  ledger
    .command("archive")
    .description("move old lines into files; an opening line takes their place; harmless to repeat")
    .requiredOption("--before <day>", "lines of before this UTC day, which began at least 96 hours ago")
    .requiredOption("--to <dir>", "the folder of the archive; keep all its files together")
    .option("--account <name>", "of one account; of all when left out")
    .action((options: ArchiveOptions) => ask((c, terminal) => archiveLedgers(c, options, terminal), ARCHIVE_GOES_ON));
}

function addExplainCommand(program: Command, ask: Ask): void {
  program
    .command("explain")
    .description("what would become of a request: path, answer, price, routes; nothing is sent or charged")
    .requiredOption("--key-id <id>", "the key that would send it, by its id")
    .requiredOption("--model <model>", "the model as the client names it")
    .addOption(
      new Option("--protocol <protocol>", "the protocol that it would speak")
        .choices(PROTOCOL_NAMES)
        .makeOptionMandatory(),
    )
    .option("--max-tokens <count>", "the client's output limit; the model's default when left out")
    .option("--input-bytes <count>", "size of the body; a short one when left out")
    .action((options: ExplainOptions) => ask((c) => explainRequest(c, options)));
}

function addStoreCommands(program: Command, ask: Ask): void {
  const store = program.command("store").description("the store: whether it has all of its data");
  store
    .command("status")
    .description("is the store the one that it was, and if not, what differs")
    .action(() => ask(storeStatus));
  store
    .command("confirm <seen>")
    .description("use a store that lost data as it is; SEEN is what status shows")
    .action((seen: string) => ask((c) => confirmStore(c, seen)));
}

function addCardCommands(program: Command, ask: Ask): void {
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
    .action((options: admin.PageOptions & ListingOptions & { batch?: string }) =>
      ask((c) => codes.listCodes(c, options)),
    );
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
    .action((options: admin.PageOptions & ListingOptions) => ask((c) => batches.listBatches(c, options)));
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
    .command("list <account>")
    .description("list an account's cards in the order in which they pay, and what comes after each")
    .addOption(listingFormat())
    .action((account: string, options: ListingOptions) => ask((c) => cards.listCards(c, account, options)));
  card
    .command("gift <account> <card-kind>")
    .description("give an account a card without a code; counts once per id")
    .option("--id <id>", "your id of this gift; without one each repetition gives another card")
    .action((account: string, kind: string, options: { id?: string }) =>
      ask((c) => cards.giveCard(c, account, kind, options.id)),
    );
}

function addSpendingCommands(program: Command, ask: Ask): void {
  program
    .command("usage")
    .description("what was spent, by account or by another thing, per UTC day of the request")
    .option("--account <name>", "of one account; of all when left out")
    .addOption(new Option("--by <thing>", "what to sum up by; account when left out").choices(USAGE_BY))
    .option("--since <day>", "the first day, YYYY-MM-DD; 30 days when left out")
    .option("--until <day>", "the last day; today when left out")
    .addOption(new Option("--format <format>", "how to print it").choices(LISTING_FORMATS).default("table"))
    .action((options: UsageOptions) => ask((c, terminal) => showUsage(c, options, terminal)));
  const comparing = program.command("reconcile").description(RECONCILE.description);
  for (const [flags, words] of RECONCILE.required) comparing.requiredOption(flags, words);
  for (const [flags, words, standard] of RECONCILE.options) comparing.option(flags, words, standard);
  comparing.addOption(listingFormat());
  comparing.action((options: ReconcileOptions) => ask((c, terminal) => reconcile(c, options, terminal)));
}
