/** `key limit` and `account limit`: they change the given limits and keep the others. */
import type { JsonObject } from "../../values/json-object.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import type { CommandResult } from "../admin-commands.ts";
import { NONE, typedAmount } from "../amounts.ts";
import type { Ask, Command } from "../command-line.ts";
import { CliFailure } from "../failure.ts";
import { type Column, cell, table } from "../output/table.ts";
import { asTyped } from "../typed-names.ts";

/** As typed: amounts, numbers, lists with commas, or `none`. */
interface KeyLimitOptions extends AccountLimitOptions {
  readonly week?: string;
  readonly total?: string;
  readonly requests?: string;
  readonly tokens?: string;
  readonly concurrency?: string;
  readonly models?: string;
  readonly from?: string;
  /** Change the operator's caps, not the key's own limits. */
  readonly cap?: boolean;
}

interface AccountLimitOptions {
  readonly day?: string;
  readonly month?: string;
  /** Remove all limits that are not given. */
  readonly clear?: boolean;
}

const BUDGET_COLUMNS: readonly Column[] = [
  { title: "BUDGET", member: "span" },
  { title: "LIMIT USD", member: "limit_usd", right: true },
  { title: "SPENT USD", member: "spent_usd", right: true },
  { title: "HELD USD", member: "held_usd", right: true },
  { title: "LEFT USD", member: "rest_usd", right: true },
  { title: "RESETS AT", member: "resets_at" },
];

/** Options by the API's member names. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["day", "week", "month", "total"].map((span) => [`budgets_usd.${span}`, `--${span}`])),
  requests_per_minute: "--requests",
  tokens_per_minute: "--tokens",
  concurrency: "--concurrency",
  models: "--models",
  addresses: "--from",
};

/** @throws CliFailure 2 for an invalid number or amount */
async function limitKey(client: AdminClient, id: string, options: KeyLimitOptions): Promise<CommandResult> {
  if (options.cap && Object.keys(options).length === 1)
    throw new CliFailure(2, "--cap changes caps; give at least one of them, or --clear.");
  const admin = asTyped(client, OPTIONS);
  const path = `/keys/${segment(id)}`;
  const { body: before } = await admin.call("GET", path);
  const which = options.cap ? "caps" : "limits";
  const changed = keyLimits(before[which] as JsonObject, options);
  if (changed) await admin.call("PUT", `${path}/${which}`, changed);
  const { body } = changed ? await admin.call("GET", path) : { body: before };
  return { json: body, text: keyWords(body) };
}

/** @throws CliFailure 2 for an invalid number or amount */
async function limitAccount(
  client: AdminClient,
  name: string,
  { day, month, clear }: AccountLimitOptions,
): Promise<CommandResult> {
  const admin = asTyped(client, OPTIONS);
  const path = `/accounts/${segment(name)}`;
  const { body: before } = await admin.call("GET", path);
  const isChange = clear || day !== undefined || month !== undefined;
  const kept = clear ? {} : ((before.limits as JsonObject).budgets_usd as JsonObject);
  const budgets = { ...kept, ...typedBudgets({ day, month }) };
  if (isChange) await admin.call("PUT", `${path}/limits`, { budgets_usd: budgets });
  const { body } = isChange ? await admin.call("GET", path) : { body: before };
  return { json: body, text: accountWords(body) };
}

/** The whole new set of limits; undefined if nothing changes. */
function keyLimits(before: JsonObject, options: KeyLimitOptions): JsonObject | undefined {
  const { cap: _, clear = false, ...typed } = options;
  if (!clear && Object.values(typed).every((value) => value === undefined)) return undefined;
  const { day, week, month, total, requests, tokens, concurrency, models, from } = typed;
  const kept = clear ? {} : before;
  return {
    ...kept,
    budgets_usd: { ...(kept.budgets_usd as JsonObject | undefined), ...typedBudgets({ day, week, month, total }) },
    ...(requests !== undefined && { requests_per_minute: numberOf("--requests", requests) }),
    ...(tokens !== undefined && { tokens_per_minute: numberOf("--tokens", tokens) }),
    ...(concurrency !== undefined && { concurrency: numberOf("--concurrency", concurrency) }),
    ...(models !== undefined && { models: listOf(models) }),
    ...(from !== undefined && { addresses: listOf(from) }),
  };
}

function typedBudgets(typed: Readonly<Record<string, string | undefined>>): JsonObject {
  const named = Object.entries(typed).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named.map(([span, value]) => [span, typedAmount(`--${span}`, value as string, "above 0")]));
}

function numberOf(option: string, typed: string): number | null {
  if (typed === NONE) return null;
  if (/^[1-9][0-9]{0,8}$/.test(typed)) return Number(typed);
  throw new CliFailure(2, `${option} must be a whole number above 0, or ${NONE}.`);
}

function listOf(typed: string): readonly string[] | null {
  return typed === NONE ? null : typed.split(",").map((one) => one.trim());
}

function keyWords(key: JsonObject): string {
  const sets = (["limits", "caps"] as const).map((which) => {
    const words = setWords(key[which] as JsonObject);
    const whose = which === "limits" ? "Its own limits" : "The operator's caps";
    return words === "" ? "" : `${whose}: ${words}.\n`;
  });
  const lines = sets.join("");
  const head = `The key ${cell(key.id)} of account ${cell(key.account)}${lines === "" ? " has no limits of its own" : ""}.\n`;
  return head + lines + budgetWords(key);
}

function accountWords(account: JsonObject): string {
  const budgets = budgetWords(account);
  const name = cell(account.name);
  return budgets === "" ? `The account ${name} has no budget.\n` : `Over all keys of the account ${name}:\n${budgets}`;
}

function setWords(set: JsonObject): string {
  const { budgets_usd, models, addresses, ...figures } = set;
  const lines = [
    ...Object.entries(budgets_usd as JsonObject).map(([span, usd]) => [span === "total" ? "in all" : `a ${span}`, usd]),
    ...Object.entries(figures).map(([name, figure]) => [name.replaceAll("_", " "), figure]),
  ];
  const lists = { models, from: addresses };
  return [
    ...lines.flatMap(([name, value], i) =>
      value === null ? [] : [i < 4 ? `${cell(value)} USD ${name}` : `${cell(value)} ${name}`],
    ),
    ...Object.entries(lists).flatMap(([name, list]) =>
      Array.isArray(list) ? [`${name} ${list.map(cell).join(", ")}`] : [],
    ),
  ].join("; ");
}

function budgetWords(body: JsonObject): string {
  const budgets = (body.budgets ?? []) as readonly JsonObject[];
  return budgets.length === 0 ? "" : `\n${table(BUDGET_COLUMNS, budgets)}`;
}

/** Defines `tollgate account limit`. */
export function addAccountLimitCommand(account: Command, ask: Ask): void {
  account
    .command("limit <name>")
    .description("limit what all keys of an account spend; limits that are not given stay, none removes one")
    .option("--day <usd>", "limit per UTC day")
    .option("--month <usd>", "limit per calendar month, UTC")
    .option("--clear", "remove all limits that are not given")
    .action((name: string, options: AccountLimitOptions) => ask((c) => limitAccount(c, name, options)));
}

/** Defines `tollgate key limit`. */
export function addKeyLimitCommand(key: Command, ask: Ask): void {
  key
    .command("limit <key-id>")
    .description("limit a key in addition to its group; limits that are not given stay, none removes one")
    .option("--day <usd>", "spending limit per UTC day")
    .option("--week <usd>", "limit per week from Monday, UTC")
    .option("--month <usd>", "limit per calendar month, UTC")
    .option("--total <usd>", "limit in total")
    .option("--requests <count>", "requests per minute")
    .option("--tokens <count>", "tokens per minute")
    .option("--concurrency <count>", "requests in flight")
    .option("--models <names>", "models that it may use, separated by commas; a name may end with * for any ending")
    .option("--from <addresses>", "addresses and CIDR blocks from which it may be used, separated by commas")
    .option("--cap", "change the operator's caps, which bound the limits that the owner sets")
    .option("--clear", "remove all limits that are not given")
    .action((id: string, options: KeyLimitOptions) => ask((c) => limitKey(c, id, options)));
}
