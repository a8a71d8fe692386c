/** The configuration of the gateways under chaos, and what a request of theirs costs. */
import { join } from "node:path";
import { testConfig } from "../../rig/gateway.ts";

/** The longest life of a request; a hold that nobody ends lives a minute longer. */
const TOTAL_MS = 5_000;
export const HOLD_LIFE_MS = TOTAL_MS + 60_000;

/** Prices of every model of `testConfig`, nano-dollars per token. */
export const INPUT_NANO = 1_000n;
export const OUTPUT_NANO = 10_000n;
/** What a group of `testConfig` multiplies prices by. */
export const MULTIPLIERS: Readonly<Record<string, bigint>> = { money: 1n, "double-money": 2n, cards: 1n };

/** @param number which gateway: each has a journal of its own. */
export function chaosConfig(places: { upstreamUrl: string; dir: string; store: string | undefined }, number: number) {
  const timeouts = `timeouts: {first_byte: ${TOTAL_MS}ms, whole: ${TOTAL_MS}ms, idle: ${TOTAL_MS}ms, total: ${TOTAL_MS}ms}`;
  return testConfig(places)
    .replaceAll(/(api_key: upstream-canary-\w+)}/g, `$1, ${timeouts}}`)
    .replace(JSON.stringify(join(places.dir, "journal")), JSON.stringify(join(places.dir, `journal-${number}`)));
}
