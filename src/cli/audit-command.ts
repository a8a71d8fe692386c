/** `tollgate audit`: the newest writes of operators and owners, as one gateway remembers them. */

import type { JsonObject } from "../values/json-object.ts";
import type { AdminClient } from "./admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, pageOptions, query, withMore } from "./admin-commands.ts";
import { type Command, EVERY, FOLLOW, type Follow, listingFormat } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type Follower, following, pauseOf } from "./follow/follow.ts";
import { instantOf } from "./instants.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { optionWords } from "./output/printed-command.ts";
import { type Column, many } from "./output/table.ts";

const COLUMNS: readonly Column[] = [
  { title: "AT, UTC", member: "at" },
  { title: "WHO", member: "who" },
  { title: "WHAT HAPPENED", member: "happened" },
  { title: "REQUEST", member: "request_id" },
];

/** Returns a fact by name, or a dash if it is missing. */
type FactOf = (name: string) => string;

/** Descriptions of actions by the API's names for them, made from the target and the facts. Each can follow "to". */
const DEEDS: Readonly<Record<string, (target: string, facts: FactOf) => string>> = {
  "account.create": (name, of) => `create the account ${name} with the plan ${of("plan")}`,
  "account.set_plan": (name, of) => `give the account ${name} the plan ${of("plan")}`,
  "account.set_limits": (name) => `limit what ${name} spends`,
  "account.notify": (name, of) =>
    of("below_usd") === "none"
      ? `use the configured threshold for balance notices of ${name}`
      : `send a notice when the balance of ${name} falls below ${of("below_usd")} USD`,
  "account.adjust": (name, of) => `correct the balance of ${name} by ${of("usd")} USD: ${of("note")} (id ${of("id")})`,
  "account.invite": (name) => `create a sign-in link for the account ${name}`,
  "account.sign_out": (name) => `end all sessions of the console of ${name}`,
  "session.begin": (name, of) => `sign in to the console${name && ` of ${name}`} by ${WAYS[of("way")] ?? of("way")}`,
  "session.end": (name) => `end a session of the console of ${name}`,
  "session.end_others": (name) => `end all other sessions of the console of ${name}`,
  "passkey.add": (name, of) => `add the passkey ${of("name")} to the account ${name}`,
  "passkey.rename": (name, of) => `rename a passkey of the account ${name} to ${of("name")}`,
  "passkey.remove": (name) => `remove a passkey of the account ${name}`,
  "account.rename": (name, of) => `rename the account ${name} to ${of("name")}`,
  "account.label": (name, of) => `set or remove ${of("labels")} labels of the account ${name}`,
  "account.suspend": (name) => `suspend the account ${name}`,
  "account.resume": (name) => `resume the account ${name}`,
  "account.close": (name) => `close the account ${name}`,
  topup: (name, of) => `top up ${name} by ${of("usd")} USD (payment ${of("id")})`,
  "key.create": (name, of) => `create a key for ${name} in the group ${of("group")}`,
  "key.set_group": (id, of) => `move the key ${id} to the group ${of("group")}`,
  "key.rename": (id, of) =>
    of("name") === "" ? `remove the name of the key ${id}` : `rename the key ${id} to ${of("name")}`,
  "key.set_expiry": (id, of) =>
    of("expires_at") === "never"
      ? `remove the expiry of the key ${id}`
      : `let the key ${id} expire at ${of("expires_at")}`,
  "key.rotate": (id, of) => `rotate the key ${id} with an overlap of ${of("overlap_seconds")} s`,
  "key.set_limits": (id) => `limit the key ${id}`,
  "key.set_caps": (id) => `cap the limits of the key ${id}`,
  "key.suspend": (id) => `suspend the key ${id}`,
  "key.resume": (id) => `resume the key ${id}`,
  "key.revoke": (id) => `revoke the key ${id}`,
  "code.create": (card, of) => `create ${many(of("count"), "code")} for the card ${card}`,
  "code_batch.void": (id) => `void the unredeemed codes of the batch ${id}`,
  "card.gift": (name, of) => `give the account ${name} a ${of("card")} card`,
  "code.void": (id) => `void the code ${id}`,
  "code.redeem": (name) => `redeem a code for ${name}`,
  "ledger.archive": (name, of) => `archive the ledger of ${name} up to line ${of("through")}`,
  "webhook.test": () => "send a test notice to the receiver",
  "webhook.retry": () => "retry the notices that wait for the receiver",
  "operator.sign_in": () => "sign in to the operator's console",
  "operator.sign_out": () => "sign out of the operator's console",
  "store.confirm": (seen) => `confirm the store as it is (${seen})`,
};

/** Sign-in methods. */
const WAYS: Readonly<Record<string, string>> = {
  link: "a link",
  passkey: "a passkey",
  oidc: "OpenID Connect",
  front: "the front's header",
};

/** Facts that the description already contains, or that mean nothing by themselves. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  "account.create": ["plan"],
  "account.set_plan": ["plan"],
  "account.notify": ["below_usd"],
  "account.adjust": ["usd", "id", "note"],
  "account.rename": ["name"],
  "session.begin": ["way"],
  "passkey.add": ["name"],
  "passkey.rename": ["name"],
  "account.label": ["labels"],
  topup: ["usd", "id"],
  "key.create": ["group"],
  "key.set_group": ["group"],
  "key.rename": ["name"],
  "key.rotate": ["overlap_seconds"],
  "key.set_expiry": ["expires_at"],
  "code.create": ["count"],
  "card.gift": ["card"],
  "ledger.archive": ["through"],
};

const FACTS: Readonly<Record<string, string>> = {
  key_id: "the key is",
  code_id: "the code is",
  first_code_id: "the first is",
  last_code_id: "the last is",
  card: "of the card",
  batch_id: "the batch is",
  card_id: "the card is",
  label: "as the batch",
  redeem_by: "to be redeemed by",
  before: "lines before",
  idempotency_id: "with the id",
};

const OUTCOMES: Readonly<Record<string, string>> = {
  done: "Done",
  repeated: "Already done, nothing changed",
  refused: "Refused",
  unknown: "Perhaps done: the store did not answer",
};

interface AuditOptions extends PageOptions, ListingOptions {
  /** Number of newest lines. */
  readonly last?: string;
  /** As typed: an instant, or a duration before now. */
  readonly since?: string;
  readonly follow?: true;
  readonly every?: string;
}

/** Lines on a page, the API's maximum. */
const PAGE_MAX = 200;
/** Lines that a gateway remembers. */
const LAST_MAX = 1_000;
/** Lines with which `--follow` begins. */
const FOLLOWED = "10";

/**
 * Newest first, or with `--follow` oldest first and then new lines. @throws CliFailure 2 for an invalid count or
 * instant
 */
export async function showAudit(admin: AdminClient, options: AuditOptions, follower: Follower): Promise<CommandResult> {
  const { cursor, last, follow } = options;
  const limit = options.limit ?? (follow ? (last ?? FOLLOWED) : last);
  if (last !== undefined && options.limit !== undefined)
    throw new CliFailure(2, "--last and --limit mean the same; use one of them.");
  // A page has fewer lines than this option allows.
  if (last !== undefined && !(/^[0-9]{1,4}$/.test(last) && Number(last) >= 1 && Number(last) <= LAST_MAX))
    throw new CliFailure(2, `--last must be a whole number from 1 to ${LAST_MAX}; older lines are in the log.`);
  const since = options.since === undefined ? undefined : instantOf("--since", options.since, -1);
  if (follow && cursor !== undefined) throw new CliFailure(2, "--cursor is for pages; do not use it with --follow.");
  const body = await newestLines(admin, { cursor, since }, limit);
  if (follow) return followAudit(admin, options, body, follower);
  const rows = itemsOf(body).map(shown);
  const text = listing(options, { columns: COLUMNS, rows, json: body, none: "No writes since the gateway started." });
  const again = `${admin.command} audit${optionWords({ since: options.since, last, ...pageOptions(options) })}`;
  return withMore(body, text, (next) => `Older lines: ${again} --cursor ${next}\n`);
}

/** One page, or as many pages as are needed for that many lines. */
async function newestLines(
  admin: AdminClient,
  asked: { readonly cursor: string | undefined; readonly since: string | undefined },
  typed: string | undefined,
): Promise<JsonObject> {
  const wanted = Number(typed);
  if (typed === undefined || !/^[0-9]{1,4}$/.test(typed) || wanted <= PAGE_MAX || wanted > LAST_MAX) {
    return (await admin.call("GET", `/audit${query({ ...asked, limit: typed })}`)).body;
  }
  const items: JsonObject[] = [];
  let first: JsonObject | undefined;
  let { cursor } = asked;
  do {
    const limit = String(Math.min(PAGE_MAX, wanted - items.length));
    const { body } = await admin.call("GET", `/audit${query({ ...asked, cursor, limit })}`);
    first ??= body;
    items.push(...itemsOf(body));
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined && items.length < wanted);
  return { ...first, items, next: cursor ?? null };
}

/**
 * Follows the lines. Their numbers start again with each run of the gateway; the last lines before a restart may be in
 * the log only.
 */
function followAudit(
  admin: AdminClient,
  { format, every }: AuditOptions,
  begun: JsonObject,
  follower: Follower,
): CommandResult {
  let run = String(begun.run);
  /** The newest line seen, by run: behind one address, several gateways may answer in turn. */
  const seen = new Map([[run, Number(begun.newest)]]);
  const more = async () => {
    const asked = { after: String(seen.get(run)), run, limit: String(PAGE_MAX) };
    const { body } = await admin.call("GET", `/audit${query(asked)}`);
    run = String(body.run);
    if (!seen.has(run))
      follower.terminal.note(
        "Another run of the gateway answers: the last lines of the previous run may be in the log only.",
      );
    const after = seen.get(run) ?? 0;
    const rows = itemsOf(body).filter(({ seq }) => Number(seq) > after);
    const lacking = Number(rows[0]?.seq ?? after + 1) - after - 1;
    if (lacking > 0) follower.terminal.note(`Lines that are only in the log: ${lacking}.`);
    seen.set(run, Number(rows.at(-1)?.seq ?? after));
    return { rows, isMore: itemsOf(body).length === PAGE_MAX };
  };
  const form = { format, columns: COLUMNS, shown };
  return following({ first: itemsOf(begun).toReversed(), more }, form, pauseOf(every), follower);
}

function shown(line: JsonObject): JsonObject {
  return {
    at: secondOf(String(line.at)),
    who: `${line.who} from ${line.from}`,
    happened: happened(line),
    request_id: line.request_id,
  };
}

/** `2026-11-22T20:30:41.374Z` as `2026-11-22 20:30:41`. */
const secondOf = (instant: string): string => instant.replace("T", " ").replace(/\.\d+Z$/, "");

/**
 * `Refused (unknown plan): give the account bob the plan nope`. A gateway of another version may have other actions.
 */
function happened({ what, target, outcome, cause, facts }: JsonObject): string {
  const known = facts as JsonObject;
  const deed = String(what);
  const words = Object.hasOwn(DEEDS, deed)
    ? DEEDS[deed]?.(String(target), (name) => String(known[name] ?? "-"))
    : `${deed.replaceAll(/[._]/g, " ")} ${target}`;
  const rest = Object.entries(known)
    .filter(([name]) => !LEFT_OUT[deed]?.includes(name))
    .map(([name, value]) => `; ${FACTS[name] ?? name.replaceAll("_", " ")} ${value}`);
  const reason = typeof cause === "string" ? ` (${cause.replaceAll("_", " ")})` : "";
  return `${OUTCOMES[String(outcome)] ?? outcome}${reason}: ${words}${rest.join("")}`;
}

/** Defines `tollgate audit`. */
export function addAuditCommand(program: Command, follow: Follow): void {
  program
    .command("audit")
    .description(
      "show the newest writes of operators and owners at this gateway, newest first; the log has all of them",
    )
    .option("--cursor <cursor>", "start of the next page, as shown by the page before")
    .option("--limit <count>", "lines per page, at most 200")
    .option("--last <count>", `number of newest lines, at most ${LAST_MAX}`)
    .option("--since <when>", "no lines before this time: 24h, 7d, or an instant (2026-11-01T00:00:00Z)")
    .option("--follow", FOLLOW)
    .option("--every <duration>", EVERY, "1s")
    .addOption(listingFormat())
    .action((options: AuditOptions) => follow((c, follower) => showAudit(c, options, follower), options));
}
