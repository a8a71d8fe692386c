/**
 * A conversation moves to another upstream when its own is down. Its thinking is sent along if any account may read it,
 * and left out if `account_bound_thinking` says that only the upstream that produced it may.
 */
import assert from "node:assert/strict";
import test, { afterEach, beforeEach } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { SeenRequest } from "../../../../src/simulator/server.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { type Json, listOf, modelLine, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;

const routes = (protocol: string) => `{upstream: up-${protocol}}, {upstream: second-${protocol}, priority: 1}`;

beforeEach(async () => {
  here = await startDirections(
    [true, false]
      .flatMap((bound) => [
        modelLine(`messages-${bound}`, routes("messages"), `{thinking: adaptive, account_bound_thinking: ${bound}}`),
        modelLine(`responses-${bound}`, routes("responses"), `{account_bound_thinking: ${bound}}`),
      ])
      .join("\n"),
  );
  account = await here.account();
});

afterEach(() => here.close());

/** Whether a request was made with the credential of this upstream. */
function isFor(upstream: string): (seen: SeenRequest) => boolean {
  return ({ headers }) => headers.some((value) => value.includes(`canary-of-${upstream}`));
}

for (const bound of [true, false]) {
  const verdict = bound ? "is left out" : "is sent along";

  test(`messages thinking ${verdict}, bound: ${bound}`, async () => {
    const ask = responsesClient(`messages-${bound}`);
    const again = await inTwoTurns("messages", ask);
    const said = listOf(listOf(again.own.messages)[1]?.content).map((block) => block.type);
    assert.deepEqual(said, ["thinking", "text"]);
    const elsewhere = listOf(listOf(again.elsewhere.messages)[1]?.content).map((block) => block.type);
    assert.deepEqual(elsewhere, bound ? ["text"] : ["thinking", "text"]);
  });

  test(`responses reasoning ${verdict}, bound: ${bound}`, async () => {
    const ask = messagesClient(`responses-${bound}`);
    const again = await inTwoTurns("responses", ask);
    const types = (body: Json) => listOf(body.input).map((item) => item.type ?? "message");
    assert.deepEqual(types(again.own), ["message", "reasoning", "message", "message"]);
    assert.deepEqual(types(again.elsewhere).includes("reasoning"), !bound);
  });
}

type Ask = (history: readonly unknown[], text: string) => Promise<readonly unknown[]>;

/** The second turn as the first upstream received it, and as the second received it when the first was down. */
async function inTwoTurns(protocol: string, ask: Ask): Promise<{ readonly own: Json; readonly elsewhere: Json }> {
  here.simulator.program({ thinking: "deep", text: "said" });
  const history = await ask([], "one");
  assert.ok(isFor(`up-${protocol}`)(here.simulator.requests.at(-1) as SeenRequest));
  await ask(history, "two");
  const own = here.simulator.requests.at(-1) as SeenRequest;
  assert.ok(isFor(`up-${protocol}`)(own));
  here.simulator.program({ fault: { status: 401 } }, { when: isFor(`up-${protocol}`) });
  await ask(history, "two");
  const elsewhere = here.simulator.requests.at(-1) as SeenRequest;
  assert.ok(isFor(`second-${protocol}`)(elsewhere));
  return { own: seenBody(own), elsewhere: seenBody(elsewhere) };
}

function responsesClient(model: string): Ask {
  const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
  return async (history, text) => {
    const input = [...history, { role: "user", content: text }] as OpenAI.Responses.ResponseInput;
    const reasoning = { effort: "high" as const, summary: "auto" as const };
    const include = ["reasoning.encrypted_content" as const];
    const { output } = await sdk.responses.create({ model, input, reasoning, include, store: false });
    return [...input, ...output];
  };
}

function messagesClient(model: string): Ask {
  const sdk = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
  return async (history, text) => {
    const messages = [...history, { role: "user", content: text }] as Anthropic.MessageParam[];
    const thinking = { type: "adaptive" as const };
    const { content } = await sdk.messages.create({ model, max_tokens: 900, thinking, messages });
    return [...messages, { role: "assistant", content }];
  };
}
