/** Extending a hold on Redis: the ask as arguments of `lua/extend.lua`, its reply as an answer of the contract. */
import { nanoUsd } from "../../values/money.ts";
import type { ExtendAnswer, ExtendAsk } from "../extension.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, expiriesKey, holdsKey } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

export async function extend(runner: Runner, scripts: Scripts, ask: ExtendAsk): Promise<ExtendAnswer> {
  const { tag } = ask;
  const keys = [accountKey(tag), holdsKey(tag), expiriesKey(tag)];
  const reply = await runner.script(scripts.extend, keys, [ask.requestId, `${ask.target}`]);
  const [outcome, hold = "0"] = reply as readonly string[];
  if (outcome === "held") return { outcome, hold: nanoUsd(BigInt(hold)) };
  if (outcome === "gone") return { outcome };
  throw new TypeError(`extend.lua replied ${outcome}`);
}
