/**
 * docs/translation-rules.md rule 38: if a server refuses the reasoning of earlier turns because another account or
 * conversation produced it, the request is sent once more without it. The client gets its answer, with a note, and is
 * charged for one.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { assertAtRest, memoOf, usageLines } from "../whole/asking.ts";
import { type Direction, type Json, listOf, modelOn, post, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startDirections();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const INVALID = "messages.1.content.0: Invalid `signature` in `thinking` block";
const refusing = (message: string, code?: string): Behavior => ({
  fault: { status: 400, body: JSON.stringify({ error: { type: "invalid_request_error", message, code } }) },
});
const REFUSED: Readonly<Record<Protocol, Behavior>> = {
  chat: refusing(INVALID),
  messages: refusing(INVALID),
  responses: refusing("The encrypted content gAAA...DQ== could not be verified.", "invalid_encrypted_content"),
};
/** What a client sends back from an earlier turn, as its own server produced it. */
const THINKING = { type: "thinking", thinking: "hm", signature: "RXFRQkNrWUlCeGdDS2tB" };
const REASONING = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "gAAAAABo" };

const TOOL_USE = { type: "tool_use", id: "toolu_1", name: "look", input: {} };
const TOOL_RESULT = { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "fine" }] };
const LOOK = { name: "look", input_schema: { type: "object" } };

/** A second turn of a messages client. */
function messagesBody(more: Json = {}, loop = false): Json {
  const said = { role: "assistant", content: [THINKING, loop ? TOOL_USE : { type: "text", text: "Hello." }] };
  const last = loop ? TOOL_RESULT : { role: "user", content: "And now?" };
  const messages = [{ role: "user", content: "Hi." }, said, last];
  return { model: modelOn("messages"), max_tokens: 4_000, tools: [LOOK], messages, ...more };
}

function responsesBody(more: Json = {}): Json {
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello." }] };
  const input = [{ role: "user", content: "Hi." }, REASONING, said, { role: "user", content: "And now?" }];
  return { model: modelOn("responses"), store: false, input, ...more };
}

async function metric(upstream: string, retried: string): Promise<number> {
  const page = await (
    await fetch(`${here.adminUrl}/metrics`, { headers: { authorization: "Bearer test-admin-token" } })
  ).text();
  const line = page
    .split("\n")
    .find((one) => one.startsWith(`tollgate_reasoning_refused_total{upstream="${upstream}",retried="${retried}"}`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

interface Sent {
  readonly reply: Response;
  readonly text: string;
  /** What the server received, attempt by attempt. */
  readonly bodies: readonly Json[];
}

async function send(
  client: Protocol,
  account: TestAccount,
  body: Json,
  headers: Record<string, string> = {},
): Promise<Sent> {
  const before = here.simulator.requests.length;
  const reply = await post(here, client, account.key, body, headers);
  const text = await reply.text();
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  return { reply, text, bodies: here.simulator.requests.slice(before).map(seenBody) };
}

/** One line for one answer, with both attempts in it. */
async function assertPaidOnce(account: TestAccount): Promise<void> {
  const lines = await usageLines(here, account);
  assert.equal(lines.length, 1);
  const tries = (memoOf(lines[0]) as unknown as { attempts: Json[] }).attempts;
  assert.deepEqual(
    tries.map(({ outcome, status, cost, paid_by, why }) => [outcome, status, cost === "0", paid_by, why]),
    [
      ["upstream_rejected", 400, true, "nobody", "refused"],
      ["ok", 200, false, "client", "answered"],
    ],
  );
}

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";

  test(`messages, ${how}: the same bytes are sent once more, without the thinking of earlier turns`, async () => {
    const account = await here.account();
    const before = await metric("up-messages", "yes");
    here.simulator.program(REFUSED.messages);
    here.simulator.program({ text: "ok" });
    const asked = messagesBody({ stream, thinking: { type: "enabled", budget_tokens: 2_000 } });
    const { reply, text, bodies } = await send("messages", account, asked);
    assert.equal(reply.status, 200);
    assert.ok(text.includes("ok"));
    assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=reasoning");
    assert.equal(bodies.length, 2);
    const [first, second] = bodies as [Json, Json];
    assert.ok(JSON.stringify(first).includes(THINKING.signature));
    const less = JSON.parse(JSON.stringify(first).replace(`${JSON.stringify(THINKING)},`, ""));
    assert.deepEqual(second, less, "nothing else changes, and thinking stays enabled");
    assert.equal(await metric("up-messages", "yes"), before + 1);
    await assertPaidOnce(account);
    await assertAtRest(here, account);
  });

  test(`responses, ${how}: the same request is sent once more, without encrypted reasoning`, async () => {
    const account = await here.account();
    here.simulator.program(REFUSED.responses);
    here.simulator.program({ text: "ok" });
    const { reply, bodies } = await send("responses", account, responsesBody({ stream }));
    assert.deepEqual([reply.status, bodies.length], [200, 2]);
    assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=reasoning");
    const [first, second] = bodies as [Json, Json];
    assert.deepEqual(second, { ...first, input: (first.input as Json[]).filter(({ type }) => type !== "reasoning") });
    await assertPaidOnce(account);
  });

  test(`an error instead of the first event or of the answer counts as the same refusal, ${how}`, async () => {
    const account = await here.account();
    const error = { error: { type: "invalid_request_error", message: INVALID }, type: "error" };
    const inStream = { n: 0, type: "invalid_request_error", code: "invalid_request_error", message: INVALID };
    const fault = stream ? { errorEventAfter: inStream } : { status: 200, body: JSON.stringify(error) };
    here.simulator.program({ text: "never", fault });
    here.simulator.program({ text: "ok" });
    const { reply, bodies } = await send("messages", account, messagesBody({ stream }));
    assert.deepEqual([reply.status, bodies.length], [200, 2]);
    assert.ok(!JSON.stringify(bodies[1]).includes(THINKING.signature));
  });
}

/** Replies whose reasoning the gateway seals, and what a client sends of it in its next turn. */
const CROSSED: readonly (Direction & { readonly next: (said: Json) => Json })[] = [
  {
    client: "messages",
    upstream: "responses",
    next: ({ content }) =>
      messagesBody({
        model: modelOn("responses"),
        messages: [
          { role: "user", content: "Hi." },
          { role: "assistant", content },
          { role: "user", content: "And now?" },
        ],
      }),
  },
  {
    client: "responses",
    upstream: "messages",
    next: ({ output }) =>
      responsesBody({
        model: modelOn("messages"),
        input: [{ role: "user", content: "Hi." }, ...(output as Json[]), { role: "user", content: "And now?" }],
      }),
  },
];

for (const { client, upstream, next } of CROSSED) {
  test(`${client} client, ${upstream} upstream: reasoning that the gateway sealed is left out as well`, async () => {
    const account = await here.account();
    const asks =
      client === "messages"
        ? messagesBody({
            model: modelOn(upstream),
            messages: [{ role: "user", content: "Hi." }],
            thinking: { type: "adaptive" },
          })
        : responsesBody({
            model: modelOn(upstream),
            input: "Hi.",
            reasoning: { effort: "high" },
            include: ["reasoning.encrypted_content"],
          });
    here.simulator.program({ thinking: "deep thoughts", text: "Hello." });
    const opening = await send(client, account, asks);
    here.simulator.program(REFUSED[upstream]);
    here.simulator.program({ text: "ok" });
    const { reply, bodies } = await send(client, account, next(JSON.parse(opening.text)));
    assert.deepEqual([reply.status, bodies.length], [200, 2]);
    assert.match(reply.headers.get("x-tollgate-translation") ?? "", /^lossy; dropped=reasoning/);
    const carries = (body: Json | undefined) => /"signature"|"encrypted_content"/.test(JSON.stringify(body));
    assert.deepEqual(bodies.map(carries), [true, false]);
    assert.ok(JSON.stringify(bodies[1]).includes("Hello."), "the text is kept");
  });
}

test("inside an unfinished tool loop a thinking budget is switched off, since the turn would have to begin with its thinking", async () => {
  const account = await here.account();
  for (const [thinking, expected] of [
    [{ type: "enabled", budget_tokens: 2_000 }, { type: "disabled" }],
    [{ type: "adaptive" }, { type: "adaptive" }],
  ]) {
    here.simulator.program(REFUSED.messages);
    here.simulator.program({ text: "ok" });
    const { reply, bodies } = await send("messages", account, messagesBody({ thinking }, true));
    assert.deepEqual([reply.status, bodies.length], [200, 2]);
    assert.deepEqual(bodies[1]?.thinking, expected);
    assert.deepEqual(listOf(bodies[1]?.messages)[1], { role: "assistant", content: [TOOL_USE] });
  }
});

test("there is one retry: a second refusal, or one after another failed attempt, is the answer, in the server's words", async () => {
  const account = await here.account();
  const before = [await metric("up-messages", "yes"), await metric("up-messages", "no")];
  here.simulator.program(REFUSED.messages, { times: 2 });
  const again = await send("messages", account, messagesBody());
  assert.deepEqual([again.reply.status, again.bodies.length], [400, 2]);
  assert.ok(again.text.includes("Invalid `signature`"));
  here.simulator.program({ fault: { status: 500 } });
  here.simulator.program(REFUSED.messages);
  const late = await send("messages", account, messagesBody());
  assert.deepEqual([late.reply.status, late.bodies.length], [400, 2], "a request has at most two attempts");
  assert.deepEqual(
    [await metric("up-messages", "yes"), await metric("up-messages", "no")],
    [(before[0] ?? 0) + 1, (before[1] ?? 0) + 2],
  );
  assert.deepEqual(await usageLines(here, account), [], "refusals are not charged");
  await assertAtRest(here, account);
});

const ONCE: readonly (readonly [string, Protocol, Json, Behavior, Record<string, string>?])[] = [
  ["a client that wants nothing left out", "messages", messagesBody(), REFUSED.messages, { "x-tollgate-strict": "1" }],
  [
    "a request without reasoning",
    "messages",
    messagesBody({ messages: [{ role: "user", content: "Hi." }] }),
    REFUSED.messages,
  ],
  ["another fault of the request", "messages", messagesBody(), refusing("messages.1.content.0: text is required")],
  [
    "the demand that a turn begins with its thinking",
    "messages",
    messagesBody(),
    refusing("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
  ],
  [
    "reasoning without encrypted content",
    "responses",
    responsesBody({
      input: [
        { ...REASONING, encrypted_content: undefined },
        { role: "user", content: "x" },
      ],
    }),
    REFUSED.responses,
  ],
];

for (const [what, client, body, refused, headers] of ONCE) {
  test(`${what}: one attempt, and the refusal is the answer`, async () => {
    const account = await here.account();
    here.simulator.program(refused);
    const { reply, bodies } = await send(client, account, body, headers);
    assert.deepEqual([reply.status, bodies.length], [400, 1]);
    assert.equal(reply.headers.get("x-tollgate-translation"), null);
  });
}
