/**
 * The commands as a tree of plain values, read from their definitions, and their examples. Help, shell completion and
 * the manual page are generated from it.
 */

import { isRequired } from "../command-line.ts";

/** The part of commander's `Command` that is used. */
interface CommandSource {
  name(): string;
  description(): string;
  readonly commands: readonly CommandSource[];
  readonly options: readonly OptionSource[];
  readonly registeredArguments: readonly ArgumentSource[];
}

interface ArgumentSource {
  name(): string;
  readonly argChoices?: readonly string[] | undefined;
}

interface OptionSource {
  readonly flags: string;
  readonly long?: string | undefined;
  readonly description: string;
  readonly argChoices?: readonly string[] | undefined;
  readonly defaultValue?: unknown;
  readonly required: boolean;
  readonly optional: boolean;
  readonly hidden: boolean;
}

export interface GuideOption {
  /** As in `--help`: `--format <format>`. */
  readonly flags: string;
  readonly long: string;
  readonly description: string;
  /** The allowed values, if it is a choice. */
  readonly choices: readonly string[];
  readonly standard: string | undefined;
  readonly takesValue: boolean;
  readonly mandatory: boolean;
}

export interface GuideCommand {
  /** The words after the program's name: `["ledger", "verify"]`. */
  readonly path: readonly string[];
  readonly description: string;
  /** Names of the arguments: `name`, `plan`. */
  readonly values: readonly string[];
  /** Allowed values of the arguments, if they are a choice. */
  readonly choices: readonly string[];
  readonly options: readonly GuideOption[];
  readonly commands: readonly GuideCommand[];
}

export function guideOf(source: CommandSource, path: readonly string[] = []): GuideCommand {
  return {
    path,
    description: source.description(),
    values: source.registeredArguments.map((one) => one.name()),
    choices: source.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    options: source.options.filter(({ hidden }) => !hidden).map(guideOption),
    commands: source.commands.map((one) => guideOf(one, [...path, one.name()])),
  };
}

function guideOption(option: OptionSource): GuideOption {
  return {
    flags: option.flags,
    long: option.long ?? option.flags,
    description: option.description,
    choices: option.argChoices ?? [],
    standard: option.defaultValue === undefined ? undefined : String(option.defaultValue),
    takesValue: option.required || option.optional,
    mandatory: isRequired(option),
  };
}

/** Every command, parents before their children. */
export function allCommands(root: GuideCommand): GuideCommand[] {
  return [root, ...root.commands.flatMap(allCommands)];
}

/** Example command lines by command; "" is the program itself. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  "": [
    "tollgate init",
    "tollgate serve",
    "tollgate account create alice",
    "tollgate key create --account alice --group default",
  ],
  init: [
    "tollgate init",
    "tollgate init --base-url http://127.0.0.1:11434/v1 --model my-model",
    "tollgate init --base-url https://models.example/v1 --model big-1 --api-key-env EAST_KEY",
  ],
  serve: ["tollgate serve", "tollgate serve --config /etc/tollgate/tollgate.yaml", "tollgate serve --pretty"],
  check: ["tollgate check --config /etc/tollgate/tollgate.yaml", "tollgate check --store", "tollgate check --json"],
  account: ["tollgate account create alice", "tollgate account show alice"],
  "account label": ["tollgate account label alice team=red customer=4711", "tollgate account label alice team="],
  "account list": ["tollgate account list --label team=red", "tollgate account list --search 4711 --format csv"],
  "account adjust": ['tollgate account adjust alice --usd -1.50 --id fix-1 --note "charged twice"'],
  key: ["tollgate key create --account alice --group default", "tollgate key revoke key_0123456789abcdefgh"],
  topup: ["tollgate topup --account alice --usd 25.00 --id invoice-1001"],
  code: ["tollgate code create --card day --count 10", "tollgate code redeem 7Q2M-04XD-9RKV-B3TN-2 --account alice"],
  "code create": [
    'tollgate code create --card day --count 100 --label "Spring fair" --redeem-by 2027-04-30 --format html --output codes.html',
  ],
  "code batch": ["tollgate code batch list", "tollgate code batch report batch_0123456789abcdef"],
  card: ["tollgate card list alice", "tollgate card gift alice day --id sorry-4711"],
  usage: ["tollgate usage", "tollgate usage --by model --since 2026-08-01 --until 2026-08-31 --format csv"],
  reconcile: ["tollgate reconcile --from invoice.csv --upstream east"],
  ledger: [
    "tollgate ledger show --account alice --attempts",
    "tollgate ledger show --account alice --request req_02bLkEx4ndGkJZPZqR7vXsDW",
    "tollgate ledger show --account alice --follow",
    "tollgate ledger verify",
    "tollgate ledger archive --before 2026-07-01 --to ./archive",
  ],
  explain: ["tollgate explain --key-id key_0123456789abcdefgh --model big-1 --protocol chat --max-tokens 4000"],
  store: ["tollgate store status", "tollgate store backup /var/backups/tollgate.db --data /var/lib/tollgate/data"],
  "account notify": ["tollgate account notify alice --below 5.00", "tollgate account notify alice --below none"],
  webhook: ["tollgate webhook test", "tollgate webhook list"],
  audit: ["tollgate audit --last 20", "tollgate audit --since 24h", "tollgate audit --follow"],
  upstreams: ["tollgate upstreams --json"],
  completion: [
    "tollgate completion bash > /etc/bash_completion.d/tollgate",
    "tollgate completion zsh > ~/.zfunc/_tollgate",
    "tollgate completion fish > ~/.config/fish/completions/tollgate.fish",
  ],
  man: ["tollgate man > /usr/local/share/man/man1/tollgate.1"],
};

/** The examples of a command, one per entry; empty if it has none. */
export function examplesOf(path: readonly string[]): readonly string[] {
  return EXAMPLES[path.join(" ")] ?? [];
}
