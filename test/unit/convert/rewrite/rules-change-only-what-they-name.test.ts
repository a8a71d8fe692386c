/** ARCHITECTURE.md promise 6 for the operator's rules: a rule changes the members that it names and no other byte. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { rewriteBody } from "../../../../src/convert/rewrite/rewrite.ts";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import type { RuleAction } from "../../../../src/values/rules.ts";
import { isJsonFault, memberValue, scanJson } from "../../../../src/wire/json.ts";
import { actionsOf, applied, rewritten } from "./applying.ts";

/** Unusual but valid JSON: spacing, a number that JSON.parse would change, escapes, an unknown member. */
const ODD = `"seed" : 9007199254740993,\t"x_new": {"b":1, "a":-0, "u":"\\ud83d\\ude00"}`;

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: drop, set and default change their members, and every other byte stays`, () => {
    const body = `{ "metadata": {"a" : 1, "user_id":"u"} ,"temperature":1.0, ${ODD}, "top_p":0.5}`;
    const rules = [
      { drop: ["top_p", "metadata.user_id", "not_there", "x_new.not_there", "seed.x"] },
      { set: { temperature: 0.2, "x_new.b": [1] } },
      { default: { temperature: 0.9, user: "gateway" } },
    ];
    const expected = `{ "metadata": {"a" : 1} ,"temperature":0.2, ${ODD.replace('"b":1', '"b":[1]')},"user":"gateway"}`;
    assert.equal(rewritten(protocol, body, rules), expected);
  });
}

test("rules run in the order in which they are written", () => {
  assert.equal(rewritten("chat", '{"a":1}', [{ drop: ["a"] }, { default: { a: 2 } }]), '{"a":2}');
  assert.equal(rewritten("chat", '{"a":1}', [{ default: { a: 2 } }, { drop: ["a"] }]), "{}");
  assert.equal(rewritten("chat", '{"a":1}', [{ set: { a: 2 } }, { set: { a: 3 } }]), '{"a":3}');
  assert.equal(
    rewritten("chat", "{}", [{ set: { "a.b": 2 } }, { set: { "a.c": 3 } }, { drop: ["a.b"] }]),
    '{"a":{"c":3}}',
  );
});

test("set creates the objects of its path, and replaces any other value on it", () => {
  const set = (body: string) => rewritten("responses", body, [{ set: { "reasoning.x.effort": "low" } }]);
  assert.equal(set("{}"), '{"reasoning":{"x":{"effort":"low"}}}');
  assert.equal(set('{"reasoning":null}'), '{"reasoning":{"x":{"effort":"low"}}}');
  assert.equal(set('{"reasoning":[1]}'), '{"reasoning":{"x":{"effort":"low"}}}');
  assert.equal(set('{"reasoning":{ "s":1 }}'), '{"reasoning":{ "s":1,"x":{"effort":"low"} }}');
  assert.equal(set('{"reasoning":{ "x":"no" }}'), '{"reasoning":{ "x":{"effort":"low"} }}');
  assert.equal(set('{"reasoning":{ "x":{"effort" : 1} }}'), '{"reasoning":{ "x":{"effort" : "low"} }}');
});

test("default replaces a missing value or null, and no other value", () => {
  const fill = (body: string) => rewritten("responses", body, [{ default: { "reasoning.effort": "low", user: "u" } }]);
  assert.equal(fill('{"user":null}'), '{"user":"u","reasoning":{"effort":"low"}}');
  assert.equal(fill('{"reasoning":null,"user":0}'), '{"reasoning":{"effort":"low"},"user":0}');
  assert.equal(fill('{"reasoning":{"effort":null},"user":""}'), '{"reasoning":{"effort":"low"},"user":""}');
  for (const said of [
    '{"reasoning":{"effort":"high"},"user":1}',
    '{"reasoning":false,"user":{}}',
    '{"reasoning":[],"user":[]}',
  ]) {
    assert.equal(fill(said), said);
  }
});

test("a body that no rule changes is returned as it is", () => {
  const body = Buffer.from(`{"model":"m", ${ODD}}`);
  const target = { protocol: "chat", systemRole: "system" } as const;
  for (const rules of [
    [],
    [{ drop: ["logit_bias", "x_new.zz"] }],
    [{ default: { seed: 1 } }],
    [{ strip_attribution: true }, { strip_attribution: false }],
    [{ header: { add: { "x-team": "blue" } } }],
  ]) {
    assert.equal(rewriteBody(body, target, actionsOf(rules)), body);
  }
});

const name = fc.constantFrom("model", "temperature", "metadata", "user", "x", "reasoning");
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value));
const space = fc.constantFrom("", " ", "\n\t", "\r\n ");
const layout = fc.uniqueArray(fc.tuple(name, json, space, space), { selector: (member) => member[0], maxLength: 6 });
const path = fc.array(name, { minLength: 1, maxLength: 3 });
const members = fc.array(fc.record({ path, json }), { maxLength: 3 });
const action: fc.Arbitrary<RuleAction> = fc.oneof(
  fc.record({ kind: fc.constant("drop" as const), paths: fc.array(path, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("set" as const), members }),
  fc.record({ kind: fc.constant("default" as const), members }),
);

function touched(action: RuleAction): string[] {
  if (action.kind === "drop") return action.paths.map((path) => path[0] as string);
  return action.kind === "set" || action.kind === "default" ? action.members.map(({ path }) => path[0] as string) : [];
}

/** A reference implementation of the rules, on parsed JSON. */
function byHand(body: Record<string, unknown>, actions: readonly RuleAction[]): void {
  for (const action of actions) {
    if (action.kind === "drop") for (const path of action.paths) dropByHand(body, path);
    if (action.kind === "set")
      for (const { path, json } of action.members) setByHand(body, path, JSON.parse(json), true);
    if (action.kind === "default")
      for (const { path, json } of action.members) setByHand(body, path, JSON.parse(json), false);
  }
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function dropByHand(body: Fields, path: readonly string[]): void {
  const owner = path.slice(0, -1).reduce<unknown>((value, name) => (isFields(value) ? value[name] : undefined), body);
  if (isFields(owner)) delete owner[path.at(-1) as string];
}

function setByHand(owner: Fields, [first, ...rest]: readonly string[], value: unknown, override: boolean): void {
  const name = first as string;
  const found = owner[name];
  if (rest.length === 0) {
    if (override || found === undefined || found === null) owner[name] = value;
    return;
  }
  if (!isFields(found) && !override && found !== undefined && found !== null) return;
  const inner: Fields = isFields(found) ? found : {};
  owner[name] = inner;
  setByHand(inner, rest, value, override);
}

test("property: the result is as the rules say, and other members keep their bytes and order", () => {
  fc.assert(
    fc.property(layout, fc.array(action, { maxLength: 4 }), (parts, actions) => {
      const spelled = parts.map(([n, v, s1, s2]) => `${s1}${JSON.stringify(n)}${s2}:${s1}${v}${s2}`).join(",");
      const body = Buffer.from(`{${spelled}}`);
      const result = Buffer.from(applied("chat", body.toString(), actions));
      const expected = JSON.parse(body.toString());
      byHand(expected, actions);
      assert.deepEqual(JSON.parse(result.toString()), expected);
      const [before, after] = [scanJson(body), scanJson(result)];
      assert.ok(!isJsonFault(before) && !isJsonFault(after));
      const changed = new Set(actions.flatMap(touched));
      const kept = before.members.map((member) => member.name).filter((one) => !changed.has(one));
      for (const one of kept) assert.deepEqual(memberValue(result, after, one), memberValue(body, before, one));
      assert.deepEqual(
        after.members.map((member) => member.name).filter((one) => !changed.has(one)),
        kept,
      );
    }),
    { numRuns: 2_000 },
  );
});
