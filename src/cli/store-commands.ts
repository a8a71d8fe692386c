/** `tollgate store`: checks whether the store lost data, confirms a store that did, and backs up an embedded store. */
import { StoreError } from "../store/contract.ts";

import type { JsonObject } from "../values/json-object.ts";
import { DATA_DIR, DEMO_DATA_DIR } from "../values/settings.ts";
import type { AdminClient, GatewayPlace } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import { Argument, type Ask, type Command, type Own, pathOf } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type Column, cell, table } from "./output/table.ts";
import { asTyped } from "./typed-names.ts";

const COLUMNS: readonly Column[] = [
  { title: "PART", member: "part", right: true },
  { title: "FINDING", member: "finding" },
  { title: "REMEMBERED", member: "remembered" },
  { title: "FOUND", member: "found" },
];

const STATES: Readonly<Record<string, string>> = {
  good: "The store has all of its data.\n",
  restoring:
    "The store is confirmed. The journal is being replayed into it; no request is admitted until that is done.\n",
  unknown: "The store has not answered since the gateway started.\n",
};

const FINDINGS =
  "empty: the store has no data. older: its newest data is missing. another: it is a different store.\n" +
  "told: another gateway found one of these; run this command there.\n";

export async function storeStatus(admin: AdminClient): Promise<CommandResult> {
  const { body } = await admin.call("GET", "/store");
  return shownState(body, ["good"], admin.command);
}

/** @param seen the value that `store status` shows for the loss. */
export async function confirmStore(client: AdminClient, seen: string): Promise<CommandResult> {
  const admin = asTyped(client, { confirm: "<seen>" });
  const { body: before } = await admin.call("GET", "/store");
  const { body } = await admin.call("POST", "/store/confirm", { confirm: seen });
  const state = shownState(body, ["good", "restoring"], admin.command);
  // The gateway looks for a loss again before it answers, so it is asked even if it knows of none.
  const isNothing = before.state === "good" && body.state === "good";
  return isNothing ? { ...state, text: `There was nothing to confirm; nothing was changed.\n${state.text}` } : state;
}

/**
 * The state as text. A store that cannot be used makes the command fail, for scripts. @param fine states that do not
 * fail
 */
function shownState(body: JsonObject, fine: readonly unknown[], command: string): CommandResult {
  const isInUse = (body.problem ?? null) === null && fine.includes(body.state);
  const failure = isInUse ? {} : { failure: "New requests are refused until the store can be used." };
  return { json: body, text: wordsOf(body, command), ...failure };
}

function wordsOf(body: JsonObject, command: string): string {
  const waiting = `Charges that wait for the store: ${cell(body.waiting_charges)}.\n`;
  const { problem } = body;
  if (typeof problem === "string") {
    return `The store cannot be used: ${problem}.\n${body.state === "stopped" ? lossWords(body, waiting, command) : waiting}`;
  }
  if (body.state === "stopped") return lossWords(body, waiting, command);
  return (STATES[String(body.state)] ?? "") + waiting;
}

function lossWords(body: JsonObject, waiting: string, command: string): string {
  const rows = (body.differences as readonly JsonObject[]).map((row) => ({
    ...row,
    remembered: shown(row.remembered),
    found: shown(row.found),
  }));
  return [
    "The store lost data. No request is admitted and nothing is written.\n\n",
    table(COLUMNS, rows),
    `\n${FINDINGS}${waiting}\n`,
    "To recover the data, restore a newer backup or point `store:` at the right server. The gateway then continues by itself.\n",
    "To continue with the data that is there, and have the journals replay what they have of the last day:\n",
    `  ${command} store confirm ${cell(body.confirm)}\n`,
  ].join("");
}

function shown(value: unknown): string {
  const epoch = value as JsonObject | null | undefined;
  return epoch ? `${cell(epoch.id)} (${duration(Number(epoch.counted_seconds))})` : "nothing";
}

/** Formats the seconds in which gateways were counting, in the two largest units. */
function duration(seconds: number): string {
  const units = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
    [1, "s"],
  ] as const;
  const from = units.findIndex(([size]) => seconds >= size);
  if (from < 0) return "0 s";
  let left = seconds;
  return units
    .slice(from, from + 2)
    .map(([size, name]) => {
      const count = Math.floor(left / size);
      left %= size;
      return `${count} ${name}`;
    })
    .join(" ");
}

/**
 * Copies the database of an embedded store. It does not use the gateway, so it also works if none is running.
 * @param place where the store's folder is searched.
 * @throws CliFailure 1
 */
async function backupStore({ data, env }: Pick<GatewayPlace, "data" | "env">, file: string): Promise<CommandResult> {
  const { copyDatabase, hasDatabase } = await import("../store/embedded/database/copy.ts");
  const named = data ?? (env.TOLLGATE_DATA || undefined);
  const dir = named ?? [DATA_DIR, DEMO_DATA_DIR].find(hasDatabase) ?? DATA_DIR;
  try {
    const { bytes, accounts, lines } = copyDatabase(dir, file);
    return {
      json: { file, bytes, accounts, ledger_lines: lines },
      text: `Copied ${counted(accounts, "account")} and ${counted(lines, "ledger line")} of ${dir} to ${file}, ${bytes} bytes.\n`,
    };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const elsewhere =
      named === undefined && !hasDatabase(dir) ? "; use --data or TOLLGATE_DATA to name another folder" : "";
    throw new CliFailure(1, `No copy was made: ${error.message}${elsewhere}.`);
  }
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Defines `tollgate store`. @param own runs commands that do not use the admin API. */
export function addStoreCommands(program: Command, ask: Ask, own: Own): void {
  const store = program
    .command("store")
    .description("the store: check its data, confirm it after a loss, back up an embedded one");
  store
    .command("status")
    .description("check whether the store has all of its data, and if not, show the differences")
    .action(() => ask(storeStatus));
  store
    .command("confirm <seen>")
    .description("use a store that lost data as it is; `store status` shows <seen>")
    .action((seen: string) => ask((c) => confirmStore(c, seen)));
  store
    .command("backup")
    .addArgument(new Argument("<file>").argParser(pathOf))
    .description(
      "copy the database of the embedded store in the folder --data; the gateway may be running; run it as the gateway's user",
    )
    .action((file: string) => own((place) => backupStore(place, file)));
}
