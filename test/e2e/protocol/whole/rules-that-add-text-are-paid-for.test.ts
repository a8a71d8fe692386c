/**
 * Text that rules add to a request is part of its hold, and of the charge if the upstream counts nothing
 * (ARCHITECTURE.md promises 1 and 3).
 */

import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { measure, type Quote } from "../../../../src/admit/terms.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Envelope } from "../../../../src/values/members/envelope.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, memoOf, usageLines } from "./asking.ts";

const TEXT = "word ".repeat(600).trim();

function textConfig(places: Parameters<typeof testConfig>[0]): string {
  return testConfig(places, { groups: { money: { rules: [{ system: { text: TEXT } }] } } });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: textConfig });
});
after(() => here.close());

const FACTS: Envelope = {
  protocol: "chat",
  model: "chat-1",
  stream: false,
  limit: { field: "max_tokens", value: 100 },
  choices: 1,
  bodyBytes: 300,
  textBytes: 300,
  media: [],
  compacts: false,
  serviceTier: undefined,
  tierParam: undefined,
  hostedTools: [],
  demandedTools: [],
  hasOwnTools: true,
  options: [],
  thinkingBudget: 0,
  textTokens: 0,
  includeUsage: false,
};

function quoteOf(settings = here.settings): Quote {
  const { catalog } = settings;
  const model = catalog.models.get("chat-1");
  assert.ok(model);
  const quote = measure(FACTS, model, catalog);
  assert.ok(!isRefusal(quote));
  return quote;
}

test("the hold of the rule's group covers the added text, the holds of other groups do not", () => {
  const {
    groups,
    terms: { inputTokens },
  } = quoteOf();
  const [own, other] = ["money", "limited-money"].map((name) => groups.find(({ group }) => group === name));
  assert.ok(own && other);
  assert.equal(other.inputTokens, 100);
  assert.ok(own.inputTokens >= 100 + TEXT.length / 3, `${own.inputTokens}`);
  assert.equal(inputTokens, own.inputTokens, "the token bucket takes the larger one");
  assert.ok(own.holdMin > other.holdMin && own.holdFull > other.holdFull);
});

test("if the upstream counts nothing, the charge is for what was sent, including the added text", async () => {
  const estimates: number[] = [];
  for (const group of ["money", "limited-money"]) {
    here.simulator.program({ noUsage: true });
    const account = await here.account({ group });
    const reply = await ask(here, "chat", account.key, { model: "chat-1" });
    assert.equal(reply.status, 200, await reply.text());
    await here.requestEnd(reply.headers.get("x-request-id") as string);
    const [line] = await usageLines(here, account);
    assert.equal(memoOf(line).counted, "estimate");
    estimates.push(Number(memoOf(line).input));
  }
  const [own, other] = estimates as [number, number];
  assert.ok(other < 60, `${other}`);
  assert.ok(own - other >= TEXT.length / 4, `${own} and ${other}`);
});

test("if the funds cover the request but not the added text, it is refused", async () => {
  // A cent buys 10,000 input tokens; the text is 1,000 of them, and the rest of the request about 30.
  const poor = { usd: "0.0005" };
  const refused = await ask(here, "chat", (await here.account(poor)).key, { max_tokens: 16 });
  assert.equal(refused.status, 403);
  const served = await ask(here, "chat", (await here.account({ ...poor, group: "limited-money" })).key, {
    max_tokens: 16,
  });
  assert.equal(served.status, 200, await served.text());
});
