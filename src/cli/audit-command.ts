/** `tollgate audit`: the newest writes of operators and owners, as the gateway that is asked remembers them, in words. */

import type { JsonObject } from "../values/json-object.ts";
import { COMMAND } from "../values/program/program.ts";
import type { AdminClient } from "./admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, query, withMore } from "./admin-commands.ts";
import { type Command, EVERY, FOLLOW, type Follow, listingFormat } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type Follower, following, pauseOf } from "./follow/follow.ts";
import { instantOf } from "./instants.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { type Column, many } from "./output/table.ts";

const COLUMNS: readonly Column[] = [
  { title: "AT, UTC", member: "at" },
  { title: "WHO", member: "who" },
  { title: "WHAT HAPPENED", member: "happened" },
  { title: "REQUEST", member: "request_id" },
];

/** FactOf by name; what is not there reads as a dash. */
type FactOf = (name: string) => string;

/** What was asked for, by the API's name for it: to whom it was done, and its facts. Words for "to …". */
const DEEDS: Readonly<Record<string, (target: string, facts: FactOf) => string>> = {
  "account.create": (name, of) => `create the account ${name} with the plan ${of("plan")}`,
  "account.set_plan": (name, of) => `give the account ${name} the plan ${of("plan")}`,
  "account.set_limits": (name) => `limit what ${name} spends`,
  "account.notify": (name, of) =>
    of("below_usd") === "none"
      ? `leave it to the configuration below which balance of ${name} there is a notice`
      : `have a notice when the balance of ${name} goes below ${of("below_usd")} USD`,
  "account.adjust": (name, of) => `correct the balance of ${name} by ${of("usd")} USD: ${of("note")} (id ${of("id")})`,
  "account.invite": (name) => `make a sign-in link for the account ${name}`,
  "account.sign_out": (name) => `end all sessions of the console of ${name}`,
  "session.begin": (name, of) => `sign in to the console${name && ` of ${name}`} by ${WAYS[of("way")] ?? of("way")}`,
  "session.end": (name) => `end a session of the console of ${name}`,
  "session.end_others": (name) => `end all other sessions of the console of ${name}`,
  "passkey.add": (name, of) => `add the passkey ${of("name")} to the account ${name}`,
  "passkey.rename": (name, of) => `call a passkey of the account ${name} ${of("name")}`,
  "passkey.remove": (name) => `remove a passkey of the account ${name}`,
  "account.rename": (name, of) => `call the account ${name} ${of("name")}`,
  "account.label": (name, of) => `set or take away ${of("labels")} labels of the account ${name}`,
  "account.suspend": (name) => `suspend the account ${name}`,
  "account.resume": (name) => `resume the account ${name}`,
  "account.close": (name) => `close the account ${name}`,
  topup: (name, of) => `top up ${name} by ${of("usd")} USD (payment ${of("id")})`,
  "key.create": (name, of) => `create a key for ${name} in the group ${of("group")}`,
  "key.set_group": (id, of) => `move the key ${id} to the group ${of("group")}`,
  "key.rename": (id, of) =>
    of("name") === "" ? `take the name of the key ${id} away` : `call the key ${id} ${of("name")}`,
  "key.set_expiry": (id, of) =>
    of("expires_at") === "never" ? `let the key ${id} have no end` : `let the key ${id} end at ${of("expires_at")}`,
  "key.rotate": (id, of) => `rotate the key ${id} with an overlap of ${of("overlap_seconds")} s`,
  "key.set_limits": (id) => `limit the key ${id}`,
  "key.set_caps": (id) => `cap the limits of the key ${id}`,
  "key.suspend": (id) => `suspend the key ${id}`,
  "key.resume": (id) => `resume the key ${id}`,
  "key.revoke": (id) => `revoke the key ${id}`,
  "code.create": (card, of) => `make ${many(of("count"), "code")} for the card ${card}`,
  "code_batch.void": (id) => `void the codes of the batch ${id} that nobody has redeemed`,
  "card.gift": (name, of) => `give the account ${name} a ${of("card")} card`,
  "code.void": (id) => `void the code ${id}`,
  "code.redeem": (name) => `redeem a code for ${name}`,
  "ledger.archive": (name, of) => `archive the ledger of ${name} up to line ${of("through")}`,
  "webhook.test": () => "send a test notice to the receiver",
  "webhook.retry": () => "try again what waits for the receiver",
  "operator.sign_in": () => "sign in to the operator's console",
  "operator.sign_out": () => "sign out of the operator's console",
  "store.confirm": (seen) => `confirm the store as it is (${seen})`,
};

/** By what somebody signs in. */
const WAYS: Readonly<Record<string, string>> = {
  link: "a link",
  passkey: "a passkey",
  oidc: "OpenID Connect",
  front: "the front's word",
};

/** FactOf that a deed's words have already, or that say nothing by themselves. */
const SAID: Readonly<Record<string, readonly string[]>> = {
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
  before: "lines of before",
  idempotency_id: "asked for with the id",
};

const OUTCOMES: Readonly<Record<string, string>> = {
  done: "Done",
  repeated: "Done before, nothing changed",
  refused: "Refused",
  unknown: "Perhaps done, the store did not answer",
};

interface AuditOptions extends PageOptions, ListingOptions {
  /** How many of the newest lines. */
  readonly last?: string;
  /** As typed: an instant, or how long ago. */
  readonly since?: string;
  readonly follow?: true;
  readonly every?: string;
}

/** Lines on a page, the API's most. */
const PAGE_MAX = 200;
/** Lines that a gateway remembers. */
const LAST_MAX = 1_000;
/** Lines that a listing begins with that goes on. */
const FOLLOWED = "10";

/** Newest first, or with `--follow` oldest first and on. @throws CliFailure 2 for a count or an instant that is none */
export async function showAudit(admin: AdminClient, options: AuditOptions, follower: Follower): Promise<CommandResult> {
  const { cursor, last, follow } = options;
  const limit = options.limit ?? (follow ? (last ?? FOLLOWED) : last);
  if (last !== undefined && options.limit !== undefined) throw new CliFailure(2, "--last and --limit say the same.");
  // A page has fewer, and its most is not this option's.
  if (last !== undefined && !(/^[0-9]{1,4}$/.test(last) && Number(last) >= 1 && Number(last) <= LAST_MAX))
    throw new CliFailure(2, `--last is a whole number from 1 to ${LAST_MAX}: the log has what is older.`);
  const since = options.since === undefined ? undefined : instantOf("--since", options.since, -1);
  if (follow && cursor !== undefined) throw new CliFailure(2, "--cursor is for pages: leave it out with --follow.");
  const body = await newestLines(admin, { cursor, since }, limit);
  if (follow) return followAudit(admin, options, body, follower);
  const rows = itemsOf(body).map(shown);
  const text = listing(options, { columns: COLUMNS, rows, json: body, none: "No writes since the gateway began." });
  const again = options.since === undefined ? "" : ` --since ${options.since}`;
  return withMore(body, text, (next) => `Older lines: ${COMMAND} audit${again} --cursor ${next}\n`);
}

/** A page, or as many pages as have that many lines. */
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

/** The numbers begin anew with the gateway: lines that it noted at its very end are in the log only. */
function followAudit(
  admin: AdminClient,
  { format, every }: AuditOptions,
  begun: JsonObject,
  follower: Follower,
): CommandResult {
  let run = String(begun.run);
  /** Behind one address there may be several gateways, which answer in turn. */
  const seen = new Map([[run, Number(begun.newest)]]);
  const more = async () => {
    const asked = { after: String(seen.get(run)), run, limit: String(PAGE_MAX) };
    const { body } = await admin.call("GET", `/audit${query(asked)}`);
    run = String(body.run);
    if (!seen.has(run))
      follower.terminal.note("Another run of the gateway: what the one before noted last is in the log only.");
    const after = seen.get(run) ?? 0;
    const rows = itemsOf(body).filter(({ seq }) => Number(seq) > after);
    const lacking = Number(rows[0]?.seq ?? after + 1) - after - 1;
    if (lacking > 0) follower.terminal.note(`Lines that are in the log only: ${lacking}.`);
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

/** `2026-11-22T20:30:41.374Z` as people write it. */
const secondOf = (instant: string): string => instant.replace("T", " ").replace(/\.\d+Z$/, "");

/** `Refused (unknown plan): give the account bob the plan nope`. A gateway of another version may know other deeds. */
function happened({ what, target, outcome, cause, facts }: JsonObject): string {
  const known = facts as JsonObject;
  const deed = String(what);
  const words = Object.hasOwn(DEEDS, deed)
    ? DEEDS[deed]?.(String(target), (name) => String(known[name] ?? "-"))
    : `${deed.replaceAll(/[._]/g, " ")} ${target}`;
  const rest = Object.entries(known)
    .filter(([name]) => !SAID[deed]?.includes(name))
    .map(([name, value]) => `; ${FACTS[name] ?? name.replaceAll("_", " ")} ${value}`);
  const reason = typeof cause === "string" ? ` (${cause.replaceAll("_", " ")})` : "";
  return `${OUTCOMES[String(outcome)] ?? outcome}${reason}: ${words}${rest.join("")}`;
}

/** Defines `tollgate audit`. */
export function addAuditCommand(program: Command, follow: Follow): void {
  program
    .command("audit")
    .description("the newest writes of operators and owners at this gateway, newest first; the log has them all")
    .option("--cursor <cursor>", "where the next page begins, as the page before says")
    .option("--limit <count>", "lines on a page, at most 200")
    .option("--last <count>", `the newest lines, at most ${LAST_MAX}`)
    .option("--since <when>", "no line before then: 24h, 7d, or an instant (2026-11-01T00:00:00Z)")
    .option("--follow", FOLLOW)
    .option("--every <duration>", EVERY, "1s")
    .addOption(listingFormat())
    .action((options: AuditOptions) => follow((c, follower) => showAudit(c, options, follower), options));
}
