/** The marks of the store's history on Redis: one, or in Cluster form one for each range of slots. */
import type { AccountTag } from "../../values/key.ts";
import type { EpochMark } from "../epoch.ts";
import type { Runner } from "./connection/runner.ts";
import { partOf, slotOf, tagsOverSlots } from "./connection/slots.ts";
import { accountKey, epochKey } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

/** In a cluster of up to this many primaries with equal shares of the slots, every primary has a mark. */
const CLUSTER_PARTS = 32;
const CLUSTER_TAGS = tagsOverSlots(CLUSTER_PARTS);

export const epochPartsOf = (sharded: boolean): number => (sharded ? CLUSTER_PARTS : 1);

export function epochPartOf(tag: AccountTag, parts: number): number {
  return partOf(slotOf(accountKey(tag)), parts);
}

/** @param values see `lua/epoch.lua`. */
export async function askEpoch(
  runner: Runner,
  scripts: Scripts,
  part: number,
  values: readonly string[],
): Promise<EpochMark | undefined> {
  const reply = await runner.script(scripts.epoch, [epochKey(CLUSTER_TAGS[part] as string)], values);
  if (reply === null) return undefined;
  const [id, count, past, stopped] = reply as [string, string, string, string];
  return { id, count: Number(count), past: past === "" ? [] : past.split(","), stopped: stopped !== "" };
}
