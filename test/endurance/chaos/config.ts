/** The configuration of the gateways in a chaos run, and the cost of a request. */
import { join } from "node:path";
import { type ConfigPlaces, each, testConfig } from "../../rig/config.ts";

/** The maximum lifetime of a request. A hold that is not settled lives a minute longer. */
const TOTAL_MS = 5_000;
export const HOLD_LIFE_MS = TOTAL_MS + 60_000;

/** The prices of every model of `testConfig`, nano-dollars per token. */
export const INPUT_NANO = 1_000n;
export const OUTPUT_NANO = 10_000n;
/** The price multipliers of the groups of `testConfig`. */
export const MULTIPLIERS: Readonly<Record<string, bigint>> = { money: 1n, "double-money": 2n, cards: 1n };

/** @param number the number of the gateway. Each gateway has its own journal. */
export function chaosConfig(places: ConfigPlaces, number: number): string {
  const most = `${TOTAL_MS}ms`;
  const timeouts = { first_byte: most, whole: most, idle: most, total: most };
  return testConfig(places, ({ upstreams }) => ({
    journal: { dir: join(places.dir, `journal-${number}`) },
    upstreams: each(Object.keys(upstreams), { timeouts }),
  }));
}
