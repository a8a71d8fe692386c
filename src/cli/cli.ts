/**
 * The command line. Each command is defined in the file that runs it (`command-line.ts`) and registered here. `serve`,
 * `check`, `schema` and `simulator` are passed in. `init`, `completion` and `man` need no gateway, and `health` checks
 * whether one is alive. All others use a running gateway's admin API. Exit status: 0 done, 1 refused (the reason is on
 * standard error), 2 wrong usage.
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
  optionHelp,
  pathOf,
  refuseIgnored,
  requireAtOnce,
} from "./command-line.ts";
import { addExplainCommand } from "./explain-command.ts";
import { CliFailure } from "./failure.ts";
import { addExamples, addGuideCommands } from "./guide/commands.ts";
import { askHealth } from "./health-command.ts";
import { ADMIN_ADDRESS, addInitCommand, type InitOptions, writeConfiguration } from "./init/init.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addLedgerCommands } from "./ledger-commands.ts";
import { refuseRepeated, showFormAfterErrors, wordsOf } from "./misuse/misuse.ts";
import { addWebhookCommands } from "./notices/webhook-commands.ts";
import { askAll, type Keyboard } from "./output/questions.ts";
import { bold, type ProgressOut, showsColors, Terminal } from "./output/terminal.ts";
import { addReconcileCommand } from "./reconcile-command.ts";
import { addStoreCommands } from "./store-commands.ts";
import { asTypedTo } from "./typed-names.ts";
import { addUpstreamsCommand } from "./upstreams-command.ts";
import { addUsageCommand } from "./usage-command.ts";
import { showVersion } from "./version-command.ts";

/** Options of `serve` and `check`. */
export interface RunOptions {
  /** The configuration file as typed; undefined if none was given. */
  readonly config: string | undefined;
  readonly json: boolean;
  /** `serve`: log lines for people instead of JSON. */
  readonly pretty?: boolean;
  /** `check`: also checks the store. */
  readonly store?: boolean;
}

/** Where output goes: a stream with backpressure. */
interface Out {
  write(text: string): unknown;
  once?(event: "drain", listener: () => void): unknown;
  /** Whether it is a terminal: only then are headings in bold. */
  readonly isTTY?: boolean | undefined;
}

/** Everything that the command line uses from outside; nothing is read from globals. */
export interface CliIo {
  readonly stdout: Out;
  readonly stderr: ProgressOut;
  /** Where a person types the answers to `init`; undefined: not interactive. */
  readonly stdin?: Keyboard;
  readonly env: Env;
  readonly fetch: typeof fetch;
  /** Runs the gateway until it is stopped; rejects with the reason if it cannot start. */
  readonly serve: (options: RunOptions) => Promise<void>;
  /** Checks the configuration and prints its problems; returns the exit status. */
  readonly check: (options: RunOptions) => Promise<number>;
  /** The problems of a configuration, one per line. @param set environment variables that count as set. */
  readonly complaints?: (file: string, text: string, set: readonly string[]) => readonly string[];
  /** Runs the simulated upstream until it is stopped. @param port 0: any free port. */
  readonly simulate?: (port: number) => Promise<void>;
  /** The JSON Schema of the configuration. */
  readonly schema?: () => Promise<string>;
  /** Waits between two attempts; default: a timer. */
  readonly wait?: (ms: number) => Promise<void>;
  /**
   * Runs `clear` if the command is interrupted (Ctrl-C), before the process ends. The returned function cancels that.
   */
  readonly onInterrupt?: (clear: () => void) => () => void;
  /**
   * Runs `stop` instead of ending the process if a command with `--follow` is interrupted. The returned function
   * cancels that.
   */
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
    await parse(program, argv, io);
    return exitStatus;
  } catch (error) {
    // Commander has already printed its error message or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CliFailure) {
      io.stderr.write(`${error.message}\n`);
      return error.exitStatus;
    }
    io.stderr.write(`tollgate: ${errorText(error)}\n`);
    return 1;
  }
}

const VERSION_FLAGS = ["-V", "--version"];
/** Thrown at the flag, before all arguments are parsed: the output depends on the other options. */
class VersionAsked extends Error {}

/** Parses the arguments and runs their command. */
async function parse(program: Command, argv: readonly string[], io: CliIo): Promise<void> {
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof VersionAsked)) throw error;
    program.parseOptions(argv.filter((word) => !VERSION_FLAGS.includes(word)));
    const { json = false, ...place } = program.opts<GlobalOptions>();
    const ignored = PLACE.find((name) => place[name] !== undefined);
    if (!json && ignored !== undefined) program.error(`error: --version uses --${ignored} only with --json`);
    io.stdout.write(await showVersion(placeOf(program, io), { json }));
  }
}

interface GlobalOptions {
  readonly json?: true;
  readonly data?: string;
  readonly admin?: string;
}

/** Where this command looks for its gateway. */
function placeOf(program: Command, { env, fetch: ask }: Pick<CliIo, "env" | "fetch">): GatewayPlace {
  const { data, admin: address } = program.opts<GlobalOptions>();
  return { env, fetch: ask, data, admin: address };
}

function buildProgram(io: CliIo, setExitStatus: (status: number) => void): Command {
  const program = new Command("tollgate")
    .description("A model gateway sidecar: keys, groups, limits and exact bills behind one public URL.")
    .option(
      VERSION_FLAGS.join(", "),
      "show the version; with --json also the build, and the version of the running gateway",
    )
    .on("option:version", () => {
      throw new VersionAsked();
    })
    .option("--json", "print the answer as JSON")
    .option(
      "--admin <address>",
      "the gateway's admin address or unix:PATH; default: TOLLGATE_ADMIN_URL, or http://127.0.0.1:8788",
    )
    .option("--data <dir>", "folder that holds the admin token; default: TOLLGATE_DATA, or ./data, then ./data/demo")
    .configureHelp({ showGlobalOptions: true, styleTitle: bold, optionDescription: optionHelp })
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHasColors: () => showsColors(io.stdout, io.env),
      getErrHasColors: () => showsColors(io.stderr, io.env),
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
  requireAtOnce(program);
  refuseIgnored(program, () => program.opts<GlobalOptions>().json === true);
  refuseUnused(program);
  refuseRepeated(program);
  showFormAfterErrors(program);
  return program;
}

/** The commands that `main.ts` runs. */
function addRunCommands(program: Command, io: CliIo, setExitStatus: (status: number) => void): void {
  const runOptions = ({ config, ...more }: { config?: string; pretty?: true; store?: true }): RunOptions => {
    const { json = false, ...placed } = program.opts<GlobalOptions>();
    refusePlace(placed);
    return { config, ...more, json };
  };
  program
    .command("serve")
    .configureHelp(without(program, PLACE))
    .description("run the gateway")
    .option(
      "--config <file>",
      `configuration file; default: ${CONFIG_FILE}, or a demonstration if there is no such file`,
      pathOf,
    )
    .option("--pretty", "log lines for people instead of JSON")
    .action(async (options: { config?: string; pretty?: true }, command: Command) => {
      if (options.pretty && program.opts<GlobalOptions>().json)
        command.error("error: --json and --pretty are two forms of the log; use one of them");
      return io.serve(runOptions(options));
    });
  program
    .command("check")
    .configureHelp(without(program, PLACE))
    .description("check the configuration; names each problem with file, line and key")
    .option("--config <file>", `configuration file; default: ${CONFIG_FILE}`, pathOf)
    .option("--store", "also check whether a Redis store accepts the credentials and can be used; nothing is written")
    .action(async (options: { config?: string; store?: true }) => setExitStatus(await io.check(runOptions(options))));
}

/** @throws CliFailure 2 for options that locate a gateway, if the command takes its address from the configuration. */
function refusePlace({ admin, data }: GlobalOptions): void {
  if (admin !== undefined) {
    const demo = "without a file: the environment variable TOLLGATE_ADMIN";
    throw new CliFailure(
      2,
      `--admin is for commands that call a running gateway. To set the gateway's own address, use \`admin\` in the file (${demo}).`,
    );
  }
  if (data !== undefined) {
    throw new CliFailure(
      2,
      "--data is for commands that call a running gateway. To set the gateway's own folder, use `store` in the file: embedded:DIR.",
    );
  }
}

/** Options that locate a gateway. */
const PLACE = ["admin", "data"] as const;

/** Global options that a command does not use, by the words of the command. */
const UNUSED: Readonly<Record<string, readonly (keyof GlobalOptions)[]>> = {
  init: ["data"],
  health: ["data"],
  "store backup": ["admin"],
  schema: PLACE,
  simulator: [...PLACE, "json"],
  completion: [...PLACE, "json"],
  man: [...PLACE, "json"],
};

/** Refuses global options that the command would ignore, and leaves them out of its help. */
function refuseUnused(program: Command): void {
  for (const command of program.commands.flatMap((one) => [one, ...one.commands])) {
    const names = UNUSED[wordsOf(command)];
    if (names) command.configureHelp(without(program, names));
  }
  program.hook("preAction", (_program, command) => {
    const words = wordsOf(command);
    const typed = UNUSED[words]?.find((name) => program.getOptionValueSource(name) === "cli");
    if (typed !== undefined) command.error(`error: ${words} does not use --${typed}`);
  });
}

/** Help without these global options, for commands that do not take them. */
function without(program: Command, names: readonly string[]): ReturnType<Command["configureHelp"]> {
  return {
    ...program.configureHelp(),
    visibleGlobalOptions: (command) =>
      program
        .createHelp()
        .visibleGlobalOptions(command)
        .filter((option) => !names.includes(option.attributeName())),
  };
}

function askOf(program: Command, io: CliIo): Ask {
  let running = program;
  program.hook("preAction", (_program, command) => {
    running = command;
  });
  return async (question, interrupted) => {
    const { json } = program.opts<GlobalOptions>();
    const terminal = new Terminal(io.stderr, io.wait ?? setTimeout);
    const release = io.onInterrupt?.(() => (interrupted ? terminal.note(interrupted) : terminal.clear()));
    try {
      const client = asTypedTo(running, await connectAdmin(placeOf(program, io)));
      const outcome = await question(client, terminal);
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
    // A question that is not shown would wait forever.
    if (!keyboard?.isTTY || !screen.isTTY) return;
    const asked = await question();
    if (asked === undefined) return;
    const unanswered = "Nothing was done.";
    const [typed] = await askAll([asked], keyboard, screen, unanswered);
    if (typed !== asked.name) throw new CliFailure(1, `The typed name is not ${asked.name}. ${unanswered}`);
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

/** Commands that do not use the admin API. */
function addOwnCommands(program: Command, io: CliIo): void {
  const { simulate, schema } = io;
  program
    .command("health")
    .description("check whether a gateway is alive: exit status 0 or 1; for container images without curl")
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
      .description("run a simulated upstream for chat completions, messages and responses, on loopback")
      .option("--port <port>", "the port on which it listens; default: any free port", portOf, 0)
      .action(async ({ port }: { port: number }) => simulate(port));
  }
}

function portOf(typed: string): number {
  const port = Number(typed);
  if (typed !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port number.");
}

/** For a command without `--follow`. */
const AT_ONCE = { stop: AbortSignal.abort(), pause: async () => {} };

async function pauseUntil(stop: AbortSignal, wait: CliIo["wait"], ms: number): Promise<void> {
  if (!wait) return setTimeout(ms, undefined, { signal: stop }).catch(() => {});
  const stopped = new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
  if (!stop.aborted) await Promise.race([wait(ms), stopped]);
}

/** Writes the output of a command; a long one with backpressure. */
async function print(
  { stdout: out, env }: CliIo,
  { json, text, pieces }: CommandResult,
  asJson: boolean,
): Promise<void> {
  if (!pieces) {
    const words = showsColors(out, env) ? text.replace(TABLE_HEADING, bold) : text;
    out.write(asJson ? `${JSON.stringify(json)}\n` : words);
    return;
  }
  for await (const piece of pieces(asJson)) {
    if (out.write(piece) === false && out.once) await new Promise<void>((resolve) => out.once?.("drain", resolve));
  }
}

/** The heading of a table: words in capitals, and numbers such as `429` and `404/405`. */
const TABLE_HEADING = /^ *[A-Z]{2}[A-Z0-9,/ -]*[A-Z0-9]$/m;

async function writeFirst(program: Command, io: CliIo, options: Omit<InitOptions, "admin">): Promise<void> {
  const { stdin: keyboard, stderr: screen, complaints = () => [] } = io;
  // Here `--admin` is the address that is written to the file.
  const { json, admin = ADMIN_ADDRESS } = program.opts<GlobalOptions>();
  const written = await writeConfiguration({ ...options, admin }, { keyboard, screen, complaints });
  await print(io, written, json === true);
  if (written.hint) screen.write(written.hint);
}
