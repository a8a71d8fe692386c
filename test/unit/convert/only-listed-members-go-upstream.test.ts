/**
 * A client may add any members, in any case and with any escapes, at the top of a body or in the objects below it that
 * affect the price. Only listed names go upstream, and none that a lenient server could take for another.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { openExchange } from "../../../src/convert/bridge.ts";
import { encodeCount } from "../../../src/convert/count.ts";
import type { ClientRequest, Permitted } from "../../../src/convert/exchange.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { mistakenFor } from "../../../src/values/members/shape.ts";
import { inspectMembers, MEMBERS, type PassedMembers, type Shape } from "../../../src/values/members.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { isJsonFault, scanJson } from "../../../src/wire/json.ts";
import { CONTEXT } from "./request/translate.ts";
import { routeOf } from "./translate/rig.ts";

const PERMITTED: Permitted = { outputLimit: undefined, strict: false };
const TURN = '[{"role":"user","content":"hi"}]';
const BASES: Readonly<Record<Protocol, string>> = {
  chat: `"model":"m","messages":${TURN}`,
  messages: `"model":"m","max_tokens":9,"messages":${TURN}`,
  responses: `"model":"m","input":${TURN}`,
};

function requestOf(protocol: Protocol, text: string): ClientRequest | undefined {
  const read = readEnvelope(protocol, Buffer.from(text));
  return isRefusal(read) ? undefined : { protocol, model: "m", stream: false, ...read };
}

/** The exchange with a route's upstream; undefined if the request is refused. */
function sent(client: Protocol, upstream: Protocol, text: string, passedMembers?: PassedMembers, openaiNative = false) {
  const request = requestOf(client, text);
  const route = { ...routeOf(upstream, { openaiNative }), upstreamModel: "m", passedMembers };
  const exchange = request && openExchange(request, route, PERMITTED, CONTEXT);
  return exchange === undefined || isRefusal(exchange) ? undefined : exchange;
}

test("where a tool runs and what it is given there goes upstream unchanged", () => {
  const skill =
    '{"type":"inline","name":"n","description":"d","source":{"type":"base64","media_type":"application/zip","data":"AA=="}}';
  const policy =
    '{"type":"allowlist","allowed_domains":["a.b"],"domain_secrets":[{"domain":"a.b","name":"n","value":"v"}]}';
  for (const tool of [
    `{"type":"code_interpreter","container":{"type":"auto","network_policy":${policy}}}`,
    `{"type":"shell","environment":{"type":"container_auto","network_policy":${policy},"skills":[${skill}]}}`,
    '{"type":"shell","environment":{"type":"local","skills":[{"name":"n","description":"d","path":"/p"}]}}',
    '{"type":"image_generation","input_image_mask":{"image_url":"https://a.b/c.png"}}',
  ]) {
    const text = `{${BASES.responses},"tools":[${tool}]}`;
    const exchange = sent("responses", "responses", text);
    assert.deepEqual(exchange?.request.dropped, [], tool);
    assert.ok(Buffer.from(exchange?.request.body ?? "").includes(tool), tool);
  }
});

/** The names in a body that its protocol does not list, or that a server could take for listed ones. */
function strange(protocol: Protocol, body: Uint8Array): readonly string[] {
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const { fault, surplus } = inspectMembers(protocol, body, scan);
  return fault ? [...surplus, fault.path] : surplus;
}

/** Names as a client might write them: listed ones in another spelling, those of other servers, and anything. */
function namesOf(shape: Shape): fc.Arbitrary<string> {
  const listed = fc.constantFrom(...shape.meanings.keys());
  const bent = fc
    .tuple(listed, fc.infiniteStream(fc.integer({ min: 0, max: 9 })))
    .map(([name, dice]) => [...name].map((char) => bend(char, dice.next().value as number)).join(""));
  const foreign = fc.constantFrom("num_ctx", "keep_alive", "x", "google", "cached", "__proto__", "constructor", "");
  return fc.oneof({ weight: 3, arbitrary: listed }, bent, foreign, fc.string({ maxLength: 12, unit: "binary" }));
}

function bend(char: string, die: number): string {
  if (die === 0) return char.toUpperCase();
  if (die === 1) return { k: "\u212a", s: "\u017f" }[char] ?? char;
  return die === 2 ? `${char}_` : char;
}

/** A name as JSON, on request with escapes. */
function spelled(name: string, escapes: boolean): string {
  const plain = JSON.stringify(name);
  if (!escapes) return plain;
  return `"${[...plain.slice(1, -1)].map((char, index) => (index % 2 === 0 && /[a-z_]/.test(char) ? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}` : char)).join("")}"`;
}

/** Members as JSON text, with members inside those whose shape is listed. */
function membersOf(shape: Shape, depth: number): fc.Arbitrary<string> {
  const member = fc
    .tuple(namesOf(shape), fc.integer({ min: 0, max: 19 }), fc.constantFrom("1", '"x"', "true", "null", "{}", "[]"))
    .chain(([name, die, value]) => {
      const inner = depth > 0 ? shape.inside.get(name) : undefined;
      const name_ = spelled(name, die === 0);
      if (!inner) return fc.constant(`${name_}:${value}`);
      return membersOf(inner, depth - 1).map((text) => `${name_}:${die % 2 === 0 ? `{${text}}` : `[{${text}}]`}`);
    });
  return fc.array(member, { maxLength: 5 }).map((all) => all.join(","));
}

for (const client of PROTOCOL_NAMES) {
  for (const upstream of PROTOCOL_NAMES) {
    test(`from ${client} to ${upstream}: no unlisted name reaches the upstream`, () => {
      let reached = 0;
      fc.assert(
        fc.property(membersOf(MEMBERS[client], 2), fc.boolean(), fc.boolean(), (members, before, openaiNative) => {
          const base = BASES[client];
          const text = members === "" ? `{${base}}` : before ? `{${members},${base}}` : `{${base},${members}}`;
          const exchange = sent(client, upstream, text, undefined, openaiNative);
          if (!exchange) return;
          reached++;
          assert.deepEqual(strange(upstream, exchange.request.body), []);
        }),
        { numRuns: 1_500 },
      );
      assert.ok(reached > 50, `${reached} bodies were sent to the upstream`);
    });
  }
}

test("an upstream that accepts unknown members gets none that it could take for a listed one", () => {
  fc.assert(
    fc.property(membersOf(MEMBERS.chat, 2), (members) => {
      const text = `{${BASES.chat}${members === "" ? "" : `,${members}`}}`;
      const exchange = sent("chat", "chat", text, { all: true, names: new Set() });
      if (!exchange) return;
      const json = JSON.parse(Buffer.from(exchange.request.body).toString()) as object;
      assert.deepEqual(
        Object.keys(json).filter((name) => mistakenFor(name, MEMBERS.chat)),
        [],
      );
      assert.deepEqual(
        Object.keys(json).filter((name) => MEMBERS.chat.meanings.get(name) === "envelope"),
        [],
      );
    }),
    { numRuns: 1_500 },
  );
});

const UNLISTED = `{ "num_ctx": 9 ,${BASES.chat}, "reasoning":{"effort" : "low","budget":1}, "seed": 9007199254740993 }`;

test("unlisted members are left out and named, and every other byte stays", () => {
  const exchange = sent("chat", "chat", UNLISTED);
  assert.ok(exchange);
  assert.equal(
    Buffer.from(exchange.request.body).toString(),
    `{ ${BASES.chat}, "reasoning":{"effort" : "low"}, "seed": 9007199254740993 }`,
  );
  assert.deepEqual(exchange.request, { ...exchange.request, dropped: ["num_ctx", "reasoning.budget"], unlisted: 2 });
  assert.equal(exchange.translation, "lossy; dropped=num_ctx,reasoning.budget");
});

test("members that the configuration lets through pass byte for byte and are not named", () => {
  for (const passed of [
    { all: true, names: new Set<string>() },
    { all: false, names: new Set(["num_ctx", "reasoning.budget"]) },
  ]) {
    const exchange = sent("chat", "chat", UNLISTED, passed);
    assert.ok(exchange);
    assert.equal(Buffer.from(exchange.request.body).toString(), UNLISTED);
    assert.equal(exchange.translation, undefined);
  }
});

test("a translation names unlisted members after those it cannot carry, and counts the unlisted ones", () => {
  const exchange = sent("chat", "messages", UNLISTED);
  assert.ok(exchange);
  assert.equal(exchange.translation, "lossy; dropped=seed,reasoning.effort,num_ctx,reasoning.budget");
  assert.equal(exchange.request.unlisted, 2);
});

test("a request to count tokens has listed members only", () => {
  for (const protocol of ["messages", "responses"] as const) {
    const request = requestOf(protocol, `{"num_ctx":1,${BASES[protocol]},"keep_alive":"1h"}`);
    assert.ok(request);
    const counted = encodeCount(request, { ...routeOf(protocol), upstreamModel: "m" });
    assert.ok(!isRefusal(counted));
    assert.equal(Buffer.from(counted).toString(), `{${BASES[protocol]}}`);
  }
});

test("a strict request is refused with the first unlisted name", () => {
  for (const upstream of PROTOCOL_NAMES) {
    const request = requestOf("chat", `{${BASES.chat},"num_ctx":9}`);
    assert.ok(request);
    const refused = openExchange(request, routeOf(upstream), { ...PERMITTED, strict: true }, CONTEXT);
    assert.ok(isRefusal(refused), upstream);
    assert.deepEqual([refused.cause, refused.facts.param], ["unsupported_parameter", "num_ctx"]);
  }
});

test("members that the gateway adds go into objects from which unlisted members were removed", () => {
  const request = requestOf("chat", `{${BASES.chat},"stream":true,"stream_options":{"x":1},"thinking":{"y":2}}`);
  assert.ok(request);
  const exchange = openExchange({ ...request, stream: true }, routeOf("chat"), PERMITTED, CONTEXT);
  assert.ok(!isRefusal(exchange));
  const { stream_options, thinking } = JSON.parse(Buffer.from(exchange.request.body).toString());
  assert.deepEqual([stream_options, thinking], [{ include_usage: true }, {}]);
});

/** Members that refer to state at a server, at the top of a body or in an object of their own. */
const STATE: readonly (readonly [Protocol, string, string])[] = [
  ["chat", '"previous_response_id":"r"', "previous_response_id"],
  ["chat", '"kv_transfer_params":{}', "kv_transfer_params"],
  ["chat", '"prompt_cache_options":{"comparison_response_id":"r"}', "prompt_cache_options.comparison_response_id"],
  ["messages", '"diagnostics":{"previous_message_id":"m"}', "diagnostics.previous_message_id"],
  ["responses", '"background":true', "background"],
  ["responses", '"background_options":{"completion_window":"2h"}', "background_options"],
];

for (const [protocol, member, param] of STATE) {
  for (const upstream of PROTOCOL_NAMES) {
    test(`${protocol}: ${member} is refused for a server that speaks ${upstream}`, () => {
      const request = requestOf(protocol, `{${BASES[protocol]},${member}}`);
      assert.ok(request);
      const refused = openExchange(request, routeOf(upstream, { openaiNative: true }), PERMITTED, CONTEXT);
      assert.ok(isRefusal(refused));
      assert.deepEqual([refused.cause, refused.facts.param], ["unsupported_parameter", param]);
    });
  }
}

test("if unknown members pass, a client's __proto__ is data and replaces no member of the gateway", () => {
  const options = '{"stream_options":{"include_usage":true}}';
  const text = `{${BASES.chat},"stream":true,"__proto__":${options}}`;
  const request = requestOf("chat", text);
  assert.ok(request);
  const route = { ...routeOf("chat"), upstreamModel: "m", passedMembers: { all: true, names: new Set<string>() } };
  const exchange = openExchange({ ...request, stream: true }, route, PERMITTED, CONTEXT);
  assert.ok(!isRefusal(exchange));
  const body = JSON.parse(Buffer.from(exchange.request.body).toString());
  assert.deepEqual(Object.getOwnPropertyDescriptor(body, "__proto__")?.value, JSON.parse(options));
  assert.equal(body.stream_options?.include_usage, true);
  assert.ok(Object.hasOwn(body, "stream_options"));
});
