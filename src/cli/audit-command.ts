/** `tollgate audit`: the newest writes of operators, as the gateway that is asked remembers them. */

import type { JsonObject } from "../values/json-object.ts";
import type { AdminClient } from "./admin-client.ts";
import { type CommandResult, itemsOf, type PageOptions, query, withMore } from "./admin-commands.ts";
import { type Column, table } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { title: "AT", member: "at" },
  { title: "WHO", member: "who" },
  { title: "FROM", member: "from" },
  { title: "WHAT", member: "what" },
  { title: "TARGET", member: "target" },
  { title: "OUTCOME", member: "outcome" },
  { title: "CAUSE", member: "cause" },
  { title: "FACTS", member: "facts" },
  { title: "REQUEST", member: "request_id" },
];

export async function showAudit(admin: AdminClient, { cursor, limit }: PageOptions): Promise<CommandResult> {
  const { body } = await admin.call("GET", `/audit${query({ cursor, limit })}`);
  const rows = itemsOf(body).map((line) => ({ ...line, facts: words(line.facts as JsonObject) }));
  const text = rows.length === 0 ? "No writes since the gateway began.\n" : table(COLUMNS, rows);
  return withMore(body, text, (next) => `Older lines: tollgate audit --cursor ${next}\n`);
}

function words(facts: JsonObject): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
