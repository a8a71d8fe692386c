/** The catalog of the simulated fleet: one model, two groups that pay from the balance, and one that pays by card. */
import { type Catalog, defaultCapabilities, type Group, type Model } from "../../../src/values/catalog.ts";
import type { Multiplier, Price } from "../../../src/values/price.ts";

const PRICE: Price = {
  input: 1_000_003n,
  cachedInput: 100_000n,
  cacheWrite: 1_250_000n,
  cacheWrite1h: 2_000_000n,
  output: 5_000_011n,
  tiers: new Map(),
  aboveTokens: [],
  tools: new Map(),
};

export const MODEL: Model = {
  name: "model",
  plans: ["free", "pro"],
  price: PRICE,
  contextTokens: 100_000,
  maxOutputTokens: 4_096,
  defaultOutputTokens: 512,
  inputBytesPerToken: 3,
  mediaTokens: { image: 1_000, file: 1_000 },
  toolCalls: { held: 10, max: 50 },
  routes: [
    {
      upstream: "up",
      protocol: "chat",
      upstreamModel: "model",
      weight: 1,
      priority: 0,
      cost: PRICE,
      capabilities: defaultCapabilities("chat"),
      rules: [],
    },
  ],
  rules: [],
  addedInputBytes: 0,
};

export const GROUPS = ["money", "double", "cards"] as const;
/** The groups whose requests are paid from the balance. */
export const PAYING = ["money", "double"] as const;

function group(name: string, kind: Group["kind"], multiplier: bigint, limits: Partial<Group["limits"]>): Group {
  return {
    name,
    kind,
    models: ["model"],
    multiplier: multiplier as Multiplier,
    limits: { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 100, perKey: false, ...limits },
    rules: [],
    addedInputBytes: 0,
  };
}

export const CATALOG: Catalog = {
  models: new Map([[MODEL.name, MODEL]]),
  groups: new Map(
    [
      group("money", "pay_per_use", 1_000_000n, {}),
      group("double", "pay_per_use", 2_000_000n, { tokensPerMinute: 100_000, perKey: true }),
      group("cards", "time_card", 1_000_000n, { requestsPerMinute: 120, concurrency: 4 }),
    ].map((one) => [one.name, one]),
  ),
  cards: new Map(),
  plans: new Set(["free", "pro"]),
  defaultPlan: "free",
  version: "1",
};
