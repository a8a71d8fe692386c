/** The configuration that is used if there is none: a simulated upstream, three models, two groups, three cards. */

/** Addresses and folders of the demonstration. */
export interface DemoPlaces {
  /** The simulator, with or without the final `/v1`. */
  readonly upstreamUrl: string;
  /** The folder of the embedded store. */
  readonly dataDir: string;
  /** Default 127.0.0.1:8787. */
  readonly listen?: string;
  /** Default 127.0.0.1:8788. */
  readonly admin?: string;
}

/**
 * The text of a `tollgate.yaml` to start from; it goes through the same loader as any other.
 */
export function demoConfig(places: DemoPlaces): string {
  const { dataDir, listen = "127.0.0.1:8787", admin = "127.0.0.1:8788" } = places;
  const baseUrl = JSON.stringify(`${places.upstreamUrl.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`);
  return `# A demonstration. The upstreams are simulated inside this process; no real model answers.
listen: ${JSON.stringify(listen)}
admin: ${JSON.stringify(admin)}
store: ${JSON.stringify(`embedded:${dataDir}`)}
default_plan: free

upstreams:
  sim-chat: {protocol: chat, base_url: ${baseUrl}}
  sim-messages: {protocol: messages, base_url: ${baseUrl}}
  sim-responses: {protocol: responses, base_url: ${baseUrl}}

plans: {free: {}, pro: {}}

models:
  demo-chat:
    plans: [free, pro]
    price: {input: "1.25", cached_input: "0.125", output: "10"}
    context_tokens: 200000
    routes: [{upstream: sim-chat}]
  demo-messages:
    plans: [free, pro]
    price: {input: "3", cached_input: "0.3", cache_write: "3.75", output: "15"}
    context_tokens: 200000
    capabilities: {thinking: both}
    routes: [{upstream: sim-messages}]
  demo-responses:
    plans: [free, pro]
    price: {input: "1.25", cached_input: "0.125", output: "10"}
    context_tokens: 200000
    routes: [{upstream: sim-responses}]

groups:
  demo: {kind: pay_per_use, models: ["demo-*"]}
  cards: {kind: time_card, models: ["demo-*"], limits: {requests_per_minute: 60, concurrency: 5}}

cards:
  day: {plan: pro, group: cards, lasts: 1d, quota: {spend: "5"}}
  week: {plan: pro, group: cards, lasts: 7d, quota: {spend: "25"}}
  month: {plan: pro, group: cards, lasts: 30d, quota: {spend: "80"}}
`;
}
