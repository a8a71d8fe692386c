/** Shared by the tests of rules: applies rules, as the configuration writes them, to the text of a body. */
import assert from "node:assert/strict";
import { loadConfig } from "../../../../src/config/config.ts";
import { rewriteBody } from "../../../../src/convert/rewrite/rewrite.ts";
import { defaultCapabilities } from "../../../../src/values/catalog.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { RuleAction } from "../../../../src/values/rules.ts";

/** Reads rules with the real loader, as rules of a group. */
export function actionsOf(rules: readonly object[]): RuleAction[] {
  const loaded = loadConfig({ text: configOf(rules), env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map((problem) => problem.message).join("\n"));
  return loaded.settings.catalog.groups.get("g")?.rules.map((rule) => rule.action) ?? [];
}

export function configOf(rules: readonly object[]): string {
  return JSON.stringify({
    upstreams: { up: { protocol: "chat", base_url: "http://127.0.0.1:1/v1" } },
    plans: { p: {} },
    models: {
      m: { plans: ["p"], price: { input: "1", output: "1" }, context_tokens: 1000, routes: [{ upstream: "up" }] },
    },
    groups: { g: { kind: "pay_per_use", models: ["m"], rules } },
  });
}

/** The body after these rules. */
export function rewritten(protocol: Protocol, body: string, rules: readonly object[]): string {
  return applied(protocol, body, actionsOf(rules));
}

export function applied(protocol: Protocol, body: string, actions: readonly RuleAction[]): string {
  const { systemRole } = defaultCapabilities(protocol);
  return Buffer.from(rewriteBody(Buffer.from(body), { protocol, systemRole }, actions)).toString("utf8");
}
