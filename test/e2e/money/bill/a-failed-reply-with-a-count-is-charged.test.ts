/**
 * Promise 3: if an upstream breaks a reply off with an error and reports what it has used, that count is charged,
 * because vendors bill failed requests too (https://github.com/envoyproxy/ai-gateway/pull/2184). Before this, only the
 * few words that had been shown were charged.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { formatUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { asked, billed, DIRECTIONS, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const frame = (payload: Fields) => ({
  data: payload,
  ...(typeof payload.type === "string" ? { event: payload.type } : {}),
});
const error = { code: "server_error", message: "The model broke off." };

const chunk = (members: Fields) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", ...members });
const choice = (delta: object, finish: string | null = null) => [{ index: 0, delta, finish_reason: finish }];

const response = (status: string, members: object) => ({
  response: { id: "resp_1", object: "response", created_at: 1, model: "m", status, output: [], ...members },
});
const message = { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] };

/** 1,000 input tokens and 5,000 output tokens, one of which was shown. */
const FAILED: Readonly<Partial<Record<Protocol, readonly ReturnType<typeof frame>[]>>> = {
  chat: [
    frame(chunk({ choices: choice({ role: "assistant", content: "Hello" }) })),
    frame(
      chunk({
        choices: choice({ content: "" }, "error"),
        error,
        usage: { prompt_tokens: 1_000, completion_tokens: 5_000, total_tokens: 6_000 },
      }),
    ),
  ],
  responses: [
    frame({ type: "response.created", sequence_number: 0, ...response("in_progress", { usage: null }) }),
    frame({ type: "response.output_item.added", sequence_number: 1, output_index: 0, item: message }),
    frame({
      type: "response.output_text.delta",
      sequence_number: 2,
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: "Hello",
    }),
    frame({
      type: "response.failed",
      sequence_number: 3,
      ...response("failed", { error, usage: { input_tokens: 1_000, output_tokens: 5_000, total_tokens: 6_000 } }),
    }),
  ],
};

for (const upstream of ["chat", "responses"] as const) {
  for (const client of ["chat", "messages", "responses"] as const) {
    test(`${client} on ${upstream}: a broken-off stream with a count is charged by that count`, async () => {
      const account = await here.account();
      here.simulator.program({ frames: FAILED[upstream] ?? [] });
      const { text } = await asked(here, client, account, limited(client, upstream, 8_000, { stream: true }));
      assert.match(text, /"error"/);
      const { usd, memo } = await billed(here, account);
      assert.deepEqual([usd, memo.input, memo.output], ["0.078", 1_000, 5_000]);
    });
  }
}

const counted = { usage: { prompt_tokens: 1_000, completion_tokens: 5_000, total_tokens: 6_000 } };
const LATE = [
  frame(chunk({ choices: choice({ role: "assistant", content: "Hello" }) })),
  frame(chunk({ choices: choice({ content: "" }, "error") })),
  frame(chunk({ choices: [], ...counted })),
];

for (const client of ["chat", "messages", "responses"] as const) {
  test(`${client} on chat: a count that follows the error is charged`, async () => {
    const account = await here.account();
    here.simulator.program({ frames: LATE });
    const { text } = await asked(here, client, account, limited(client, "chat", 8_000, { stream: true }));
    assert.match(text, /error/);
    const { usd, memo } = await billed(here, account);
    assert.deepEqual([usd, memo.input, memo.output], ["0.078", 1_000, 5_000]);
  });
}

/** An event that is too large for the gateway to buffer, as log probabilities of many choices can be. */
const HUGE = { choices: choice({ content: "Hello" }), logprobs: "x".repeat(5 * 1024 * 1024) };

for (const stream of [true, false]) {
  const what = stream ? "a first event" : "a whole reply";
  test(`${what} that is too large is absorbed up to 0.50 a day, then charged, and does not count as an upstream failure`, async () => {
    const account = await here.account({ usd: "5" });
    const body = chunk({ ...HUGE, pad: "x".repeat(stream ? 0 : 32 * 1024 * 1024) });
    here.simulator.program(stream ? { frames: [frame(body)] } : { body }, { times: 10 });
    const before = here.simulator.requests.length;
    const times = 6;
    for (let i = 0; i < times; i++) {
      const reply = await ask(here, "chat", account.key, limited("chat", "chat", 8_000, { stream }));
      assert.equal(reply.status, 403, await reply.text());
      await assertAtRest(here, account);
    }
    assert.equal(here.simulator.requests.length - before, times, "a retry would be charged again");
    const lines = await usageLines(here, account);
    // Each costs 0.12 USD plus its input, so four fit into the allowance.
    assert.deepEqual(lines.map(({ kind }) => kind).sort(), [
      "absorbed",
      "absorbed",
      "absorbed",
      "absorbed",
      "usage",
      "usage",
    ]);
    for (const line of lines) {
      const memo = memoOf(line);
      assert.equal(memo.output, 8_000);
      assert.equal(memo.paid, line.kind === "usage" ? "allowance_used" : undefined);
    }
    here.simulator.clearPrograms();
    await asked(here, "chat", account, limited("chat", "chat", 8_000));
  });
}

test("tool arguments nested too deeply to translate are charged like a reply that is too large, and do not eject the upstream", async () => {
  const account = await here.account({ usd: "5" });
  const input = JSON.parse(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`);
  const body = {
    ...{ id: "msg_1", type: "message", role: "assistant", model: "m", stop_reason: "tool_use" },
    content: [{ type: "tool_use", id: "toolu_1", name: "f", input }],
    usage: { input_tokens: 20_000, output_tokens: 1_500 },
  };
  here.simulator.program({ body }, { times: 10 });
  const before = here.simulator.requests.length;
  const times = 7;
  for (let i = 0; i < times; i++) {
    const reply = await ask(here, "chat", account.key, limited("chat", "messages", 8_000));
    assert.equal(reply.status, 403, await reply.text());
    await assertAtRest(here, account);
  }
  assert.equal(here.simulator.requests.length - before, times);
  const lines = await usageLines(here, account);
  // Each costs 0.0825 USD by the upstream's count, so six fit into the allowance.
  const kinds = lines.map(({ kind, amount }) => `${kind} ${formatUsd(amount)}`).sort();
  assert.deepEqual(kinds, [...Array(6).fill("absorbed 0.0825"), "usage 0.0825"]);
  here.simulator.clearPrograms();
  await asked(here, "chat", account, limited("chat", "messages", 8_000));
});

/** One absorbed line per attempt, by the upstream's count. */
async function assertAbsorbed(account: TestAccount, tries: number): Promise<void> {
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.equal(lines.length, tries);
  assert.ok(tries > 0);
  for (const line of lines) {
    const memo = memoOf(line);
    assert.deepEqual(
      [line.kind, formatUsd(line.amount), memo.input, memo.output, memo.counted],
      ["absorbed", "0.078", 1_000, 5_000, "upstream"],
    );
  }
}

/** The same counts in a whole reply that reports a failure. */
const WHOLE: Readonly<Record<Protocol, Fields>> = {
  chat: { ...chunk({ choices: [], error }), usage: { prompt_tokens: 1_000, completion_tokens: 5_000 } },
  messages: { type: "error", error: { type: "api_error" }, usage: { input_tokens: 1_000, output_tokens: 5_000 } },
  responses: response("failed", { error, usage: { input_tokens: 1_000, output_tokens: 5_000 } }).response,
};

for (const [client, upstream] of DIRECTIONS) {
  test(`${client} on ${upstream}: a whole reply that failed with a count is absorbed and not charged`, async () => {
    const account = await here.account();
    here.simulator.program({ body: WHOLE[upstream] }, { times: 10 });
    const before = here.simulator.requests.length;
    const reply = await ask(here, client, account.key, limited(client, upstream, 8_000));
    assert.equal(reply.status, 403, await reply.text());
    await assertAbsorbed(account, here.simulator.requests.length - before);
  });
}

const used = { input_tokens: 1_000, output_tokens: 5_000 };
const begun = { message: { ...message, model: "m", usage: { input_tokens: 1_000, output_tokens: 1 } } };
const greeted = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } };

/** Errors that are an event of their own, with the count in the same event. */
const ERRORS = {
  messages: frame({ type: "error", error: { type: "api_error", message: "" }, usage: used }),
  responses: frame({ type: "error", code: "server_error", message: "", sequence_number: 3, usage: used }),
  chat: frame({ ...chunk({ choices: [], error }), usage: { prompt_tokens: 1_000, completion_tokens: 5_000 } }),
};
const GREETINGS: Readonly<Partial<Record<Protocol, readonly ReturnType<typeof frame>[]>>> = {
  messages: [frame({ type: "message_start", ...begun }), frame(greeted)],
  responses: FAILED.responses?.slice(0, 3) ?? [],
};

for (const [client, upstream] of DIRECTIONS) {
  const greeting = GREETINGS[upstream];
  if (greeting) {
    test(`${client} on ${upstream}: the count in an error event is charged`, async () => {
      const account = await here.account();
      here.simulator.program({ frames: [...greeting, ERRORS[upstream]] });
      await asked(here, client, account, limited(client, upstream, 8_000, { stream: true }));
      const { usd, memo } = await billed(here, account);
      assert.deepEqual([usd, memo.input, memo.output], ["0.078", 1_000, 5_000]);
    });
  }

  for (const [what, first] of [
    ["an error", ERRORS[upstream]],
    ["a failure", upstream === "responses" ? FAILED.responses?.at(-1) : undefined],
  ] as const) {
    if (!first) continue;
    test(`${client} on ${upstream}: a stream that begins with ${what} and a count is absorbed and not charged`, async () => {
      const account = await here.account();
      here.simulator.program({ frames: [first] }, { times: 10 });
      const before = here.simulator.requests.length;
      const reply = await ask(here, client, account.key, limited(client, upstream, 8_000, { stream: true }));
      assert.equal(reply.status, 403, await reply.text());
      await assertAbsorbed(account, here.simulator.requests.length - before);
    });
  }
}

/** The last event of each protocol, with more member names than the gateway parses. */
const names = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`name${at}`, 0]));
const UNREAD = {
  chat: chunk({ choices: choice({}, "stop"), ...counted, unheard_of: names }),
  messages: { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: used, unheard_of: names },
  responses: { type: "response.completed", sequence_number: 3, ...response("completed", { usage: used, echo: names }) },
};

for (const [client, upstream] of DIRECTIONS) {
  test(`${client} on ${upstream}: the count of a last event that is too large to parse is charged`, async () => {
    const account = await here.account();
    const greeting = GREETINGS[upstream] ?? FAILED.chat?.slice(0, 1) ?? [];
    here.simulator.program({ frames: [...greeting, frame(UNREAD[upstream])] });
    const { text } = await asked(here, client, account, limited(client, upstream, 8_000, { stream: true }));
    assert.match(text, /error/);
    const { usd, memo } = await billed(here, account);
    assert.deepEqual([usd, memo.input, memo.output, memo.counted], ["0.078", 1_000, 5_000, "upstream"]);
  });
}

test("a stream that begins with an error and has no count is neither charged nor absorbed", async () => {
  const account = await here.account();
  for (const usage of [undefined, { input_tokens: 0, output_tokens: 0 }]) {
    here.simulator.program({ frames: [frame({ type: "error", error: { type: "api_error" }, usage })] }, { times: 2 });
    const reply = await ask(here, "messages", account.key, limited("messages", "messages", 8_000, { stream: true }));
    assert.equal(reply.status, 403, await reply.text());
  }
  await assertAtRest(here, account);
  assert.deepEqual(await usageLines(here, account), []);
});
