/** Which faults occur, in which order, and when. The same seed gives the same plan. */
import type { Fleet } from "./fleet.ts";
import { between, type ChaosStore, type Fault, lasting, type Random } from "./stores/store.ts";

export interface Planned {
  /** The faults that occur at the same time. */
  readonly kinds: readonly string[];
}

/** The share of the store's faults during which a gateway is killed as well. */
const TOGETHER_SHARE = 0.2;

/**
 * Plans `count` faults, distributed over the kinds as evenly as possible, in a random order.
 * @param gateway kinds of faults of a gateway; @param store kinds of faults of the store
 */
export function planFaults(
  count: number,
  gateway: readonly string[],
  store: readonly string[],
  random: Random,
): Planned[] {
  // Half of the faults are those of gateways, if the store has faults of its own.
  const kinds = store.length === 0 ? gateway : [...store, ...Array.from(store, (_, i) => pick(gateway, i))];
  const plan: Planned[] = [];
  for (let left = count; left > 0; ) {
    const round = shuffled(kinds, random).slice(0, left);
    for (const kind of round) {
      const together = left > 1 && store.includes(kind) && random() < TOGETHER_SHARE;
      if (left === 0) break;
      plan.push({ kinds: together ? [kind, pick(gateway, 0)] : [kind] });
      left -= together ? 2 : 1;
    }
  }
  return plan;
}

/** The faults of gateways, by kind. */
export function gatewayFaults(fleet: Fleet): ChaosStore["faults"] {
  const one = (random: Random): number => Math.floor(random() * fleet.size);
  return {
    gateway_kill: async (random) => {
      const number = one(random);
      await fleet.kill(number);
      await fleet.start(number);
    },
    // The gateway is down for a while, in which the store may change.
    gateway_outage: async (random) => {
      const number = one(random);
      await fleet.kill(number);
      await lasting(between(random, 300, 2_000));
      await fleet.start(number);
    },
    gateway_freeze: (random) => fleet.freeze(one(random), between(random, 200, 2_000)),
  };
}

/** Runs the faults of one step together, and resolves when everything has recovered. */
export async function strike({ kinds }: Planned, faults: Readonly<Record<string, Fault>>, random: Random) {
  await Promise.all(kinds.map((kind) => (faults[kind] as Fault)(random)));
}

function pick(kinds: readonly string[], index: number): string {
  return kinds[index % kinds.length] as string;
}

function shuffled(kinds: readonly string[], random: Random): string[] {
  const left = [...kinds];
  const order: string[] = [];
  while (left.length > 0) order.push(...left.splice(Math.floor(random() * left.length), 1));
  return order;
}
