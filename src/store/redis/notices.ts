/** Notices on Redis: those of an account are in its hash, those of the gateway in a hash of their own. */

import type { AccountTag } from "../../values/key.ts";
import { pageSize } from "../checks.ts";
import { StoreError } from "../contract.ts";
import {
  GATEWAY_OUTBOX,
  type NewNotice,
  NOTICES_MAX,
  NOTICES_PAGE_MAX,
  type NoticeMark,
  type NoticeWriter,
  noticeOfTexts,
  noticeTexts,
  type Outbox,
  type WaitingAccount,
  type WaitingNotices,
  waitingCount,
} from "../notices.ts";
import type { Page } from "../records.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, GATEWAY_NOTICES, NOTICES_LEASE } from "./keys.ts";
import { listAccountNames } from "./names.ts";
import type { Scripts } from "./scripts.ts";

const keyOf = (outbox: Outbox): string => (outbox === GATEWAY_OUTBOX ? GATEWAY_NOTICES : accountKey(outbox));

interface Adding {
  readonly runner: Runner;
  readonly scripts: Scripts;
  readonly notices: NoticeWriter | undefined;
}

export async function addNotice(
  { runner, scripts, notices }: Adding,
  outbox: Outbox,
  notice: NewNotice,
  once?: NoticeMark,
): Promise<"added" | "known" | "none"> {
  const [kind = "", ref = "", ...facts] = noticeTexts(notice);
  const values = [kind, ref, once?.name ?? "", `${once?.latest ?? ""}`, outbox === GATEWAY_OUTBOX ? "" : "1", ...facts];
  const reply = await runner.script(scripts["notice-add"], [keyOf(outbox)], values);
  if (reply === "added") notices?.noted(outbox);
  return reply as "added" | "known" | "none";
}

export async function readNotices(
  runner: Runner,
  scripts: Scripts,
  outbox: Outbox,
  limit: number,
): Promise<WaitingNotices> {
  const values = [`${pageSize(limit, NOTICES_MAX)}`];
  const reply = await runner.script(scripts["notices-read"], [keyOf(outbox)], values);
  const [name, taken, last, texts] = reply as readonly [string, string, string, readonly string[]];
  const notices = texts.filter((text) => text !== "").map((text) => noticeOfTexts(JSON.parse(text) as string[]));
  return { name, taken: Number(taken), last: Number(last), notices };
}

export async function takeNotice(runner: Runner, scripts: Scripts, outbox: Outbox, seq: number): Promise<void> {
  await runner.script(scripts["notice-take"], [keyOf(outbox)], [`${seq}`]);
}

/**
 * Reads two small fields of each account on a page of names. An account is skipped when its part of the store does not
 * answer, or reports an error for it. It is found again later, and the others do not wait.
 * @throws StoreError when the names cannot be read, or none of the accounts.
 */
export async function pageNotices(
  runner: Runner,
  cursor: string | undefined,
  limit: number,
): Promise<Page<WaitingAccount>> {
  const page = await listAccountNames(runner, cursor, pageSize(limit, NOTICES_PAGE_MAX));
  const asked = await Promise.allSettled(page.items.map(({ name, tag }) => waitingOf(runner, name, tag)));
  const [failed] = asked.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  const answered = asked.filter(({ status }) => status === "fulfilled") as PromiseFulfilledResult<
    WaitingAccount | undefined
  >[];
  if (failed && (answered.length === 0 || !(failed.reason instanceof StoreError))) throw failed.reason;
  return { items: answered.map(({ value }) => value).filter((one) => one !== undefined), next: page.next };
}

async function waitingOf(runner: Runner, name: string, tag: AccountTag): Promise<WaitingAccount | undefined> {
  const [last, taken] = await runner.step((redis) => redis.hmget(accountKey(tag), ["nseq", "ntaken"]));
  const waiting = waitingCount({ last: Number(last ?? 0), taken: Number(taken ?? 0) });
  return waiting > 0 ? { tag, name, waiting } : undefined;
}

export async function leaseNotices(
  runner: Runner,
  scripts: Scripts,
  { holder, ms, force }: { readonly holder: string; readonly ms: number; readonly force: boolean },
): Promise<boolean> {
  const reply = await runner.script(scripts["notice-lease"], [NOTICES_LEASE], [holder, `${ms}`, force ? "1" : ""]);
  return reply === "yours";
}
