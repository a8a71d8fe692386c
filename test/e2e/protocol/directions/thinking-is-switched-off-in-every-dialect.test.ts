/**
 * A client that switches thinking off reaches each upstream in the dialect that the model's capabilities name. If a
 * model has no switch, the operator decides whether the wish is ignored or refused (`thinking_off`).
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { usageLines } from "../whole/asking.ts";
import { type Json, modelLine, modelOn, post, recordOf, seenBody, startGateway } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;

/** Per upstream protocol, a model without a switch that ignores the wish, and one that refuses it. */
const WITHOUT_SWITCH = ["ignore", "reject"].flatMap((off) => [
  modelLine(`chat-${off}`, "{upstream: up-chat}", `{efforts: [], thinking_off: ${off}}`),
  modelLine(`messages-${off}`, "{upstream: up-messages}", `{thinking: always, thinking_off: ${off}}`),
  modelLine(`responses-${off}`, "{upstream: up-responses}", `{efforts: [], thinking_off: ${off}}`),
]);

before(async () => {
  // Not strict: the vendor of the protocol does not know the switches that chat servers have added.
  here = await startGateway({ more: WITHOUT_SWITCH.join("\n"), strict: false });
  account = await here.account();
});

after(() => here.close());

/** How clients say it, and the member that a refusal names. */
const SAID: readonly (readonly [client: Protocol, members: Json, named: string])[] = [
  ["chat", { reasoning_effort: "none" }, "reasoning_effort"],
  ["chat", { enable_thinking: false }, "enable_thinking"],
  ["chat", { chat_template_kwargs: { enable_thinking: false } }, "chat_template_kwargs"],
  ["chat", { thinking: { type: "disabled" } }, "thinking"],
  ["chat", { reasoning: { effort: "none" } }, "reasoning"],
  ["messages", { thinking: { type: "disabled" } }, "thinking"],
  ["messages", { output_config: { effort: "none" } }, "output_config.effort"],
  ["responses", { reasoning: { effort: "none" } }, "reasoning.effort"],
];

/** What an upstream of another protocol receives. */
const SENT: Readonly<Record<Protocol, Json>> = {
  chat: { reasoning_effort: "none" },
  messages: { thinking: { type: "disabled" } },
  responses: { reasoning: { effort: "none" } },
};

/** The members about thinking, of any protocol. */
const THINKING_MEMBERS = [
  "reasoning_effort",
  "reasoning",
  "thinking",
  "output_config",
  "enable_thinking",
  "chat_template_kwargs",
];

function thinkingMembersOf(body: Json): Json {
  return Object.fromEntries(Object.entries(body).filter(([name]) => THINKING_MEMBERS.includes(name)));
}

function bodyFor(client: Protocol, model: string, members: Json): Json {
  const turn = [{ role: "user", content: "hello" }];
  if (client === "responses") return { model, input: turn, store: false, ...members };
  return { model, messages: turn, ...(client === "messages" ? { max_tokens: 500 } : {}), ...members };
}

for (const [client, members, named] of SAID) {
  for (const upstream of ["chat", "messages", "responses"] as const) {
    const title = `${client} ${JSON.stringify(members)}, ${upstream} upstream`;

    test(`${title}: sent in the upstream's dialect`, async () => {
      const reply = await post(here, client, account.key, bodyFor(client, modelOn(upstream), members));
      await reply.text();
      assert.equal(reply.status, 200);
      const sent = thinkingMembersOf(seenBody(here.simulator.requests.at(-1)));
      assert.deepEqual(sent, client === upstream ? members : SENT[upstream]);
    });

    test(`${title} without a switch: ignored`, async () => {
      const reply = await post(here, client, account.key, bodyFor(client, `${upstream}-ignore`, members));
      await reply.text();
      assert.equal(reply.status, 200);
      const sent = thinkingMembersOf(seenBody(here.simulator.requests.at(-1)));
      // docs/translation-rules.md rule 27: a messages model that always thinks is asked to think little.
      const least: Json = upstream === "messages" ? { output_config: { effort: "low" } } : {};
      assert.deepEqual(sent, client === upstream ? members : least);
    });

    test(`${title} without a switch: refused by name if the operator says so`, async () => {
      const poor = await here.account();
      const asked = here.simulator.count;
      const reply = await post(here, client, poor.key, bodyFor(client, `${upstream}-reject`, members));
      assert.equal(reply.status, 400);
      const error = recordOf(((await reply.json()) as Json).error);
      assert.equal(error.cause, "unsupported_parameter");
      assert.equal(client === "messages" ? String(error.message).split(": ")[0] : error.param, named);
      assert.equal(here.simulator.count, asked);
      await here.requestEnd(reply.headers.get("x-request-id") ?? "");
      assert.deepEqual((await here.store.inspect(poor.tag))?.holds, []);
      assert.deepEqual(await usageLines(here, poor), []);
    });
  }
}

test("thinking_off does not affect a request that leaves thinking on", async () => {
  for (const [client, members] of [
    ["chat", { enable_thinking: true, reasoning_effort: "high" }],
    ["messages", { thinking: { type: "adaptive" } }],
    ["responses", { reasoning: { effort: "high" } }],
  ] as const) {
    for (const upstream of ["chat", "messages", "responses"]) {
      const reply = await post(here, client, account.key, bodyFor(client, `${upstream}-reject`, members));
      await reply.text();
      assert.equal(reply.status, 200, `${client} on ${upstream}`);
    }
  }
});
