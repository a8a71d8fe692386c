/** The configuration of the gateways under chaos, and what a request of theirs costs. */
import { join } from "node:path";
import { type ConfigPlaces, each, testConfig } from "../../rig/config.ts";

/** The longest life of a request; a hold that nobody ends lives a minute longer. */
const TOTAL_MS = 5_000;
export const HOLD_LIFE_MS = TOTAL_MS + 60_000;

/** Prices of every model of `testConfig`, nano-dollars per token. */
export const INPUT_NANO = 1_000n;
export const OUTPUT_NANO = 10_000n;
/** What a group of `testConfig` multiplies prices by. */
export const MULTIPLIERS: Readonly<Record<string, bigint>> = { money: 1n, "double-money": 2n, cards: 1n };

/** @param number which gateway: each has a journal of its own. */
export function chaosConfig(places: ConfigPlaces, number: number): string {
  const most = `${TOTAL_MS}ms`;
  const timeouts = { first_byte: most, whole: most, idle: most, total: most };
  return testConfig(places, ({ upstreams }) => ({
    journal: { dir: join(places.dir, `journal-${number}`) },
    upstreams: each(Object.keys(upstreams), { timeouts }),
  }));
}
