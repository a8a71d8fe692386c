/** The smallest configuration that is accepted, for tests that add one setting to it. */
import assert from "node:assert/strict";
import { formatProblem, loadConfig } from "../../../../src/config/config.ts";
import type { Settings } from "../../../../src/values/settings.ts";

export const LEAST = `
upstreams:
  east: {protocol: chat, base_url: "https://models.example/v1"}
plans: {free: {}, paid: {}}
default_plan: free
models:
  big-1:
    plans: [free, paid]
    price: {input: "1", output: "2"}
    context_tokens: 4000
    routes: [{upstream: east}]
  small-1:
    plans: [free]
    price: {input: "1", output: "2"}
    context_tokens: 4000
    routes: [{upstream: east}]
groups:
  use: {kind: pay_per_use, models: ["*"]}
  some: {kind: pay_per_use, models: ["big-1"]}
`;

/** The settings of a configuration, which must have no problem. */
export function settingsOf(text: string): Settings {
  const loaded = loadConfig({ text, env: { KEY: "0123456789abcdef0123456789abcdef" } });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return loaded.settings;
}
