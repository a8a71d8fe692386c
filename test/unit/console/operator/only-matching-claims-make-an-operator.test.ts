/**
 * Which claims make an operator: a text or a list with an exactly matching allowed value, and an address only if
 * verified.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isOperator } from "../../../../src/console/operator/by-provider.ts";
import type { OidcSettings } from "../../../../src/values/settings.ts";

const settings = (claim: string, ...allowed: string[]) => ({ oidc: { claim } as OidcSettings, allowed });

for (const [claims, isOne] of [
  [{ groups: "ops" }, true],
  [{ groups: ["staff", "ops"] }, true],
  [{ groups: ["Ops"] }, false],
  [{ groups: "ops " }, false],
  [{ groups: [["ops"]] }, false],
  [{ groups: { ops: true } }, false],
  [{}, false],
  [Object.create({ groups: "ops" }), false],
] as const) {
  test(`groups ${JSON.stringify(claims)}: ${isOne}`, () => {
    assert.equal(isOperator(claims, settings("groups", "ops")), isOne);
  });
}

test("an address counts only if the provider has verified it", () => {
  const email = "ops@example.com";
  const of = settings("email", email);
  assert.equal(isOperator({ email, email_verified: true }, of), true);
  for (const verified of [false, "true", undefined])
    assert.equal(isOperator({ email, email_verified: verified }, of), false);
});
