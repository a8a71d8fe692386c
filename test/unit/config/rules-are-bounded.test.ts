/** ARCHITECTURE.md promise 13 for rules: each of their sizes has a maximum, and the message names it. */
import assert from "node:assert/strict";
import test from "node:test";
import { LIMITS, loadConfig } from "../../../src/config/config.ts";
import { configOf } from "../convert/rewrite/applying.ts";

function complaints(rules: readonly object[]): string[] {
  const loaded = loadConfig({ text: configOf(rules), env: {} });
  return "problems" in loaded ? loaded.problems.map(({ key, message }) => `${key}: ${message}`) : [];
}

const many = (count: number) => Array.from({ length: count }, (_, index) => index);
const drop = { drop: ["top_k"] };
const names = (count: number) => Object.fromEntries(many(count).map((index) => [`p${index}`, 1]));
const headers = (count: number) => Object.fromEntries(many(count).map((index) => [`x-${index}`, "1"]));

/** The largest accepted value, the next larger one, and the expected message. */
const BOUNDS: readonly [string, (more: number) => object[], string][] = [
  ["rules", (more) => many(LIMITS.rulesMax + more).map(() => drop), "groups.g.rules: must have at most 32 entries"],
  [
    "parameters to drop",
    (more) => [{ drop: Object.keys(names(LIMITS.membersPerRuleMax + more)) }],
    "groups.g.rules[0].drop: must have at most 32 entries",
  ],
  [
    "parameters to set",
    (more) => [{ set: names(LIMITS.membersPerRuleMax + more) }],
    "groups.g.rules[0].set: must have at most 32 entries",
  ],
  [
    "headers",
    (more) => [{ header: { add: headers(LIMITS.headersPerRuleMax + more) } }],
    "groups.g.rules[0].header.add: must have at most 16 entries",
  ],
  [
    "a system text",
    (more) => [{ system: { text: "x".repeat(LIMITS.systemTextBytesMax + more) } }],
    "groups.g.rules[0].system.text: must not be longer than 65536 bytes",
  ],
  [
    "a value",
    (more) => [{ set: { user: "x".repeat(LIMITS.valueBytesMax - 2 + more) } }],
    "groups.g.rules[0].set.user: must not be longer than 16384 bytes as JSON",
  ],
  [
    "a path",
    (more) => [{ drop: [many(8 + more).join(".")] }],
    'groups.g.rules[0].drop[0]: "0.1.2.3.4.5.6.7.8" is refused: it must be a parameter as the upstream spells it, with dots for nested ones: up to 8 parts of letters, digits, _ and -',
  ],
];

for (const [what, rules, complaint] of BOUNDS) {
  test(`${what}: the largest is accepted, one more is refused`, () => {
    assert.deepEqual(complaints(rules(0)), []);
    assert.deepEqual(complaints(rules(1)), [complaint]);
  });
}
