/** `tollgate usage`: sums of what was spent, over all pages of accounts, as a table, CSV or JSON. */
import { formatUsd } from "../values/money.ts";
import type { AdminClient, Fields } from "./admin-client.ts";
import { itemsOf, type Outcome, query } from "./admin-commands.ts";
import { csv } from "./csv.ts";
import { CliFailure } from "./failure.ts";
import { patientClient } from "./patient-client.ts";
import { cell, table } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export interface UsageOptions {
  readonly account?: string;
  readonly by?: string;
  readonly since?: string;
  readonly until?: string;
  readonly format?: string;
}

/** What the admin API counts beside money, and how a table heads it. */
const COUNTS = {
  requests: "REQUESTS",
  input_tokens: "INPUT",
  cached_input_tokens: "CACHED",
  cache_write_tokens: "CACHE WRITE",
  output_tokens: "OUTPUT",
  reasoning_tokens: "REASONING",
} as const;
const COUNT_MEMBERS = Object.keys(COUNTS) as (keyof typeof COUNTS)[];

interface Sum {
  readonly usd: bigint;
  readonly counts: readonly number[];
}

const NOTHING: Sum = { usd: 0n, counts: COUNT_MEMBERS.map(() => 0) };

/** @throws CliFailure 2 for a format that is none */
export async function showUsage(impatient: AdminClient, options: UsageOptions, terminal: Terminal): Promise<Outcome> {
  const admin = patientClient(impatient, terminal);
  const { account, by, since, until, format = "table" } = options;
  if (!["table", "csv", "json"].includes(format)) throw new CliFailure(2, "--format must be table, csv or json.");
  const asked = { account, by, since, until };
  const sums = new Map<string, Sum>();
  let body: Fields;
  let cursor: string | undefined;
  let pages = 0;
  do {
    ({ body } = await admin.call("GET", `/usage${query({ ...asked, cursor })}`));
    for (const item of itemsOf(body)) {
      const value = String(item[String(body.by)]);
      sums.set(value, added(sums.get(value) ?? NOTHING, readSum(item)));
    }
    cursor = typeof body.next === "string" ? body.next : undefined;
    pages += 1;
    if (cursor !== undefined) terminal.progress(`Summing up: ${pages} pages`);
  } while (cursor !== undefined);
  terminal.clear();
  const name = String(body.by);
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([value, sum]) => ({ [name]: value, ...shown(sum) }));
  const total = shown([...sums.values()].reduce(added, NOTHING));
  const json = { since: body.since, until: body.until, by: name, items: rows, total, total_usd: total.usd };
  if (format === "json") return { json, text: `${JSON.stringify(json)}\n` };
  if (format === "csv") return { json, text: csv([name, "usd", ...COUNT_MEMBERS], rows) };
  const columns = [
    { title: name.toUpperCase(), member: name },
    { title: "USD", member: "usd", right: true },
    ...COUNT_MEMBERS.map((member) => ({ title: COUNTS[member], member, right: true })),
  ];
  const heading = `From ${cell(body.since)} to ${cell(body.until)}, UTC\n`;
  return { json, text: heading + table(columns, [...rows, { [name]: "total", ...total }]) };
}

function shown({ usd, counts }: Sum): Fields {
  const named = COUNT_MEMBERS.map((member, index): [string, number] => [member, counts[index] ?? 0]);
  return { usd: formatUsd(usd), ...Object.fromEntries(named) };
}

function added(a: Sum, b: Sum): Sum {
  return { usd: a.usd + b.usd, counts: a.counts.map((count, index) => count + (b.counts[index] ?? 0)) };
}

/** An amount as the admin API writes it; sums over accounts may pass what one account may hold. */
function readSum(item: Fields): Sum {
  const match = /^([0-9]+)\.([0-9]{1,9})$/.exec(String(item.usd));
  if (match === null) throw new CliFailure(1, "The gateway's answer has an amount that is none.");
  const [, whole = "", fraction = ""] = match;
  // A gateway of an earlier version tells no counts.
  const counts = COUNT_MEMBERS.map((member) => Number(item[member] ?? 0));
  return { usd: BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")), counts };
}
