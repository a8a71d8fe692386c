/**
 * The command line: each command is defined beside what it runs (`command-line.ts`), and put together here. `serve`, `check`,
 * `schema` and `simulator` are handed in; `init`, `completion` and `man` need no gateway, and `health` asks whether one lives;
 * the others ask a running gateway's admin API. Exit status: 0 done, 1 refused (the reason on standard error), 2 usage.
 */

import { setTimeout } from "node:timers/promises";
import { errorText } from "../values/program/error-text.ts";
import { CONFIG_FILE } from "../values/settings.ts";
import { addAccountCommands, addTopUpCommand } from "./accounts/commands.ts";
import { connectAdmin, type Env, type GatewayPlace } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import { addAuditCommand } from "./audit-command.ts";
import { addCardCommands } from "./cards/commands.ts";
import {
  type Ask,
  Command,
  CommanderError,
  type ConfirmName,
  type Follow,
  InvalidArgumentError,
  type Own,
} from "./command-line.ts";
import { addExplainCommand } from "./explain-command.ts";
import { CliFailure } from "./failure.ts";
import { addExamples, addGuideCommands } from "./guide/commands.ts";
import { askHealth } from "./health-command.ts";
import { ADMIN_ADDRESS, addInitCommand, type InitOptions, writeConfiguration } from "./init/init.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addLedgerCommands } from "./ledger-commands.ts";
import { addWebhookCommands } from "./notices/webhook-commands.ts";
import { askAll, type Keyboard } from "./output/questions.ts";
import { bold, type ProgressOut, showsColours, Terminal } from "./output/terminal.ts";
import { addReconcileCommand } from "./reconcile-command.ts";
import { addStoreCommands } from "./store-commands.ts";
import { addUpstreamsCommand } from "./upstreams-command.ts";
import { addUsageCommand } from "./usage-command.ts";
import { showVersion } from "./version-command.ts";

/** Options of `serve` and `check`. */
export interface RunOptions {
  /** The configuration file as typed; undefined when none was named. */
  readonly config: string | undefined;
  readonly json: boolean;
  /** `serve`: log lines for people in place of JSON. */
  readonly pretty?: boolean;
  /** `check`: asks the store, too. */
  readonly store?: boolean;
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
    io.stderr.write(`tollgate: ${errorText(error)}\n`);
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
    .option(
      "--admin <address>",
      "the gateway's admin address or unix:/path (else TOLLGATE_ADMIN_URL, else http://127.0.0.1:8788)",
    )
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

  addInitCommand(program, (options) => writeFirst(program, io, options));
  addRunCommands(program, io, setExitStatus);
  addOwnCommands(program, io);

  const ask = askOf(program, io);
  const follow = followOf(program, io, ask);
  addAccountCommands(program, ask, confirmOf(io));
  addKeyCommands(program, ask);
  addTopUpCommand(program, ask);
  addLedgerCommands(program, ask, follow);
  addCardCommands(program, ask);
  addUsageCommand(program, ask);
  addReconcileCommand(program, ask);
  addExplainCommand(program, ask);
  addStoreCommands(program, ask, ownOf(program, io));
  addWebhookCommands(program, ask);
  addAuditCommand(program, follow);
  addUpstreamsCommand(program, ask);
  addGuideCommands(program, io.stdout);
  addExamples(program);
  return program;
}

/** What `main.ts` runs itself. */
function addRunCommands(program: Command, io: CliIo, setExitStatus: (status: number) => void): void {
  const runOptions = ({ config, ...more }: { config?: string; pretty?: true; store?: true }): RunOptions => {
    const { json = false, ...placed } = program.opts<GlobalOptions>();
    refusePlace(placed);
    return { config, ...more, json };
  };
  program
    .command("serve")
    .configureHelp(withoutPlace(program))
    .description("run the gateway")
    .option(
      "--config <file>",
      `configuration file; ${CONFIG_FILE} when left out, and where there is none a demonstration`,
    )
    .option("--pretty", "log lines for people in place of JSON")
    .action(async (options: { config?: string; pretty?: true }) => io.serve(runOptions(options)));
  program
    .command("check")
    .configureHelp(withoutPlace(program))
    .description("check the configuration: names file, line, key and what is wrong")
    .option("--config <file>", `configuration file; ${CONFIG_FILE} when left out`)
    .option("--store", "ask a store on Redis, too: whether it lets us in and can be used; nothing is written")
    .action(async (options: { config?: string; store?: true }) => setExitStatus(await io.check(runOptions(options))));
}

/** @throws CliFailure 2 for options that say where a gateway is found, of a command that reads that in its configuration. */
function refusePlace({ admin, data }: GlobalOptions): void {
  if (admin !== undefined) {
    const demo = "TOLLGATE_ADMIN in the environment, where there is no file";
    throw new CliFailure(
      2,
      `--admin is for commands that ask a gateway. Its own address is \`admin\` of the file (${demo}).`,
    );
  }
  if (data !== undefined) {
    throw new CliFailure(
      2,
      "--data is for commands that ask a gateway. Its own folder is in `store` of the file: embedded:DIR.",
    );
  }
}

/** Help of a command to which those options say nothing. */
function withoutPlace(program: Command): ReturnType<Command["configureHelp"]> {
  const place = ["--admin", "--data"];
  return {
    ...program.configureHelp(),
    visibleGlobalOptions: (command) =>
      program
        .createHelp()
        .visibleGlobalOptions(command)
        .filter(({ long }) => !place.includes(long ?? "")),
  };
}

function askOf(program: Command, io: CliIo): Ask {
  return async (question, interrupted) => {
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
}

function confirmOf(io: CliIo): ConfirmName {
  return async (question) => {
    const { stdin: keyboard, stderr: screen } = io;
    // A question that nobody sees would be waited on for good.
    if (!keyboard?.isTTY || !screen.isTTY) return;
    const asked = await question();
    if (asked === undefined) return;
    const unanswered = "Nothing was done.";
    const [typed] = await askAll([asked], keyboard, screen, unanswered);
    if (typed !== asked.name) throw new CliFailure(1, `That is not ${asked.name}. ${unanswered}`);
  };
}

function ownOf(program: Command, io: CliIo): Own {
  return async (work) => print(io, await work(placeOf(program, io)), program.opts<GlobalOptions>().json === true);
}

function followOf(program: Command, io: CliIo, ask: Ask): Follow {
  return async (question, { follow: isFollowing }) => {
    if (!isFollowing) return ask((client, terminal) => question(client, { terminal, ...AT_ONCE }));
    const stop = new AbortController();
    const release = io.onStop?.(() => stop.abort());
    const { json } = program.opts<GlobalOptions>();
    const terminal = new Terminal(io.stderr, io.wait ?? setTimeout);
    const place = { ...placeOf(program, io), stop: stop.signal };
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

/** What needs no gateway, or no more of one than that it is there. */
function addOwnCommands(program: Command, io: CliIo): void {
  const { simulate, schema } = io;
  program
    .command("health")
    .description("whether a gateway is alive: exit status 0 or 1; for container images, which have no curl")
    .action(() => ownOf(program, io)(askHealth));
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

/** Of a command that does not go on. */
const AT_ONCE = { stop: AbortSignal.abort(), pause: async () => {} };

async function pauseUntil(stop: AbortSignal, wait: CliIo["wait"], ms: number): Promise<void> {
  if (!wait) return setTimeout(ms, undefined, { signal: stop }).catch(() => {});
  const stopped = new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
  if (!stop.aborted) await Promise.race([wait(ms), stopped]);
}

/** Writes what a command has to say; a long output as fast as it is taken. */
async function print(
  { stdout: out, env }: CliIo,
  { json, text, pieces }: CommandResult,
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

async function writeFirst(program: Command, io: CliIo, options: Omit<InitOptions, "admin">): Promise<void> {
  const { stdin: keyboard, stderr: screen, complaints = () => [] } = io;
  // Here it is the address that will be, with the words of all other commands.
  const { json, admin = ADMIN_ADDRESS } = program.opts<GlobalOptions>();
  const written = await writeConfiguration({ ...options, admin }, { keyboard, screen, complaints });
  await print(io, written, json === true);
  if (written.hint) screen.write(written.hint);
}
