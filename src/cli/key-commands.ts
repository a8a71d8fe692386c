/** `tollgate key`. */

import type { JsonObject } from "../values/json-object.ts";
import { parseDurationMs } from "../values/time.ts";
import { type AdminClient, segment } from "./admin-client.ts";
import { allPages, type CommandResult, itemsOf, query } from "./admin-commands.ts";
import { type Ask, type Command, listingFormat, ONCE, Option } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { instantOf } from "./instants.ts";
import { addKeyLimitCommand } from "./limits/limit-commands.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { type Column, cell } from "./output/table.ts";
import { asTyped } from "./typed-names.ts";

const KEY_COLUMNS: readonly Column[] = [
  { title: "ID", member: "id" },
  { title: "NAME", member: "name" },
  { title: "GROUP", member: "group" },
  { title: "STATUS", member: "status" },
  { title: "EXPIRES", member: "expires_at" },
  { title: "CREATED", member: "created_at" },
  { title: "LAST USED", member: "used_at" },
  { title: "BY", member: "used_by" },
  { title: "FROM", member: "used_from" },
];

const MS_PER_S = 1_000;

interface NewKeyOptions {
  readonly account: string;
  readonly group: string;
  readonly name?: string;
  /** As typed: an instant, or a duration from now. */
  readonly expires?: string;
  /** The caller's id; a repeat with the same id creates no second key. */
  readonly idempotencyId?: string;
}

/** @throws CliFailure 2 for an invalid expiry */
export async function createKey(admin: AdminClient, options: NewKeyOptions): Promise<CommandResult> {
  const { account, group, name, expires, idempotencyId: once } = options;
  const asked = {
    group,
    ...(name !== undefined && { name }),
    ...(expires !== undefined && { expires_at: instantOf("--expires", expires, 1) }),
    ...(once !== undefined && { idempotency_id: once }),
  };
  const typed = asTyped(admin, { expires_at: "--expires", idempotency_id: "--idempotency-id" });
  const { body } = await typed.call("POST", `/accounts/${segment(account)}/keys`, asked);
  const until = body.expires_at === null ? "" : `, until ${cell(body.expires_at)}`;
  const words = `Created the key ${cell(body.id)} of account ${cell(body.account)} in group ${cell(body.group)}${until}.`;
  const hint = "The key is shown only this once; only its hash is stored.\n";
  return { json: body, text: `${words}\n${cell(body.key)}\n`, hint };
}

const KEY_STATUSES = ["normal", "suspended", "revoked"] as const;

interface ListKeysOptions extends ListingOptions {
  readonly account: string;
  readonly search?: string;
  readonly group?: string;
  readonly status?: string;
}

export async function listKeys(admin: AdminClient, options: ListKeysOptions): Promise<CommandResult> {
  const { account, search, group, status } = options;
  const pathOf = (cursor: string | undefined) =>
    `/accounts/${segment(account)}/keys${query({ cursor, search, group, status })}`;
  const body = await allPages(admin, pathOf);
  const rows = itemsOf(body).map((key) => {
    const used = (key.last_used ?? {}) as JsonObject;
    return { ...key, used_at: used.at ?? null, used_by: used.by ?? null, used_from: used.from ?? null };
  });
  return { json: body, text: listing(options, { columns: KEY_COLUMNS, rows, json: body, none: "No keys." }) };
}

export async function setKeyGroup(admin: AdminClient, id: string, group: string): Promise<CommandResult> {
  const { body } = await admin.call("PUT", `/keys/${segment(id)}/group`, { group });
  const text = `The key ${cell(body.id)} is in group ${cell(body.group)}, effective from its next request.\n`;
  return { json: body, text };
}

/** @param name undefined removes the name. */
export async function renameKey(admin: AdminClient, id: string, name: string | undefined): Promise<CommandResult> {
  const { body } = await admin.call("PUT", `/keys/${segment(id)}/name`, { name: name ?? null });
  const text = name === undefined ? "has no name now" : `is named ${cell(body.name)}`;
  return { json: body, text: `The key ${cell(body.id)} ${text}.\n` };
}

/** @throws CliFailure 2 for an invalid expiry */
export async function setKeyExpiry(admin: AdminClient, id: string, end: string): Promise<CommandResult> {
  const asked = end === "never" ? null : instantOf("The end", end, 1);
  const typed = asTyped(admin, { expires_at: "The end" });
  const { body } = await typed.call("PUT", `/keys/${segment(id)}/expiry`, { expires_at: asked });
  const text = body.expires_at === null ? "does not expire" : `expires at ${cell(body.expires_at)}`;
  return { json: body, text: `The key ${cell(body.id)} ${text}.\n` };
}

/** @throws CliFailure 2 for an overlap that is not a duration */
export async function rotateKey(admin: AdminClient, id: string, overlap: string): Promise<CommandResult> {
  const overlapMs = overlap === "0" ? 0 : parseDurationMs(overlap);
  if (overlapMs === undefined) throw new CliFailure(2, "--overlap must be a duration such as 24h or 30m, or 0.");
  const asked = { overlap_seconds: Math.ceil(overlapMs / MS_PER_S) };
  const typed = asTyped(admin, { overlap_seconds: "--overlap" });
  const { body } = await typed.call("POST", `/keys/${segment(id)}/rotate`, asked);
  const old = overlapMs === 0 ? "no longer works" : `works until ${cell(body.previous_until)}`;
  const words = `The key ${cell(body.id)} has a new value; the old one ${old}.`;
  const hint = "The new value is shown only this once; only its hash is stored.\n";
  return { json: body, text: `${words}\n${cell(body.key)}\n`, hint };
}

export async function suspendKey(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/keys/${segment(id)}/suspend`);
  const resume = `To resume it:\n${admin.command} key resume ${cell(body.id)}`;
  const text = `The key ${cell(body.id)} is suspended, effective from its next request. ${resume}\n`;
  return { json: body, text };
}

export async function resumeKey(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/keys/${segment(id)}/resume`);
  return { json: body, text: `The key ${cell(body.id)} works again, effective from its next request.\n` };
}

export async function revokeKey(admin: AdminClient, id: string): Promise<CommandResult> {
  const { body } = await admin.call("POST", `/keys/${segment(id)}/revoke`);
  return { json: body, text: `The key ${cell(body.id)} is permanently revoked, effective from its next request.\n` };
}

const END = "a duration from now (30d, 12h), or an instant (2027-01-31T12:00:00Z)";

/** Defines `tollgate key`. */
export function addKeyCommands(program: Command, ask: Ask): void {
  const key = program.command("key").description("keys: create, list, change, limit, rotate, suspend, resume, revoke");
  key
    .command("create")
    .description("create a key and show it once; a repeat creates another key, unless it has the same --idempotency-id")
    .requiredOption("--account <name>", "the account that pays")
    .requiredOption("--group <group>", "the group, which decides what the key may use")
    .option("--name <name>", "a name for people")
    .option("--expires <when>", END)
    .option("--idempotency-id <id>", ONCE)
    .action((options: NewKeyOptions) => ask((c) => createKey(c, options)));
  key
    .command("list")
    .description("list an account's keys, without their values")
    .requiredOption("--account <name>", "the account")
    .option("--search <text>", "only keys whose name contains this text")
    .option("--group <group>", "only keys of this group")
    .addOption(new Option("--status <status>", "only keys with this status").choices(KEY_STATUSES))
    .addOption(listingFormat())
    .action((options: ListKeysOptions) => ask((c) => listKeys(c, options)));
  key
    .command("set-group <key-id> <group>")
    .description("move a key to another group, effective from its next request")
    .action((id: string, group: string) => ask((c) => setKeyGroup(c, id, group)));
  key
    .command("rename <key-id> [name]")
    .description("set a key's name; without a name, remove it")
    .action((id: string, name: string | undefined) => ask((c) => renameKey(c, id, name)));
  key
    .command("expire <key-id> <when>")
    .description(`set when a key expires: ${END}, or never`)
    .action((id: string, when: string) => ask((c) => setKeyExpiry(c, id, when)));
  addKeyLimitCommand(key, ask);
  key
    .command("rotate <key-id>")
    .description("give a key a new value and show it once; the old value works for --overlap")
    .option("--overlap <duration>", "how long the old value still works: 24h, 30m, 0", "24h")
    .action((id: string, options: { overlap: string }) => ask((c) => rotateKey(c, id, options.overlap)));
  key
    .command("suspend <key-id>")
    .description("suspend a key from its next request, until it is resumed")
    .action((id: string) => ask((c) => suspendKey(c, id)));
  key
    .command("resume <key-id>")
    .description("resume a suspended key, effective from its next request")
    .action((id: string) => ask((c) => resumeKey(c, id)));
  key
    .command("revoke <key-id>")
    .description("revoke a key permanently, effective from its next request")
    .action((id: string) => ask((c) => revokeKey(c, id)));
}
