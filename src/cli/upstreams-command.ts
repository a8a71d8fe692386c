/** `tollgate upstreams`: the state of each upstream at one gateway. */

import type { JsonObject } from "../values/json-object.ts";
import type { AdminClient } from "./admin-client.ts";
import { type CommandResult, itemsOf } from "./admin-commands.ts";
import { type Ask, type Command, listingFormat } from "./command-line.ts";
import { type ListingOptions, listing } from "./output/listing.ts";
import { type Column, cell } from "./output/table.ts";

const COLUMNS: readonly Column[] = [
  { title: "UPSTREAM", member: "name" },
  { title: "HEALTH", member: "health" },
  { title: "WHY", member: "reason" },
  { title: "COOL-DOWN S", member: "rest_seconds", right: true },
  { title: "IN FLIGHT", member: "in_flight", right: true },
  { title: "QUEUED", member: "queued", right: true },
  { title: "OK", member: "ok", right: true },
  { title: "LOCAL", member: "local", right: true },
  { title: "REMOTE", member: "remote", right: true },
  { title: "429", member: "rate_limited", right: true },
  { title: "FORBIDDEN", member: "forbidden", right: true },
  { title: "404/405", member: "not_found", right: true },
];

const COUNTED = "The columns OK to 404/405 count the attempts in each upstream's health.window (default 30s).\n";

async function showUpstreams(admin: AdminClient, options: ListingOptions): Promise<CommandResult> {
  const { body } = await admin.call("GET", "/upstreams");
  const items = itemsOf(body);
  const rows = items.map((item) => ({
    ...item,
    in_flight: `${cell(item.in_flight)}/${cell(item.max_concurrency)}`,
    ...(item.outcomes as JsonObject),
  }));
  const text = listing(options, { columns: COLUMNS, rows, json: body, none: "No upstreams." });
  const isTable = options.format === undefined || options.format === "table";
  return { json: body, text: isTable ? text + items.flatMap(limits).join("") + COUNTED : text };
}

function limits({ name, limited_models: limited }: JsonObject): string[] {
  return ((limited ?? []) as readonly JsonObject[]).map(
    ({ model, rest_seconds: rest }) => `${cell(name)}: ${cell(model)} is not used for another ${cell(rest)} s (429).\n`,
  );
}

/** Defines `tollgate upstreams`. */
export function addUpstreamsCommand(program: Command, ask: Ask): void {
  program
    .command("upstreams")
    .description("show the upstreams of this gateway: health, requests in flight and queued, recent outcomes")
    .addOption(listingFormat())
    .action((options: ListingOptions) => ask((c) => showUpstreams(c, options)));
}
