/** The tables of members: each name has one meaning, and a name that could be mistaken for a known one is recognised. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { foldName, mistakenFor } from "../../../src/values/members/shape.ts";
import {
  inspectMembers,
  MEMBERS,
  NONE_PASSED,
  pruneMembers,
  type Shape,
  SURPLUS_MAX,
  UNLISTED_MAX,
} from "../../../src/values/members.ts";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol } from "../../../src/values/protocol.ts";
import { isJsonFault, JSON_LIMITS, type JsonScan, scanJson } from "../../../src/wire/json.ts";

function scanned(text: string): { readonly body: Buffer; readonly scan: JsonScan } {
  const body = Buffer.from(text);
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan), text);
  return { body, scan };
}

function inspected(protocol: Protocol, text: string) {
  const { body, scan } = scanned(text);
  return inspectMembers(protocol, body, scan);
}

function pruned(protocol: Protocol, text: string, passed = NONE_PASSED) {
  const { body, scan } = scanned(text);
  return pruneMembers(protocol, body, scan, passed);
}

/** Every shape below a protocol's shape, by its path. */
function* shapesOf(shape: Shape, path: string): Generator<readonly [string, Shape]> {
  yield [path, shape];
  for (const [name, inner] of shape.inside) yield* shapesOf(inner, `${path}.${name}`);
}

/** Protocol, member, meaning: those that a reader would look up first. */
const MEANINGS: readonly (readonly [Protocol, string, string | undefined])[] = [
  ["chat", "model", "plain"],
  ["chat", "max_completion_tokens", "plain"],
  ["chat", "n", "plain"],
  ["chat", "prediction", "plain"],
  ["chat", "top_k", "plain"],
  ["chat", "ignore_eos", "plain"],
  ["chat", "web_search_options", "option"],
  ["chat", "models", "option"],
  ["chat", "provider", "option"],
  ["chat", "plugins", "option"],
  ["chat", "search_parameters", "option"],
  ["chat", "best_of", "option"],
  ["chat", "priority", "option"],
  ["chat", "modalities", "tier"],
  ["chat", "service_tier", "tier"],
  ["chat", "n_predict", "limit"],
  ["chat", "max_output_tokens", "limit"],
  ["chat", "previous_response_id", "state"],
  ["chat", "extra_body", "envelope"],
  ["chat", "api_base", "envelope"],
  ["chat", "num_ctx", undefined],
  ["messages", "safeguards", "plain"],
  ["messages", "context_management", "plain"],
  ["messages", "fallbacks", "option"],
  ["messages", "fallback_credit_token", "option"],
  ["messages", "billing_policy", "option"],
  ["messages", "mcp_servers", "option"],
  ["messages", "speed", "tier"],
  ["messages", "inference_geo", "tier"],
  ["messages", "container", "state"],
  ["messages", "thread", "state"],
  ["messages", "n", "option"],
  ["messages", "max_output_tokens", "limit"],
  ["responses", "client_metadata", "plain"],
  ["responses", "access_programs", "option"],
  ["responses", "multi_agent", "option"],
  ["responses", "previous_response_id", "state"],
  ["responses", "background", "state"],
  ["responses", "background_options", "state"],
  ["responses", "max_tokens", "limit"],
];

for (const [protocol, name, meaning] of MEANINGS) {
  test(`${protocol}: ${name} is ${meaning ?? "not listed"}`, () => {
    assert.equal(MEMBERS[protocol].meanings.get(name), meaning);
  });
}

test("members that the protocols require, and limits, are listed as plain", () => {
  for (const protocol of PROTOCOL_NAMES) {
    const { requiredFields, limitFields } = PROTOCOLS[protocol];
    for (const name of [...requiredFields.map((field) => field.name), ...limitFields, "stream"]) {
      assert.equal(MEMBERS[protocol].meanings.get(name), "plain", `${protocol}: ${name}`);
    }
  }
});

test("no two listed names of one object fold to the same name", () => {
  for (const protocol of PROTOCOL_NAMES) {
    for (const [path, shape] of shapesOf(MEMBERS[protocol], protocol)) {
      assert.equal(shape.folded.size, shape.meanings.size, path);
    }
  }
});

/** Names that Go, Go's newer JSON package, serde, pydantic or Jackson read as the name on the right. */
const MISTAKEN: readonly (readonly [string, string])[] = [
  ["Model", "model"],
  ["MODEL", "model"],
  ["Max_Tokens", "max_tokens"],
  ["maxTokens", "max_tokens"],
  ["max-tokens", "max_tokens"],
  ["MaxTokens", "max_tokens"],
  ["maxtokens", "max_tokens"],
  ["max_to\u212aens", "max_tokens"], // Kelvin sign
  ["me\u017f\u017fages", "messages"], // long s
  ["\uff4dodel", "model"], // full width
  [" model", "model"],
  ["model\u0000", "model"],
  ["mo\u200bdel", "model"],
  ["N", "n"],
  ["Models", "models"],
  ["nPredict", "n_predict"],
];

for (const [name, known] of MISTAKEN) {
  test(`${JSON.stringify(name)} could be mistaken for ${known}`, () => {
    assert.equal(mistakenFor(name, MEMBERS.chat), known);
    const { fault } = inspected("chat", JSON.stringify({ [name]: 1 }));
    assert.deepEqual(fault, { fault: "mistaken", path: name, known });
  });
}

test("a known name that is written with escapes is refused, and data is not checked", () => {
  const escaped = '{"mod\\u0065l":"cheap","messages":[]}';
  assert.deepEqual(inspected("chat", escaped).fault, { fault: "escaped", path: "model", known: "model" });
  const nested = '{"reasoning":{"\\u0065ffort":"high"}}';
  assert.equal(inspected("responses", nested).fault?.path, "reasoning.effort");
  const data = '{"metadata":{"Model":"x","mod\\u0065l":1,"model":2},"logit_bias":{"MODEL":1},"x":{"Model":1}}';
  assert.equal(inspected("chat", data).fault, undefined);
});

/** Nested objects that affect the bill: protocol, body, path of the fault. */
const NESTED: readonly (readonly [Protocol, string, string])[] = [
  ["chat", '{"tools":[{"type":"function","Type":"web_search"}]}', "tools.Type"],
  ["chat", '{"tools":[{"type":"function","type":"web_search"}]}', "tools.type"],
  ["chat", '{"tools":[[{"type":"function","TYPE":"web_search"}]]}', "tools.TYPE"],
  ["chat", '{"tools":[{"type":"function","function":{"name":"f","Name":"g"}}]}', "tools.function.Name"],
  ["chat", '{"stream_options":{"Include_Usage":false}}', "stream_options.Include_Usage"],
  ["chat", '{"reasoning":{"maxTokens":9}}', "reasoning.maxTokens"],
  ["messages", '{"thinking":{"type":"enabled","BudgetTokens":9}}', "thinking.BudgetTokens"],
  ["messages", '{"output_config":{"Effort":"max"}}', "output_config.Effort"],
  ["messages", '{"tools":[{"name":"a","Model":"dear"}]}', "tools.Model"],
  ["responses", '{"reasoning":{"Mode":"pro"}}', "reasoning.Mode"],
  ["responses", '{"tools":[{"type":"namespace","tools":[{"type":"function","Type":"mcp"}]}]}', "tools.tools.Type"],
];

for (const [protocol, body, path] of NESTED) {
  test(`${protocol}: ${body} has a fault at ${path}`, () => {
    assert.equal(inspected(protocol, body).fault?.path, path);
  });
}

test("unlisted members are named once each, nested ones by path, and only they are removed", () => {
  const body = `{ "x_a":1, "model":"m", "reasoning" : {"effort":"low" , "budget":5},
    "tools":[ {"type":"function","function":{"name":"f","parameters":{"keep":{"me":[1]}},"google":{}},"search":{} }, {"type":"custom","search":1}],
    "extra_body":{"model":"dear"}, "metadata":{"any":"thing"} }`;
  assert.deepEqual(inspected("chat", body).surplus, [
    "x_a",
    "reasoning.budget",
    "tools.function.google",
    "tools.search",
    "extra_body",
  ]);
  const { remove, set, dropped } = pruned("chat", body);
  assert.deepEqual(remove, ["x_a", "extra_body"]);
  assert.deepEqual(Object.keys(set), ["reasoning", "tools"]);
  assert.equal(Buffer.from(set.reasoning as Uint8Array).toString(), '{"effort":"low"}');
  assert.equal(
    Buffer.from(set.tools as Uint8Array).toString(),
    '[ {"type":"function","function":{"name":"f","parameters":{"keep":{"me":[1]}}} }, {"type":"custom"}]',
  );
  assert.deepEqual(dropped, ["x_a", "reasoning.budget", "tools.function.google", "tools.search", "extra_body"]);
});

test("an upstream's configuration passes unlisted members, all or by name; objects with members of their own only by name", () => {
  const body = '{"x_a":1,"x_b":2,"reasoning":{"budget":5},"extra_body":{"n":9}}';
  assert.deepEqual(pruned("chat", body, { all: true, names: new Set() }).dropped, ["extra_body"]);
  const names = new Set(["x_b", "reasoning.budget", "extra_body"]);
  assert.deepEqual(pruned("chat", body, { all: false, names }).dropped, ["x_a"]);
  const long = "x".repeat(200);
  assert.deepEqual(pruned("chat", JSON.stringify({ [long]: 1 }), { all: true, names: new Set() }).dropped, [long]);
});

test("the names of very many unlisted members are truncated, and too many of them are refused", () => {
  const flood = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`X${index}`, 1]));
  const names = flood(UNLISTED_MAX / 4);
  const top = flood(JSON_LIMITS.membersMax - 2);
  const body = JSON.stringify({ ...top, reasoning: names, tools: [names, names] });
  const found = inspected("chat", body);
  const { dropped, remove } = pruned("chat", body);
  assert.equal(found.fault, undefined);
  assert.deepEqual([found.surplus.length, dropped.length], [SURPLUS_MAX, SURPLUS_MAX]);
  assert.equal(remove.length, JSON_LIMITS.membersMax - 2);
  assert.deepEqual(inspected("chat", JSON.stringify({ reasoning: flood(UNLISTED_MAX + 1) })).fault, {
    fault: "many",
    path: `reasoning.X${UNLISTED_MAX}`,
    known: `X${UNLISTED_MAX}`,
  });
});

test("a name that folds to a listed one is found, whatever its case, escapes and odd characters", () => {
  const names = [...MEMBERS.chat.meanings.keys()];
  const odd = fc.constantFrom("", "_", "-", " ", ".", "\u200b", "\u00ad");
  const written = fc
    .tuple(fc.constantFrom(...names), fc.infiniteStream(fc.boolean()), fc.infiniteStream(odd))
    .map(([name, upper, between]) =>
      [...name].map((char) => (upper.next().value ? char.toUpperCase() : char) + between.next().value).join(""),
    );
  fc.assert(
    fc.property(written, (name) => {
      if (MEMBERS.chat.meanings.has(name)) return;
      const known = mistakenFor(name, MEMBERS.chat);
      assert.equal(known === undefined ? undefined : foldName(known), foldName(name));
    }),
    { numRuns: 2_000 },
  );
});

test("a name with a letter of another script is mistaken for a listed one exactly when full folding says so", () => {
  const known = new Set(PROTOCOL_NAMES.flatMap((protocol) => [...MEMBERS[protocol].folded.keys()]));
  for (let code = 0x80; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const char = String.fromCodePoint(code);
    // If the character vanishes, or becomes an ASCII letter, the name could be mistaken for a known one.
    const folded = foldName(`mod${char}el`);
    const meant = known.has(folded) ? "model" : undefined;
    if (mistakenFor(`mod${char}el`, MEMBERS.chat) !== meant) assert.fail(`U+${code.toString(16)}: ${folded}`);
  }
  assert.equal(mistakenFor("\u{1d5fa}\u24de\uff44\u00ad\u0301e\u2113", MEMBERS.chat), "model");
});
