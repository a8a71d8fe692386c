/** `tollgate init`: writes a first `tollgate.yaml` from three answers or from flags. */
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMAND } from "../../values/program/program.ts";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol, withoutEndpoint, withVersion } from "../../values/protocol.ts";
import { CONFIG_FILE } from "../../values/settings.ts";
import type { CommandResult } from "../admin-commands.ts";
import { type Command, Option, pathOf } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { shellWord } from "../output/printed-command.ts";
import { askAll, type Keyboard, type Question } from "../output/questions.ts";
import { configurationText, type FirstSettings, GROUP } from "./file.ts";

/** `admin` in the file unless `--admin` is given. The other commands use it by default. */
export const ADMIN_ADDRESS = "127.0.0.1:8788";
export const STORE = "embedded:./data";

/** The command's flags. */
export interface InitOptions {
  readonly config: string;
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv?: string;
  readonly protocol: string;
  readonly listen: string;
  readonly admin: string;
  readonly store: string;
}

interface InitWorld {
  readonly keyboard: Keyboard | undefined;
  readonly screen: { write(text: string): unknown };
  /**
   * The problems of a text, one per line; empty if there are none. @param set environment variables that count as set.
   */
  readonly complaints: (file: string, text: string, set: readonly string[]) => readonly string[];
}

const SEALING_KEY_BYTES = 32;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

const QUESTIONS: Readonly<Record<"baseUrl" | "model" | "apiKeyEnv", Question>> = {
  baseUrl: {
    words: "Base URL of your model server, up to and including /v1 (such as http://127.0.0.1:11434/v1)",
    fault: (text) => (/^https?:\/\/[^\s/]+/.test(text) ? undefined : "It must begin with http:// or https://."),
  },
  model: {
    words: "Model that clients may use, as the server names it",
    fault: (text) =>
      /^[\x21-\x7e]{1,256}$/.test(text) ? undefined : "A model name is 1 to 256 ASCII characters without spaces.",
  },
  apiKeyEnv: {
    words: "Environment variable that holds the server's API key; empty if it needs none",
    standard: "",
    fault: (text) =>
      text === "" || VARIABLE.test(text)
        ? undefined
        : "That is not a variable name: use letters, digits and _, such as UPSTREAM_KEY. Do not enter the key itself.",
  },
};

/**
 * Writes the file, readable only by this user.
 * @returns what to print, and the same as JSON.
 * @throws CliFailure 1 if the file exists or cannot be written, 2 if something is missing or wrong.
 */
export async function writeConfiguration(options: InitOptions, world: InitWorld): Promise<CommandResult> {
  const { config } = options;
  if (existsSync(config)) throw taken(config);
  const asked = await answersTo(options, world);
  const answers: FirstSettings = {
    ...asked,
    protocol: options.protocol as Protocol,
    listen: options.listen,
    admin: options.admin,
    store: options.store,
    sealingKey: randomBytes(SEALING_KEY_BYTES).toString("base64url"),
  };
  const text = configurationText(answers);
  const complaints = world.complaints(config, text, asked.apiKeyEnv === undefined ? [] : [asked.apiKeyEnv]);
  if (complaints.length > 0) throw new CliFailure(2, `Nothing was written: ${complaints.join("\n")}`);
  try {
    // Exclusive: a file that was created meanwhile is not changed.
    writeFileSync(config, text, { mode: 0o600, flag: "wx" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw taken(config);
    throw new CliFailure(1, `${config} cannot be written (${code}); use --config to name another file.`);
  }
  const asks = askedAt(answers);
  const hint = addressHint(answers);
  return {
    json: { file: config, model: asked.model, group: GROUP, asks },
    text: `Wrote ${config}. Requests will go to ${asks}.\n${next(config, answers)}`,
    ...(hint !== undefined && { hint }),
  };
}

/** The URL of the upstream's endpoint that a gateway with these settings calls. */
function askedAt({ baseUrl, protocol }: FirstSettings): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/+$/, "")}${PROTOCOLS[protocol].upstreamPath}`;
}

/** A hint about a base URL that is probably wrong. The file is written anyway, because a few servers need it. */
function addressHint({ baseUrl, protocol }: FirstSettings): string | undefined {
  const bare = withoutEndpoint(baseUrl);
  if (bare !== undefined)
    return `The endpoint is appended to base_url and should not be part of it. Change it to base_url: ${bare}\n`;
  const whole = withVersion(baseUrl, protocol);
  if (whole === undefined) return undefined;
  return `Most model servers have their endpoints below /v1. If this one does too, change it to base_url: ${whole}\n`;
}

const taken = (config: string) =>
  new CliFailure(
    1,
    `${config} already exists and is not changed. Use --config to name another file, or move this one first.`,
  );

async function answersTo(
  { baseUrl, model, apiKeyEnv }: InitOptions,
  { keyboard, screen }: InitWorld,
): Promise<Pick<FirstSettings, "baseUrl" | "model" | "apiKeyEnv">> {
  const given = { baseUrl, model, apiKeyEnv };
  const names = Object.keys(QUESTIONS) as (keyof typeof QUESTIONS)[];
  for (const name of names) {
    const wrong = given[name] === undefined ? undefined : QUESTIONS[name].fault?.(given[name]);
    if (wrong !== undefined) throw new CliFailure(2, `--${flagOf(name)}: ${wrong}`);
  }
  const missing = names.filter((name) => given[name] === undefined);
  const needed = missing.filter((name) => QUESTIONS[name].standard === undefined);
  if (keyboard?.isTTY && needed.length > 0) {
    const typed = await askAll(
      missing.map((name) => QUESTIONS[name]),
      keyboard,
      screen,
    );
    for (const [index, name] of missing.entries()) given[name] = typed[index];
  } else if (needed.length > 0) {
    const flags = needed.map((name) => `--${flagOf(name)}`).join(" and ");
    throw new CliFailure(
      2,
      `${flags} ${needed.length > 1 ? "are" : "is"} required, because there is no terminal for questions.`,
    );
  }
  return { baseUrl: given.baseUrl ?? "", model: given.model ?? "", apiKeyEnv: given.apiKeyEnv || undefined };
}

const flagOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** @returns the next commands, with the flags that they need to find the file and the gateway. */
function next(config: string, { apiKeyEnv, admin, store }: FirstSettings): string {
  const file = config === CONFIG_FILE ? "" : ` --config ${shellWord(config)}`;
  const key = apiKeyEnv === undefined ? "" : `  export ${apiKeyEnv}=...               # the model server's API key\n`;
  const folder = /^embedded:(.+)/.exec(store)?.[1];
  // Port 0 means that the port is not known yet.
  const isElsewhere = admin !== ADMIN_ADDRESS && (admin.startsWith("unix:") || !admin.endsWith(":0"));
  const gateway =
    (isElsewhere ? ` --admin ${shellWord(admin)}` : "") +
    (store === STORE || folder === undefined ? "" : ` --data ${shellWord(folder)}`);
  return (
    `Next:\n\n${key}` +
    `  ${COMMAND} check${file}\n` +
    `  ${COMMAND} serve${file}\n\n` +
    "and in another terminal:\n\n" +
    `  ${COMMAND} account create me${gateway}\n` +
    `  ${COMMAND} topup --account me --usd 10 --id first${gateway}\n` +
    `  ${COMMAND} key create --account me --group ${GROUP}${gateway}\n` +
    consoleWords(admin, folder)
  );
}

/** An address of this machine with a known port. At others a browser needs TLS, and so a front. */
const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\]):[1-9]\d*$/;

/** Where the operator's pages are, and what is typed there. */
function consoleWords(admin: string, folder: string | undefined): string {
  if (!LOOPBACK.test(admin)) return "";
  const token = folder === undefined ? "the admin token" : `the token in ${join(folder, "admin-token")}`;
  return `\nor in a browser: http://${admin}/console/ (sign in with ${token})\n`;
}

/** @param write asks for missing values, writes the file and prints the result. `--admin` is a global option. */
export function addInitCommand(program: Command, write: (options: Omit<InitOptions, "admin">) => Promise<void>): void {
  program
    .command("init")
    .description("write a first tollgate.yaml; asks three questions on a terminal, or takes flags")
    .option("--config <file>", "the file to write; an existing file is never changed", pathOf, CONFIG_FILE)
    .option("--base-url <url>", "base URL of the model server, up to and including /v1")
    .option("--model <name>", "the model that clients may use, as the server names it")
    .option("--api-key-env <variable>", "environment variable that holds the server's API key")
    .addOption(
      new Option("--protocol <protocol>", "protocol of the model server").choices(PROTOCOL_NAMES).default("chat"),
    )
    .option("--listen <address>", "address for clients", "127.0.0.1:8787")
    .option("--store <address>", "embedded:DIR, or the address of a Redis that gateways share", STORE)
    .action(write);
}
