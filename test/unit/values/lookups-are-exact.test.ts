/** docs/failure-model.md rows 33 and 79: names and paths match exactly, and secrets are not printed. */
import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { defaultCapabilities, type Group, groupServes } from "../../../src/values/catalog.ts";
import { MULTIPLIER_ONE } from "../../../src/values/price.ts";
import { PROTOCOL_NAMES, PROTOCOLS, protocolOfPath } from "../../../src/values/protocol.ts";
import { Secret } from "../../../src/values/secret.ts";
import { parseDurationMs, systemClock, utcDay } from "../../../src/values/time.ts";

function groupOf(...models: string[]): Group {
  const limits = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrency: 100, perKey: false };
  return { name: "g", kind: "pay_per_use", models, multiplier: MULTIPLIER_ONE, limits, rules: [], addedInputBytes: 0 };
}

/** Names that no model below has; a list that is as long as this is searched by an index. */
const OTHERS = Array.from({ length: 20 }, (_, i) => `other-${i}`);

for (const [length, more] of [
  ["short", []],
  ["long", OTHERS],
] as const) {
  test(`a group with a ${length} list serves a model by its exact name, or by a prefix with a final star`, () => {
    const of = (...models: string[]) => groupOf(...models, ...more);
    const group = of("big-1", "small-*");
    for (const model of ["big-1", "small-", "small-2", "small-*", ...more]) assert.ok(groupServes(group, model), model);
    for (const model of ["big-10", "big", "BIG-1", "big-1 ", "small", "Small-2", "xsmall-2", "", "__proto__"]) {
      assert.ok(!groupServes(group, model), model);
    }
    assert.ok(groupServes(of("*"), "anything"));
    assert.ok(!groupServes(of("a*b"), "axb"), "a star elsewhere is an ordinary character");
    assert.ok(!groupServes(of("a*b"), "a*c"), "a star elsewhere does not make a prefix");
    assert.ok(!groupServes(of("a.c"), "abc"), "patterns are not regular expressions");
    assert.ok(!groupServes(of(), "a"));
  });
}

test("a protocol is found by its path, byte for byte", () => {
  assert.equal(protocolOfPath("/v1/chat/completions")?.name, "chat");
  assert.equal(protocolOfPath("/v1/messages")?.name, "messages");
  assert.equal(protocolOfPath("/v1/responses")?.name, "responses");
  for (const path of [
    "/v1/messages/",
    "/v1/Messages",
    "/v1//messages",
    "/V1/messages",
    "v1/messages",
    "/v1/messages?x",
    "/",
    "",
    "__proto__",
  ]) {
    assert.equal(protocolOfPath(path), undefined, path);
  }
});

test("the tables of the protocols do not contradict each other", () => {
  assert.deepEqual([...PROTOCOL_NAMES], ["chat", "messages", "responses"]);
  for (const name of PROTOCOL_NAMES) {
    const facts = PROTOCOLS[name];
    assert.equal(facts.name, name);
    assert.equal(facts.path, `/v1${facts.upstreamPath}`);
    assert.ok(facts.requiredFields.some((field) => field.name === "model"));
    assert.ok(facts.limitMin <= facts.limitFloor);
    const own = new Set([...facts.limitFields, ...facts.requiredFields.map((field) => field.name)]);
    for (const { name: foreign, protocol } of facts.foreignFields) {
      assert.ok(!own.has(foreign), `${name}: ${foreign} is both its own and foreign`);
      assert.notEqual(protocol, name);
    }
    assert.equal(defaultCapabilities(name).customTools, name === "responses");
  }
});

test("a duration is a whole number and a unit", () => {
  const good: [string, number][] = [
    ["0s", 0],
    ["250ms", 250],
    ["5s", 5_000],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["30d", 2_592_000_000],
  ];
  for (const [text, ms] of good) assert.equal(parseDurationMs(text), ms, text);
  for (const bad of [
    "",
    "5",
    "s",
    "5 s",
    " 5s",
    "5s ",
    "5S",
    "1.5s",
    "-5s",
    "+5s",
    "05s",
    "1e3s",
    "5sec",
    "1m30s",
    "5w",
    "1234567890s",
    "5s\n",
  ]) {
    assert.equal(parseDurationMs(bad), undefined, JSON.stringify(bad));
  }
});

test("days are UTC days", () => {
  assert.equal(utcDay(Date.UTC(2026, 0, 1) - 1), "2025-12-31");
  assert.equal(utcDay(Date.UTC(2026, 0, 1)), "2026-01-01");
});

test("the system clock runs a task once, and not after it was cancelled", async () => {
  let runs = 0;
  const cancel = systemClock.after(0, () => runs--);
  cancel();
  // The clock does not keep a process alive by itself; this timer stands for the open server of a real process.
  const alive = setInterval(() => {}, 1_000);
  await new Promise<void>((resolve) => systemClock.after(1, resolve));
  clearInterval(alive);
  assert.equal(runs, 0);
  const earlier = systemClock.monotonicMs();
  assert.ok(earlier <= systemClock.monotonicMs());
  assert.ok(Math.abs(systemClock.wallMs() - Date.now()) < 60_000);
});

test("row 79: a secret prints as stars wherever it is printed by accident", () => {
  const secret = new Secret("canary");
  const shown = [
    `${secret}`,
    String(secret),
    JSON.stringify({ secret }),
    inspect({ secret }, { depth: 9, showHidden: true }),
  ];
  shown.push(`${Object.values(secret)}`, inspect(secret), JSON.stringify(Object.entries(secret)));
  for (const text of shown) assert.doesNotMatch(text, /canary/);
  assert.equal(secret.reveal(), "canary");
});
