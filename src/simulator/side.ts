/**
 * The small endpoints other than the three model paths: models, token counts, and a page that explains the simulator.
 */

import { idFrom } from "./ids.ts";
import { CREATED_S } from "./reply.ts";

/** Text of the page and of `npm run upstream`. */
export const LABEL = "This is a SIMULATION of a model server. No model runs here; the replies are made up.";

/** The list of models in the form that the caller's SDK expects. */
export function modelList(names: readonly string[], isMessages: boolean): object {
  const data = names.map((name) => modelInfo(name, isMessages));
  if (!isMessages) return { object: "list", data };
  return { data, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null };
}

/** One model in the form that the caller's SDK expects. */
export function modelInfo(name: string, isMessages: boolean): object {
  if (!isMessages) return { id: name, object: "model", created: CREATED_S, owned_by: "simulation" };
  return {
    type: "model",
    id: name,
    display_name: `${name} (simulation)`,
    created_at: new Date(CREATED_S * 1_000).toISOString(),
    capabilities: null,
    deprecated_at: null,
    lifecycle: "active",
    line: null,
    max_input_tokens: 200_000,
    max_tokens: 64_000,
    retires_at: null,
  };
}

/** A vendor's own headers, which a gateway must not pass on. */
export function vendorHeaders(isMessages: boolean, seed: string): Record<string, string> {
  const shared = { "x-simulation": "true" };
  if (isMessages) {
    return { ...shared, "request-id": idFrom(seed, "req_"), "anthropic-organization-id": "org-simulation" };
  }
  return {
    ...shared,
    "x-request-id": idFrom(seed, "req_"),
    "openai-version": "2020-10-01",
    "openai-organization": "org-simulation",
    "openai-processing-ms": "1",
  };
}
