/** A notice as it is sent: its body, and the headers that sign it by Standard Webhooks. */
import { createHash, createHmac } from "node:crypto";
import { accountId } from "../store/names.ts";
import { GATEWAY_OUTBOX, type NewNotice, type Outbox } from "../store/notices.ts";
import { formatUsd } from "../values/money.ts";
import { printReference } from "../values/request-id.ts";
import type { Secret } from "../values/secret.ts";

/** A message for a receiver; identical each time it is sent. */
export interface NoticeMessage {
  /** By this a receiver recognizes a message that it already has. */
  readonly id: string;
  readonly body: string;
}

/** What a message is made of. */
interface Told extends Omit<NewNotice, "kind"> {
  readonly kind: NewNotice["kind"] | "test";
  readonly outbox: Outbox;
  /** The account's name. */
  readonly name: string;
  readonly atMs: number;
  /** Notices that were dropped between the one before and this one. */
  readonly dropped: number;
}

/** Members that are nano-dollars or instants: amounts are also sent in dollars, instants as ISO 8601. */
const AMOUNTS = new Set(["balance", "below", "limit", "quota", "rest"]);
const INSTANTS = new Set(["ends_at", "resets_at"]);

/**
 * Makes the message. Its id follows from what the notice reports. If a store loses a notice and a journal or a second
 * call creates it again, a receiver recognizes it as the same.
 */
export function messageOf({ kind, ref, data, outbox, name, atMs, dropped }: Told): NoticeMessage {
  const named = createHash("sha256")
    .update(JSON.stringify([outbox, kind, ref]))
    .digest("base64url");
  const facts: Record<string, unknown> = {};
  if (outbox !== GATEWAY_OUTBOX) facts.account = { id: accountId(outbox), name };
  for (const [fact, text] of Object.entries(data)) Object.assign(facts, factOf(fact, text));
  // An operator's own id may be 32 hex digits, like a request id before it is printed.
  if (kind === "balance_low") facts.reference = data.by === "adjustment" ? ref : printReference(ref);
  if (dropped > 0) facts.dropped = dropped;
  const body = JSON.stringify({ type: kind, timestamp: new Date(atMs).toISOString(), data: facts });
  return { id: `msg_${named.slice(0, 27)}`, body };
}

function factOf(fact: string, text: string): Readonly<Record<string, string>> {
  if (AMOUNTS.has(fact) && /^-?[0-9]{1,18}$/.test(text)) {
    return { [`${fact}_usd`]: formatUsd(BigInt(text)), [`${fact}_nano_usd`]: text };
  }
  if (INSTANTS.has(fact) && /^[0-9]{1,15}$/.test(text)) return { [fact]: new Date(Number(text)).toISOString() };
  return { [fact]: text };
}

/**
 * The headers of one attempt (https://www.standardwebhooks.com). The standard's library verifies them in the tests. It
 * does not sign here, because then a fault of the library would be on both sides
 * (docs/decisions/a-notice-is-queued-in-its-accounts-record.md).
 * @param secrets each of them signs, so that secrets can be rotated while both are valid.
 */
export function signedHeaders(
  { id, body }: NoticeMessage,
  secrets: readonly Secret[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const timestamp = `${Math.floor(nowMs / 1_000)}`;
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.reveal().slice("whsec_".length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
