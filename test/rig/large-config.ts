/** A configuration with many models, as operators of many vendors have it: prices, costs and two routes for each. */

export interface LargeConfig {
  /** Where the gateway writes. */
  readonly dir: string;
  readonly models: number;
  readonly groups: number;
  /** Further text for its end. */
  readonly more?: string;
}

const UPSTREAMS = 8;
const VENDORS = 40;

/** Every group but the first names its share of the models, and every second one also a vendor's. The first names all. */
export function largeConfig({ dir, models, groups, more = "" }: LargeConfig): string {
  const names = Array.from({ length: models }, (_, i) => `vendor-${i % VENDORS}/model-${i}`);
  return `listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "embedded:${dir}/data"
default_plan: free
upstreams:
${Array.from({ length: UPSTREAMS }, (_, i) => upstream(i)).join("")}plans: { free: {}, pro: {} }
models:
${names.map(model).join("")}groups:
${Array.from({ length: groups }, (_, i) => group(i, groups, names)).join("")}${more}`;
}

function upstream(i: number): string {
  return `  up-${i}:
    protocol: ${["chat", "messages", "responses"][i % 3]}
    base_url: https://models-${i}.example/v1
    api_key: credential-${i}
    timeouts: { connect: 3s, first_byte: 60s }
`;
}

function model(name: string, i: number): string {
  return `  ${name}:
    plans: [free, pro]
    price: # US dollars per million tokens
      input: "${1 + (i % 9)}.25"
      cached_input: "0.125"
      output: "${10 + (i % 7)}"
      tools: { web_search: "0.01" }
    context_tokens: 400000
    max_output_tokens: 128000
    capabilities: { thinking: none, efforts: [low, medium, high], vision: true }
    routes:
      - upstream: up-${i % UPSTREAMS}
        model: ${name}-2026-08
        weight: 3
        cost: { input: "1", cached_input: "0.1", output: "8", tools: { web_search: "0.008" } }
      - upstream: up-${(i + 1) % UPSTREAMS}
        priority: 1
`;
}

function group(i: number, groups: number, names: readonly string[]): string {
  const share = names.filter((_, at) => i === 0 || at % groups === i);
  const listed = i % 2 === 1 || share.length === 0 ? ["vendor-0/*", ...share] : share;
  return `  group-${i}:
    kind: pay_per_use
    models: [${listed.map((name) => JSON.stringify(name)).join(", ")}]
    multiplier: "1.${i}"
    limits: { requests_per_minute: 60, tokens_per_minute: 400000, concurrency: 50 }
`;
}
