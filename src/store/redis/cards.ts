/** Time cards on Redis: what an account has of them, and how it gets one. */

import type { AccountTag } from "../../values/key.ts";
import type { Store } from "../contract.ts";
import { cardsAccount, entitlementAccount } from "../names.ts";
import type { Entitlement } from "../records.ts";
import { ENTITLEMENT_LINGER_MS } from "../settlement.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, ledgerKey } from "./keys.ts";
import { toEntitlement } from "./records.ts";
import type { Scripts } from "./scripts.ts";

export async function grant(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ask: Parameters<Store["grant"]>[1],
): Promise<Entitlement | undefined> {
  const reply = await runner.script(
    scripts.grant,
    [accountKey(tag), ledgerKey(tag)],
    [
      ask.id,
      ask.plan,
      ask.group,
      `${ask.lastsMs}`,
      ask.afterPrevious ? "1" : "0",
      `${ask.quota ?? ""}`,
      ask.reference,
      entitlementAccount(ask.id),
      `${ENTITLEMENT_LINGER_MS}`,
      cardsAccount(ask),
      `${ask.fromMs ?? ""}`,
      ask.card,
    ],
  );
  return reply === null ? undefined : toEntitlement(reply as string[]);
}

export async function listCards(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  ended = false,
): ReturnType<Store["listCards"]> {
  const reply = await runner.script(scripts["cards-read"], [accountKey(tag)], [ended ? "1" : ""]);
  if (reply === null) return undefined;
  const [now, cards] = reply as [string, string[][]];
  return { cards: cards.map(toEntitlement), storeTimeMs: Number(now) };
}
