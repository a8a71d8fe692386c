/** Commands that use the admin API. Each returns the answer for `--json` and the same as text; `cli.ts` prints it. */

import type { JsonObject } from "../values/json-object.ts";
import { type AdminClient, segment } from "./admin-client.ts";
import { CARD_COLUMNS, cardRow } from "./cards/rows.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { optionWords } from "./output/printed-command.ts";
import { type Column, cell, facts, table } from "./output/table.ts";

/** A command's result: the answer as JSON, as text, and a hint for people (standard error). */
export interface CommandResult {
  readonly json: JsonObject;
  readonly text: string;
  /** Instead of both: output that is too long for one string and is written piece by piece. */
  readonly pieces?: (asJson: boolean) => AsyncIterable<string>;
  readonly hint?: string;
  /** Why the command fails with exit status 1 after printing its result (standard error). */
  readonly failure?: string;
}

const ACCOUNT_COLUMNS: readonly Column[] = [
  { title: "NAME", member: "name" },
  { title: "PLAN", member: "plan" },
  { title: "STATUS", member: "status" },
  { title: "BALANCE USD", member: "balance_usd", right: true },
  { title: "AVAILABLE USD", member: "available_usd", right: true },
  { title: "SPENT USD", member: "spent_usd", right: true },
  { title: "CREATED", member: "created_at" },
  { title: "LABELS", member: "labelled" },
];

const ACCOUNT_FACTS = {
  name: "Name",
  id: "Id",
  plan: "Plan",
  status: "Status",
  labelled: "Labels",
  balance_usd: "Balance USD",
  held_usd: "Held USD",
  available_usd: "Available USD",
  spent_usd: "Spent USD",
  topped_up_usd: "Topped up and adjusted USD",
  notify_below_usd: "Notice below USD",
  created_at: "Created",
};

export const LEDGER_COLUMNS: readonly Column[] = [
  { title: "SEQ", member: "seq", right: true },
  { title: "AT", member: "at" },
  { title: "KIND", member: "kind" },
  { title: "USD", member: "usd", right: true },
  { title: "FROM", member: "debit" },
  { title: "TO", member: "credit" },
  { title: "BALANCE USD", member: "balance_usd", right: true },
  { title: "MODEL", member: "model" },
  { title: "REFERENCE", member: "reference" },
  { title: "NOTE", member: "note" },
];

/** Why an account that exists cannot be used as a new one could. */
function unusable({ status }: JsonObject): string {
  if (status === "normal") return "";
  return status === "closed" ? " It is closed, which is final: choose another name." : ` It is ${cell(status)}.`;
}

export async function createAccount(
  admin: AdminClient,
  name: string,
  plan: string | undefined,
): Promise<CommandResult> {
  const { status, body } = await admin.call("POST", "/accounts", plan === undefined ? { name } : { name, plan });
  const text =
    status === 201
      ? `Created the account ${cell(body.name)} with the plan ${cell(body.plan)}.\n`
      : `The account ${cell(body.name)} already exists, with the plan ${cell(body.plan)}; nothing was changed.${unusable(body)}\n`;
  return { json: body, text };
}

/** `team=red, no=4711`; empty without any. */
export function labelWords(labels: unknown): string {
  return Object.entries((labels ?? {}) as JsonObject)
    .map(([label, value]) => `${label}=${value}`)
    .join(", ");
}

/** Start and size of a page of a listing. If both are missing, the whole listing is wanted. */
export interface PageOptions {
  readonly cursor?: string;
  readonly limit?: string;
}

export const ACCOUNT_STATUSES = ["normal", "suspended", "closed"] as const;

export interface ListAccountsOptions extends PageOptions, ListingOptions {
  readonly search?: string;
  readonly label?: string;
  readonly status?: string;
}

export async function listAccounts(admin: AdminClient, options: ListAccountsOptions): Promise<CommandResult> {
  const { search, label, status } = options;
  const filter = { search, label, status };
  const body = await pageOrAll(admin, "/accounts", options, filter);
  const rows = itemsOf(body).map((account) => ({ ...account, labelled: labelWords(account.labels) }));
  const text = listing(options, { columns: ACCOUNT_COLUMNS, rows, json: body, none: "No accounts." });
  const again = `${admin.command} account list${optionWords({ ...filter, ...pageOptions(options) })}`;
  return withMore(body, text, (next) => `More accounts: ${again} --cursor ${next}\n`);
}

export async function showAccount(admin: AdminClient, name: string): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/accounts/${segment(name)}`);
  const cards = Array.isArray(body.entitlements) ? (body.entitlements as readonly JsonObject[]) : [];
  const words = cards.length === 0 ? "" : `\n${table(CARD_COLUMNS, cards.map(cardRow))}`;
  const shown = { ...body, labelled: labelWords(body.labels) };
  return { json: body, text: facts(ACCOUNT_FACTS, shown) + words };
}

export async function setPlan(admin: AdminClient, name: string, plan: string): Promise<CommandResult> {
  const { body } = await admin.call("PUT", `/accounts/${segment(name)}/plan`, { plan });
  return { json: body, text: `The account ${cell(body.name)} is on the plan ${cell(body.plan)}.\n` };
}

export interface Payment {
  readonly account: string;
  readonly usd: string;
  readonly id: string;
}

export async function topUp(admin: AdminClient, { account, usd, id }: Payment): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/accounts/${segment(account)}/topups`, { usd, id });
  return { json: body, text: movementWords(body, "Topped up") };
}

export async function adjust(admin: AdminClient, payment: Payment & { note: string }): Promise<CommandResult> {
  const { account, usd, id, note } = payment;
  const { body } = await admin.call("POST", `/accounts/${segment(account)}/adjustments`, { usd, id, note });
  return { json: body, text: movementWords(body, "Adjusted") };
}

export async function showLedger(
  admin: AdminClient,
  account: string,
  page: { after?: string; limit?: string },
): Promise<CommandResult> {
  const search = query({ after: page.after, limit: page.limit });
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger${search}`);
  const again = `${admin.command} ledger show${optionWords({ account, limit: page.limit })}`;
  return withMore(body, ledgerTable(body), (next) => `More lines: ${again} --after ${next}\n`);
}

/** The lines of a page as a table, in order. */
export function ledgerTable(body: JsonObject): string {
  const rows = itemsOf(body).map(withCause);
  return rows.length === 0 ? "No ledger lines.\n" : table(LEDGER_COLUMNS, rows);
}

/** An absorbed line has no note; its cause is shown instead. */
export function withCause(line: JsonObject): JsonObject {
  const [, cause] = /^absorbed:(.+)$/.exec(String(line.debit)) ?? [];
  return cause !== undefined && line.note === "" ? { ...line, note: cause } : line;
}

function movementWords(body: JsonObject, done: string): string {
  const balance = `The balance is ${cell(body.balance_usd)} USD.`;
  if (body.repeated === true) {
    return `The id ${cell(body.id)} was already counted; nothing was changed. ${balance}\n`;
  }
  return `${done} ${cell(body.account)} by ${cell(body.usd)} USD. ${balance}\n`;
}

/** The options of the page that is shown, with which the next one has the same size and form. */
export const pageOptions = ({ limit, format }: PageOptions & ListingOptions) => ({
  limit,
  format: format === "table" ? undefined : format,
});

/** The requested page, or the whole listing. */
export async function pageOrAll(
  admin: AdminClient,
  path: string,
  { cursor, limit }: PageOptions,
  filter: Readonly<Record<string, string | undefined>> = {},
): Promise<JsonObject> {
  if (cursor === undefined && limit === undefined) {
    return allPages(admin, (next) => path + query({ cursor: next, ...filter }));
  }
  const { body } = await admin.call("GET", path + query({ cursor, limit, ...filter }));
  return body;
}

export async function allPages(
  admin: AdminClient,
  pathOf: (cursor: string | undefined) => string,
): Promise<JsonObject> {
  const items: JsonObject[] = [];
  let body: JsonObject;
  let cursor: string | undefined;
  do {
    ({ body } = await admin.call("GET", pathOf(cursor)));
    items.push(...itemsOf(body));
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
  return { ...body, items };
}

export function itemsOf(body: JsonObject): readonly JsonObject[] {
  return Array.isArray(body.items) ? (body.items as readonly JsonObject[]) : [];
}

export function withMore(body: JsonObject, text: string, more: (next: string) => string): CommandResult {
  const next = body.next;
  if (next === null || next === undefined) return { json: body, text };
  return { json: body, text, hint: more(cell(next)) };
}

export function query(members: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
