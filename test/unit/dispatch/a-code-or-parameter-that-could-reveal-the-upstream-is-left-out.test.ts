/** docs/failure-model.md row 60: what programs read of a refusal is held to the rules of its message. */
import assert from "node:assert/strict";
import test from "node:test";
import { type AnsweringUpstream, namesOf } from "../../../src/dispatch/failure.ts";
import { Secret } from "../../../src/values/secret.ts";
import { ask, jsonReply, refusalIn, replying, rig, route, UPSTREAM_KEY, upstream } from "./rig.ts";

const headers = new Map([["x-team", new Secret("configured_canary_9")]]);
const settings = upstream("east", "https://gw.example:8443/v1", { headers });
const BY: AnsweringUpstream = { settings, model: "vendor-model-4.1", isOfClientsProtocol: true };

const REVEALING: readonly (readonly [what: string, value: unknown])[] = [
  ["a key", UPSTREAM_KEY],
  ["a part that is a key", `messages.${UPSTREAM_KEY}.x`],
  ["another vendor's key", "sk-abcdef123456"],
  ["a configured header", "Configured_Canary_9"],
  ["the upstream's host", "gw.example"],
  ["an address", "https://gw.example/v1"],
  ["an organization", "org-AbC123xyz"],
  ["an IP address", "a.10.1.2.3"],
  ["the upstream's name of the model", "models.vendor-model-4.1"],
  ["a sentence", "no such thing"],
  ["a line break", "a\nb"],
  ["a direction mark", "a\u202eb"],
  ["markup", "<b>x</b>"],
  ["a long text", "x".repeat(200)],
  ["an empty text", ""],
  ["a number", 400],
  ["a number as text", "400"],
  ["an object", { a: 1 }],
  ["null", null],
];

for (const [what, value] of REVEALING) {
  test(`${what} is left out`, () => {
    const names = namesOf({ code: value, param: value }, undefined, BY);
    assert.deepEqual(names, { upstreamCode: undefined, upstreamParam: undefined, upstreamDetails: undefined });
  });

  test(`${what} is left out of the details of an error`, () => {
    const shown = (details: unknown) => namesOf({ details }, undefined, BY).upstreamDetails;
    assert.equal(shown({ error_code: value }), undefined);
    assert.equal(shown(value), undefined);
    if (typeof value === "number") return; // A number says nothing of the account.
    const error_code = "image_too_large";
    assert.deepEqual(shown({ error_code, member: value, list: ["a", value] }), { error_code });
  });
}

test("a name of the details that could reveal the upstream is left out", () => {
  const details = { error_code: "too_large", [UPSTREAM_KEY]: 1, "gw.example": 2, max_side_length_pixels: 8000 };
  const shown = { error_code: "too_large", max_side_length_pixels: 8000 };
  assert.deepEqual(namesOf({ details }, undefined, BY).upstreamDetails, shown);
});

test("names and ids of the operator's account are left out of the details of an error", () => {
  const details = {
    ...{ error_code: "too_large", organization: "acme-corp", organization_id: "org", workspace_id: 7, account: "acme" },
    ...{ accountId: 123456789012, organizationName: "acme", aws_account: 123456789012, parent_org_name: "acme" },
    ...{ tenant: "acme", subscriptionId: "acme", userName: "acme" },
    id: "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    paths: ["messages.0", "f47ac10b58cc4372a5670e02b2c3d479"],
    ...{ tool_name: "search_accounts", accounting: 1, last_user_message: 2 },
  };
  const shown = { error_code: "too_large", tool_name: "search_accounts", accounting: 1, last_user_message: 2 };
  assert.deepEqual(namesOf({ details }, undefined, BY).upstreamDetails, shown);
});

test("of details in great number, a hundred members are looked at, and longer lists are left out", () => {
  const numbers = Array.from({ length: 101 }, (_, at) => at);
  const details = { error_code: "too_large", list: numbers, short: numbers.slice(1) };
  assert.deepEqual(namesOf({ details }, undefined, BY).upstreamDetails, {
    error_code: "too_large",
    short: numbers.slice(1),
  });
  const many = { error_code: "too_large", ...Object.fromEntries(numbers.map((at) => [`member_${at}`, at])) };
  const shown = namesOf({ details: many }, undefined, BY).upstreamDetails ?? {};
  assert.equal(Object.keys(shown).length, 100);
});

test("details of another protocol than the client's give the code only", () => {
  const other = { ...BY, isOfClientsProtocol: false };
  const names = namesOf({ details: { error_code: "too_large", limit: 1 } }, undefined, other);
  assert.deepEqual(names, { upstreamCode: "too_large", upstreamParam: undefined, upstreamDetails: undefined });
});

test("codes and parameters of vendors are kept", () => {
  for (const code of [
    "string_above_max_length",
    "InvalidParameter",
    "invalid_image_format",
    "model.context.too_long",
  ]) {
    assert.equal(namesOf({ code }, undefined, BY).upstreamCode, code);
  }
  for (const param of ["model", "messages.[1].content", "input[0].content[12].image_url", "text.format.schema"]) {
    assert.equal(namesOf({ param }, undefined, BY).upstreamParam, param);
  }
});

test("a refusal that is answered with this key as its code gives only the cause", async (t) => {
  const error = { message: "no", code: UPSTREAM_KEY, param: UPSTREAM_KEY };
  const base = await replying(t, jsonReply(JSON.stringify({ error }), "400 Bad"));
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const refused = refusalIn(await dispatcher.run(ask([route("east")], { stream: false })));
  assert.deepEqual(
    [refused.cause, refused.upstreamCode, refused.facts.param],
    ["upstream_rejected", undefined, undefined],
  );
});
