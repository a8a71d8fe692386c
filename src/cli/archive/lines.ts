/** Reads accounts and ledger lines from a gateway, page by page, for the archive commands. */
import { fromPlain } from "../../store/ledger/plain-line.ts";
import type { LedgerLine } from "../../store/records.ts";
import { type AdminClient, segment } from "../admin-client.ts";
import { itemsOf, query } from "../admin-commands.ts";
import { CliFailure } from "../failure.ts";

const PAGE = 250;

/** Names of all accounts, read page by page. */
export async function* allAccounts(admin: AdminClient): AsyncGenerator<string> {
  let cursor: string | undefined;
  do {
    const { body } = await admin.call("GET", `/accounts${query({ cursor, limit: "200" })}`);
    for (const { name } of itemsOf(body)) yield String(name);
    cursor = typeof body.next === "string" ? body.next : undefined;
  } while (cursor !== undefined);
}

/** A page of a ledger as stored: at most `limit` lines after a line. */
export async function readLines(
  admin: AdminClient,
  account: string,
  after: number,
  limit = PAGE,
): Promise<{
  readonly id: string;
  readonly tag: string;
  readonly lines: LedgerLine[];
  /** Whether there are further lines, or may be. */
  readonly more: boolean;
  /** Lines from this instant on stay in the store. */
  readonly stayFromMs: number;
}> {
  const search = query({ after: `${after}`, limit: `${limit}` });
  const { body } = await admin.call("GET", `/accounts/${segment(account)}/ledger/lines${search}`);
  const lines = itemsOf(body).map(fromPlain);
  if (!lines.every((line) => line !== undefined)) throw new CliFailure(1, "The gateway's answer has an invalid line.");
  const more = typeof body.next === "number";
  return { id: String(body.id), tag: String(body.tag), lines, more, stayFromMs: Number(body.stay_from_ms) };
}
