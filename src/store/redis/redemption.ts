/**
 * Redemptions on Redis. A code and the account that redeems it are in different slots, so no single script can do both.
 * A redemption consists of steps, each of which may be repeated (docs/failure-model.md invariant 11):
 *
 *   note     the code's hash is added to the set of claims, where a sweep finds redemptions that were cut off
 *   claim    unused -> claimed, for one account: the single winner is decided here
 *   credit   the account gets the card, once per code id
 *   end      claimed -> redeemed
 *   forget   the note is removed
 *
 * If the process dies in between, the next try of the same account or `finishClaims` finishes the redemption, whichever
 * comes first.
 */

import type { CodeHash } from "../../values/code.ts";
import type { AccountTag } from "../../values/key.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import { type Store, StoreError } from "../contract.ts";
import type { Code, Entitlement, RedeemAnswer, Redemption } from "../records.ts";
import { grant } from "./cards.ts";
import { enterInBatch, hashOfId, indexCodes, readCode } from "./codes.ts";
import type { Confirm } from "./connection/confirmed.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, CLAIMS, codeKey } from "./keys.ts";
import { toCode } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/** How long the note of a claim that was never made is kept: far longer than any redemption takes. */
const NOTE_LIFE_MS = 600_000;

export async function redeem(
  runner: Runner,
  scripts: Scripts,
  { hash, tag, fromMs }: Parameters<Store["redeem"]>[0],
  confirm?: Confirm,
): Promise<RedeemAnswer> {
  // Read first, so that a guessed code leaves no trace in the store.
  const before = await readCode(runner, hash);
  const refusal = before === undefined ? { outcome: "unknown_code" as const } : refusedTo(tag, before);
  if (refusal !== undefined) return refusal;
  const [name, status] = await runner.step((redis) => redis.hmget(accountKey(tag), ["name", "status"]));
  if (!name) return { outcome: "unknown_account" };
  if (status === "closed" && before?.state === "unused" && fromMs === undefined) return { outcome: "closed_account" };
  await noteClaim(runner, scripts, hash);
  const claimed = await claim(runner, scripts, hash, tag, fromMs !== undefined);
  if (claimed === undefined) return { outcome: "unknown_code" };
  // The note stays, because another account's claim may have been in time. A sweep removes it.
  if (claimed.expired) return { outcome: "expired" };
  await confirm?.([codeKey(hash)], undefined);
  // Another account was faster; the note now belongs to the winner.
  const lost = refusedTo(tag, claimed.code);
  if (lost !== undefined) return lost;
  const entitlement = await creditClaim(runner, scripts, tag, claimed.code, fromMs);
  if (entitlement === undefined) return { outcome: "unknown_account" };
  const code = (await endClaim(runner, scripts, hash, tag)) ?? claimed.code;
  await dropClaim(runner, scripts, hash);
  if ((await hashOfId(runner, code.id)) === undefined) {
    const { batch } = code;
    if (batch !== undefined) await enterInBatch(runner, scripts, { ...code, batch }, [code.id]);
    await indexCodes(runner, scripts, [{ id: code.id, hash }]);
  }
  return { outcome: claimed.now ? "redeemed" : "again", code, entitlement };
}

/** Why the account does not get the code; undefined when it may have it, or has it. */
function refusedTo(tag: AccountTag, code: Code): { outcome: "void" | "used" } | undefined {
  if (code.state === "void") return { outcome: "void" };
  return code.tag === undefined || code.tag === tag ? undefined : { outcome: "used" };
}

export async function noteClaim(runner: Runner, scripts: Scripts, hash: CodeHash): Promise<void> {
  await runner.script(scripts["claim-note"], [CLAIMS], [hash]);
}

/**
 * @param again the claim is a replay, and was in time.
 * @returns the code as it is now, whether this very call claimed it, and whether it came too late.
 */
export async function claim(
  runner: Runner,
  scripts: Scripts,
  hash: CodeHash,
  tag: AccountTag,
  again = false,
): Promise<{ code: Code; now: boolean; expired: boolean } | undefined> {
  const reply = await runner.script(scripts["code-claim"], [codeKey(hash)], [tag, again ? "1" : ""]);
  if (reply === null) return undefined;
  const [now, texts] = reply as [string, string[]];
  return { code: toCode(texts), now: now === "1", expired: now === "expired" };
}

/** Gives the account what the code is worth; undefined when there is no such account. */
export async function creditClaim(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  code: Code,
  fromMs?: number,
): Promise<Entitlement | undefined> {
  return grant(runner, scripts, tag, {
    ...code,
    afterPrevious: code.starts === "after_previous",
    reference: code.id,
    fromMs,
  });
}

export async function endClaim(
  runner: Runner,
  scripts: Scripts,
  hash: CodeHash,
  tag: AccountTag,
): Promise<Code | undefined> {
  const reply = await runner.script(scripts["code-done"], [codeKey(hash)], [tag]);
  return reply === null ? undefined : toCode(reply as string[]);
}

async function dropClaim(runner: Runner, scripts: Scripts, hash: CodeHash, notedAt = ""): Promise<void> {
  await runner.script(scripts["claim-drop"], [CLAIMS], [hash, notedAt]);
}

/**
 * Finishes the oldest noted claims. A redemption that is under way at this moment is not disturbed.
 * @throws StoreError when an account's own records prevent a credit; thrown after the others are done.
 */
export async function finishClaims(
  runner: Runner,
  scripts: Scripts,
  limit: number,
  onFinished: Parameters<Store["finishClaims"]>[1],
): Promise<number> {
  const reply = await runner.script(scripts["claim-list"], [CLAIMS], [`${pageSize(limit, PAGE_MAX)}`]);
  const [now, notes] = reply as [string, string[]];
  let finished = 0;
  let damaged: StoreError | undefined;
  for (let i = 0; i + 1 < notes.length; i += 2) {
    const [hash, notedAt] = notes.slice(i, i + 2) as [CodeHash, string];
    const redemption = await creditNoted(runner, scripts, hash, notedAt, Number(now)).catch(async (error: unknown) => {
      if (!(error instanceof StoreError) || error.outcome !== "refused") throw error;
      damaged = error;
      // The note is renewed, so that it does not delay the others.
      await noteClaim(runner, scripts, hash);
      return undefined;
    });
    if (!redemption) continue;
    // Reported before the note is removed: if this process dies now, the next sweep reports it again.
    await onFinished?.(redemption);
    await endClaim(runner, scripts, hash, redemption.tag);
    await dropClaim(runner, scripts, hash);
    finished += 1;
  }
  if (damaged) throw damaged;
  return finished;
}

/** Gives the account of a noted claim its card; undefined when there is nothing to finish. */
async function creditNoted(
  runner: Runner,
  scripts: Scripts,
  hash: CodeHash,
  notedAt: string,
  nowMs: number,
): Promise<Redemption | undefined> {
  const code = await readCode(runner, hash);
  // The claim may be on its way, unless the note is old: then the claim was never made.
  if (code?.state === "unused" && nowMs - Number(notedAt) <= NOTE_LIFE_MS) return undefined;
  if (code?.state !== "claimed" || code.tag === undefined) {
    await dropClaim(runner, scripts, hash, notedAt);
    return undefined;
  }
  const entitlement = await creditClaim(runner, scripts, code.tag, code);
  if (entitlement === undefined) {
    // The account is lost. Its note is renewed, so that it does not delay the others.
    await noteClaim(runner, scripts, hash);
    return undefined;
  }
  return { hash, tag: code.tag, code, entitlement };
}
