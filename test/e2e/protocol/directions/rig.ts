/** Helpers of the tests of the nine directions: a gateway with one capable model per upstream protocol, and clients. */
import type { SeenRequest } from "../../../../src/simulator/server.ts";
import { PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import { ownConfig, yamlOf } from "../../../rig/config.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

export type Json = Readonly<Record<string, unknown>>;

export const PROTOCOL_LIST = ["chat", "messages", "responses"] as const satisfies readonly Protocol[];

export interface Direction {
  readonly client: Protocol;
  readonly upstream: Protocol;
}

/** Each client protocol with each upstream protocol. */
export const DIRECTIONS: readonly Direction[] = PROTOCOL_LIST.flatMap((client) =>
  PROTOCOL_LIST.map((upstream) => ({ client, upstream })),
);

/** The directions with a translation. */
export const CROSS_DIRECTIONS = DIRECTIONS.filter(({ client, upstream }) => client !== upstream);

/** The model on an upstream of this protocol; clients of all three protocols may use it. */
export function modelOn(upstream: Protocol): string {
  return `on-${upstream}`;
}

const EFFORTS = "[none, minimal, low, medium, high, xhigh, max]";

/** The capabilities of each model: all that its protocol can express, including reasoning that is sent back. */
const CAPABILITIES: Readonly<Record<Protocol, string>> = {
  chat: `{efforts: ${EFFORTS}, reasoning_content: roundtrip}`,
  messages: `{efforts: ${EFFORTS}, thinking: adaptive}`,
  responses: `{efforts: ${EFFORTS}}`,
};

const PRICE = '{input: "1", cached_input: "0.1", cache_write: "1.25", output: "10", tools: {web_search: "0.01"}}';

/**
 * A configuration of `on-chat`, `on-messages` and `on-responses` at equal prices. @param more lines of further models,
 * indented by two blanks.
 */
export function directionsConfig(more = ""): (places: ConfigPlaces) => string {
  return (places) => `${yamlOf(ownConfig(places))}upstreams:
${PROTOCOL_LIST.flatMap((protocol) => [upstreamLine(`up-${protocol}`, protocol, places.upstreamUrl), upstreamLine(`second-${protocol}`, protocol, places.upstreamUrl)]).join("\n")}
models:
${PROTOCOL_LIST.map((protocol) => modelLine(modelOn(protocol), `{upstream: up-${protocol}}`, CAPABILITIES[protocol])).join("\n")}
${more}
groups:
  money: {kind: pay_per_use, models: ["*"]}
`;
}

function upstreamLine(name: string, protocol: Protocol, url: string): string {
  return `  ${name}: {protocol: ${protocol}, base_url: ${JSON.stringify(url)}, api_key: canary-of-${name}}`;
}

/** One model as a line of the configuration. */
export function modelLine(name: string, routes: string, capabilities: string): string {
  const limits = "context_tokens: 200000, max_output_tokens: 32000";
  return `  ${name}: {plans: [free], price: ${PRICE}, ${limits}, capabilities: ${capabilities}, routes: [${routes}]}`;
}

/** A gateway in front of an upstream that, if strict, refuses what the vendors refuse. */
export function startGateway({ more, strict }: { more: string; strict: boolean }): Promise<GatewayHere> {
  return startGatewayHere({ config: directionsConfig(more), simulator: { strict } });
}

/** A gateway in front of a strict upstream. */
export function startDirections(more = ""): Promise<GatewayHere> {
  return startGateway({ more, strict: true });
}

/** Posts a body as a client of this protocol. */
export function post(
  here: Pick<GatewayHere, "url">,
  client: Protocol,
  key: string,
  body: Json,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(here.url + PROTOCOLS[client].path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
  });
}

/** A small valid body of the client's protocol for an upstream's model. */
export function askFor({ client, upstream }: Direction, more: Json = {}): Json {
  const turn = [{ role: "user", content: "hello" }];
  const model = modelOn(upstream);
  if (client === "responses") return { model, input: turn, ...more };
  return { model, messages: turn, ...(client === "messages" ? { max_tokens: 500 } : {}), ...more };
}

/** The body of a request as the upstream received it. */
export function seenBody(seen: SeenRequest | undefined): Json {
  if (!seen) throw new Error("the upstream saw no request");
  return seen.json as Json;
}

/** A member that should be a list of objects. */
export function listOf(value: unknown): readonly Json[] {
  if (!Array.isArray(value)) throw new Error(`not a list: ${JSON.stringify(value)}`);
  return value as Json[];
}

/** A member that should be an object. */
export function recordOf(value: unknown): Json {
  if (typeof value !== "object" || value === null) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value as Json;
}
