/** Helpers of the tests of upstreams that store responses: a gateway with such an upstream, and requests to it. */
import { createOpenAI } from "@ai-sdk/openai";
import OpenAI from "openai";
import { type ConfigPlaces, testConfig } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

export interface KeepingOptions {
  /** The upstreams' address; by default the gateway's own simulator. */
  readonly upstreamUrl?: string;
  readonly store?: string;
  readonly sealingKeys?: readonly string[];
  /** The upstream of `elsewhere-1`. */
  readonly elsewhere?: string;
}

/**
 * A gateway whose upstream of the responses protocol stores responses. `responses-1` and `responses-alias` use only
 * this upstream, `mixed` also has routes that store nothing; `elsewhere-1` is on another storing upstream at the same
 * address; `plain-1`, `plain-2` and `either`, which has the upstreams of both, store nothing.
 */
export function startKeeping({
  upstreamUrl,
  store,
  sealingKeys,
  elsewhere = "up-elsewhere",
}: KeepingOptions = {}): Promise<GatewayHere> {
  const config = (places: ConfigPlaces) =>
    testConfig({ ...places, ...(upstreamUrl ? { upstreamUrl } : {}) }, (base) => {
      const { "up-responses": keeping } = base.upstreams;
      const model = base.models["responses-1"];
      return {
        ...(sealingKeys ? { sealing_keys: sealingKeys } : {}),
        upstreams: {
          "up-responses": { stateful: true },
          "up-elsewhere": { ...keeping, stateful: true },
          "up-plain": keeping,
          "up-plain-2": { ...keeping, api_key: "upstream-canary-plain-2" },
        },
        models: {
          "elsewhere-1": { ...model, routes: [{ upstream: elsewhere }] },
          "plain-1": { ...model, routes: [{ upstream: "up-plain" }] },
          "plain-2": { ...model, routes: [{ upstream: "up-plain-2" }] },
          either: { ...model, routes: [{ upstream: "up-plain" }, { upstream: "up-plain-2" }] },
          mixed: {
            ...model,
            routes: [
              { upstream: "up-plain", priority: 1 },
              { upstream: "up-chat", priority: 1 },
              { upstream: "up-responses", priority: 2 },
            ],
          },
        },
        groups: {
          money: { models: ["*"] },
          "limited-money": { models: ["chat-*"] },
        },
      };
    });
  return startGatewayHere({ config, ...(store ? { store } : {}), simulator: { stateful: true, uniqueIds: true } });
}

export function sdkOf({ url }: Pick<GatewayHere, "url">, apiKey: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

export function aiSdkOf({ url }: Pick<GatewayHere, "url">, apiKey: string): ReturnType<typeof createOpenAI> {
  return createOpenAI({ baseURL: `${url}/v1`, apiKey });
}

/** Sends a request for a stored response to its address. */
export function at({ url }: Pick<GatewayHere, "url">, key: string, method: string, path: string): Promise<Response> {
  return fetch(`${url}/v1/responses/${path}`, { method, headers: { authorization: `Bearer ${key}` } });
}
