/**
 * `anthropic-version` and `anthropic-beta`: any value or none is accepted, and only a messages upstream receives them.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { RequestHeaders } from "../../../../src/accept/headers.ts";
import { forwardedHeaders } from "../../../../src/request/conversion.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, type Fields } from "../whole/asking.ts";

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

/** The values of a header that the upstream received for a messages request with these headers. */
async function sentFor(fields: Fields, headers: Record<string, string>): Promise<(name: string) => string[]> {
  const reply = await ask(here, "messages", account.key, fields, { headers, path: "/v1/messages?beta=true" });
  assert.equal(reply.status, 200, await reply.text());
  const raw = here.simulator.requests.at(-1)?.headers ?? [];
  return (name) => raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
}

const VALUES = { "anthropic-version": "2026-10-21", "anthropic-beta": "context-1m-2025-08-07,never-heard-of" };

test("a messages upstream gets the client's version and betas unchanged, including unknown ones", async () => {
  const sent = await sentFor({}, VALUES);
  assert.deepEqual(sent("anthropic-version"), [VALUES["anthropic-version"]]);
  assert.deepEqual(sent("anthropic-beta"), [VALUES["anthropic-beta"]]);
});

test("if the client sends no version, a messages upstream gets the gateway's, and no beta", async () => {
  const sent = await sentFor({}, {});
  assert.deepEqual(sent("anthropic-version"), ["2023-06-01"]);
  assert.deepEqual(sent("anthropic-beta"), []);
});

test("an upstream of another protocol gets neither", async () => {
  const sent = await sentFor({ model: "chat-1" }, VALUES);
  assert.deepEqual(sent("anthropic-version"), []);
  assert.deepEqual(sent("anthropic-beta"), []);
});

test("a translated route sends the version that the gateway's bodies are written for", async () => {
  const reply = await ask(here, "chat", account.key, { model: "messages-1" }, { headers: VALUES });
  assert.equal(reply.status, 200, await reply.text());
  const raw = here.simulator.requests.at(-1)?.headers ?? [];
  const at = raw.findIndex((name) => name.toLowerCase() === "anthropic-version");
  assert.equal(raw[at + 1], "2023-06-01");
  assert.ok(!raw.some((name) => name.toLowerCase() === "anthropic-beta"));
});

const betas = (...lines: string[]) =>
  forwardedHeaders("messages", new RequestHeaders(lines.flatMap((line) => ["Anthropic-Beta", line]))).find(
    ([name]) => name === "anthropic-beta",
  )?.[1];

test("lists that repeat become one, in order", () => assert.equal(betas("a, b", "b,c", " a"), "a,b,c"));

for (const odd of ["", ",,", "a b", '"a"', "a=1", "é", "-a", "x".repeat(129)]) {
  test(`a value that does not have the form of a beta is left out: ${JSON.stringify(odd.slice(0, 10))}`, () => {
    assert.equal(betas(odd), undefined);
    assert.equal(betas(`ok,${odd},fine`), "ok,fine");
  });
}

test("a list that is too long is shortened, not dropped", () => {
  const names = Array.from({ length: 100 }, (_, index) => `beta-number-${index}-2026-01-01`);
  const list = betas(names.join(",")) ?? "";
  assert.ok(list.length > 900 && list.length <= 1_024);
  assert.deepEqual(list.split(","), names.slice(0, list.split(",").length));
});

test("other protocols forward neither header", () => {
  const headers = new RequestHeaders(Object.entries(VALUES).flat());
  assert.deepEqual(forwardedHeaders("chat", headers), []);
  assert.deepEqual(forwardedHeaders("responses", headers), []);
});
