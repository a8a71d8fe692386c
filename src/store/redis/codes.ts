/** Codes on Redis: making, listing and voiding them, and their batches. Redemption is in `redemption.ts`. */

import type { CodeHash } from "../../values/code.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import type { Store } from "../contract.ts";
import type { Code, CodeBatch, CodeFacts, Page } from "../records.ts";
import type { Confirm } from "./connection/confirmed.ts";
import type { Runner } from "./connection/runner.ts";
import { BATCHES_IN_ORDER, batchCodesKey, batchKey, CODE_INDEX, CODES_IN_ORDER, codeKey } from "./keys.ts";
import { toBatch, toCode, toCodeOfFields } from "./records.ts";
import type { Scripts } from "./scripts.ts";

/** The number of codes that are made at once on the connection. */
const CREATE_STEP = 100;

/**
 * Writes the codes first, then their batch, then the index. A crash in between leaves codes that were not given out;
 * no code is in the index without being in its batch.
 */
export async function createCodes(
  runner: Runner,
  scripts: Scripts,
  ...[facts, codes, batch]: Parameters<Store["createCodes"]>
): Promise<"made" | "taken"> {
  const { card, plan, group, lastsMs, starts, quota, expiresAtMs, batch: batchId = "" } = facts;
  const [first] = codes;
  const stored = first && (await hashOfId(runner, first.id));
  if (stored !== undefined && stored !== first?.hash) return "taken";
  const worth = [card, plan, group, `${lastsMs}`, starts, `${quota ?? ""}`, `${expiresAtMs ?? ""}`];
  for (let from = 0; from < codes.length; from += CREATE_STEP) {
    const step = codes.slice(from, from + CREATE_STEP);
    const batches = await Promise.all(
      step.map(({ id, hash }) => runner.script(scripts["code-create"], [codeKey(hash)], [id, ...worth, batchId])),
    );
    // A code that existed before stays in its batch.
    const ids = step.filter((_, at) => batches[at] === batchId).map(({ id }) => id);
    if (batchId !== "") await enterInBatch(runner, scripts, { ...facts, batch: batchId }, ids, batch);
    // Another gateway may have made the same ids. The index decides, and these codes are not given out.
    if ((await indexCodes(runner, scripts, step)) === "taken") return "taken";
  }
  return "made";
}

/** Adds codes to their batch. */
export async function enterInBatch(
  runner: Runner,
  scripts: Scripts,
  { card, plan, group, lastsMs, starts, quota, expiresAtMs, batch: id }: CodeFacts & { readonly batch: string },
  codes: readonly string[],
  batch?: Pick<CodeBatch, "label" | "count">,
): Promise<void> {
  await runner.script(
    scripts["batch-index"],
    [BATCHES_IN_ORDER, batchKey(id), batchCodesKey(id)],
    [
      ...[id, batch?.label ?? "", `${batch?.count ?? ""}`, card, plan, group, `${lastsMs}`, starts],
      ...[`${quota ?? ""}`, `${expiresAtMs ?? ""}`, ...codes],
    ],
  );
}

/** Makes codes findable by their ids. @returns `taken` when an id belongs to another code. */
export async function indexCodes(
  runner: Runner,
  scripts: Scripts,
  codes: readonly { id: string; hash: CodeHash }[],
): Promise<"indexed" | "taken"> {
  const pairs = codes.flatMap(({ id, hash }) => [id, hash]);
  const reply = await runner.script(scripts["code-index"], [CODE_INDEX, CODES_IN_ORDER], pairs);
  return reply === "taken" ? "taken" : "indexed";
}

/** The cursor is the last id of the page before. */
export async function listCodes(runner: Runner, cursor: string | undefined, limit: number): Promise<Page<Code>> {
  return pageOf(runner, CODES_IN_ORDER, cursor, limit, (id) => getCode(runner, id));
}

/** Records whose ids are in a sorted set, in its order. */
async function pageOf<T>(
  runner: Runner,
  inOrder: string,
  cursor: string | undefined,
  limit: number,
  find: (id: string) => Promise<T | undefined>,
): Promise<Page<T>> {
  const size = pageSize(limit, PAGE_MAX);
  const ids = await runner.step((redis) => redis.namesAfter(inOrder, cursor, size + 1));
  const page = ids.slice(0, size);
  const found = await Promise.all(page.map(find));
  return {
    items: found.filter((one) => one !== undefined),
    next: ids.length > size ? page.at(-1) : undefined,
  };
}

export async function getBatch(runner: Runner, id: string): Promise<CodeBatch | undefined> {
  return toBatch(await runner.step((redis) => redis.hgetall(batchKey(id))));
}

export async function listBatches(runner: Runner, cursor: string | undefined, limit: number): Promise<Page<CodeBatch>> {
  return pageOf(runner, BATCHES_IN_ORDER, cursor, limit, (id) => getBatch(runner, id));
}

export async function listBatchCodes(
  runner: Runner,
  batch: string,
  cursor: string | undefined,
  limit: number,
): Promise<Page<Code>> {
  return pageOf(runner, batchCodesKey(batch), cursor, limit, (id) => getCode(runner, id));
}

export async function getCode(runner: Runner, id: string): Promise<Code | undefined> {
  const hash = await hashOfId(runner, id);
  return hash === undefined ? undefined : readCode(runner, hash);
}

/** The hash of a code; undefined when no code has this id. */
export async function hashOfId(runner: Runner, id: string): Promise<CodeHash | undefined> {
  return ((await runner.step((redis) => redis.hget(CODE_INDEX, id))) ?? undefined) as CodeHash | undefined;
}

/** The code that has this hash; undefined when there is none. */
export async function readCode(runner: Runner, hash: CodeHash): Promise<Code | undefined> {
  return toCodeOfFields(await runner.step((redis) => redis.hgetall(codeKey(hash))));
}

export async function voidCode(
  runner: Runner,
  scripts: Scripts,
  id: string,
  confirm?: Confirm,
): Promise<Code | undefined> {
  const hash = await hashOfId(runner, id);
  if (hash === undefined) return undefined;
  const code = await voidByHash(runner, scripts, hash);
  await confirm?.([codeKey(hash)], code);
  return code;
}

async function voidByHash(runner: Runner, scripts: Scripts, hash: CodeHash): Promise<Code | undefined> {
  const reply = await runner.script(scripts["code-void"], [codeKey(hash)], []);
  return reply === null ? undefined : toCode(reply as string[]);
}

/** Replicas are waited for once, after all codes are void. */
export async function voidCodes(
  runner: Runner,
  scripts: Scripts,
  ids: readonly string[],
  confirm?: Confirm,
): Promise<readonly Code[]> {
  const found = await Promise.all(ids.map((id) => hashOfId(runner, id)));
  const hashes = found.filter((hash) => hash !== undefined);
  const voided = await Promise.all(hashes.map((hash) => voidByHash(runner, scripts, hash)));
  const codes = voided.filter((code) => code !== undefined);
  if (hashes.length > 0) await confirm?.(hashes.map(codeKey), codes);
  return codes;
}
