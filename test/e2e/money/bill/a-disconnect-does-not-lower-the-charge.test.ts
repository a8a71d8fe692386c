/**
 * ARCHITECTURE.md promise 3: a client that ends its reply early is charged what the upstream bills for it. Before this,
 * at 15 USD per million output tokens, 0.0002 was charged for 20,000 hidden tokens before a word at which the client
 * disconnected, and 0.045 for two choices of 3,000 and 4,333 tokens when the client disconnected after one had ended.
 * Row D2 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { formatUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, type Fields } from "../../protocol/whole/asking.ts";
import { billed, DIRECTIONS, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** Reads a stream until this word has come, then disconnects. @returns the text read. */
async function leftAt(client: Protocol, account: TestAccount, fields: Fields, word: string): Promise<string> {
  const leaving = new AbortController();
  const reply = await ask(here, client, account.key, { stream: true, ...fields }, { signal: leaving.signal });
  assert.equal(reply.status, 200);
  let text = "";
  const reader = reply.body?.getReader();
  while (!text.includes(word)) {
    const piece = await reader?.read();
    assert.ok(piece && !piece.done, `${word} was never received: ${text}`);
    text += Buffer.from(piece.value).toString();
  }
  leaving.abort();
  return text;
}

/** What a reasoning model sends before its words: nothing at all, or redacted reasoning. */
const HIDDEN = [
  ["not shown", {}],
  ["redacted", { redacted: "c2VhbGVk".repeat(40) }],
] as const;

for (const [client, upstream] of DIRECTIONS) {
  for (const [how, behavior] of HIDDEN) {
    test(`${client} on ${upstream}: 20,000 hidden tokens, ${how}, are charged to a client that disconnects at a chosen word`, async () => {
      const account = await here.account();
      const usage = { input: 20, output: 20_010, reasoning: 20_000 };
      here.simulator.program({
        ...behavior,
        text: "The result is 42. END",
        deltaChars: 21,
        usage,
        ignoreLimit: true,
        pace: { betweenMs: 20 },
      });
      await leftAt(client, account, limited(client, upstream, 32_000), "END");
      const { line, memo } = await billed(here, account);
      assert.deepEqual([formatUsd(line.amount), memo.counted, memo.output], ["0.30021", "upstream", 20_010]);
      assert.ok(memo.ended === "complete" || (memo.ended === "client_gone" && memo.final === true));
    });
  }
}

/** Two choices, each with its own running count in every chunk; the first one ends, then the client disconnects. */
test("the end of one choice is not the end of the reply: the running counts of all choices are charged", async () => {
  const account = await here.account();
  const chunk = (index: number, content: string, tokens: number, finish: string | null = null) => ({
    data: {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index, delta: { content }, finish_reason: finish }],
      usage: { prompt_tokens: 20, completion_tokens: tokens, total_tokens: 20 + tokens },
    },
  });
  here.simulator.program({
    frames: [
      chunk(0, "a", 1),
      chunk(1, "b", 1),
      chunk(0, "a", 2_999),
      chunk(1, "b", 4_333),
      chunk(0, "LAST", 3_000, "stop"),
    ],
    fault: { stallAfterEvents: 5 },
  });
  await leftAt("chat", account, { ...limited("chat", "chat", 8_000), n: 2 }, "LAST");
  const { line, memo } = await billed(here, account);
  assert.deepEqual([memo.output, memo.counted, formatUsd(line.amount)], [7_333, "estimate", "0.110055"]);
});

test("a running count that covers all choices is not added up per choice", async () => {
  const account = await here.account();
  const chunk = (index: number, tokens: number, content = "a") => ({
    data: {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index, delta: { content }, finish_reason: null }],
      usage: { prompt_tokens: 20, completion_tokens: tokens, total_tokens: 20 + tokens },
    },
  });
  here.simulator.program({
    frames: [chunk(0, 1), chunk(1, 2), chunk(0, 1_500), chunk(1, 3_000, "LAST")],
    fault: { stallAfterEvents: 4 },
  });
  await leftAt("chat", account, { ...limited("chat", "chat", 8_000), n: 2 }, "LAST");
  assert.equal((await billed(here, account)).memo.output, 3_000);
});

test("text with few bytes per token is charged by its real tokens as well", async () => {
  // Tokens by the public tokenizers: base64 and symbols have 1.4 to 1.5 bytes per token, Chinese 2.5.
  const texts: readonly [text: string, tokens: number][] = [
    ["UmFuZG9tIGJ5dGVzIQ0KkX7zPq0vJ8sYtLw2".repeat(20), 500],
    ["人人生而自由在尊严和权利上一律平等".repeat(20), 320],
    ["0 1 2 3 4 5 6 7 8 9 ".repeat(20), 250],
  ];
  for (const [text, tokens] of texts) {
    const account = await here.account();
    here.simulator.program({
      text: `${text}END${"x".repeat(4_000)}`,
      deltaChars: text.length + 3,
      fault: { stallAfterEvents: 2 },
    });
    await leftAt("chat", account, limited("chat", "chat", 8_000), "END");
    const { memo } = await billed(here, account);
    assert.ok((memo.output as number) >= tokens * 0.9, `${memo.output} for ${text.slice(0, 12)}`);
  }
});
