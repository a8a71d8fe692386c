/**
 * ARCHITECTURE.md promise 1: the hold of a stream without an output limit grows with it, and the stream ends when the
 * funds do.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { nanoUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST, recomputed, usageLines } from "./asking.ts";
import {
  accountWith,
  assertBilledToTheEdge,
  assertTruncated,
  holdOf,
  openEnded,
  PRICE,
  STEP,
  saidIn,
  smallSteps,
} from "./open-ended.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: smallSteps });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** Far more than any of the funds below cover. */
const ENDLESS = "word ".repeat(100_000);
const CLIENTS = ["chat", "responses"] as const;

async function extensionsOf(reply: Response): Promise<unknown> {
  const id = reply.headers.get("x-request-id");
  assert.ok(id);
  return (await here.requestEnd(id)).hold_extensions;
}

function limitSent(): unknown {
  const sent = here.simulator.requests.at(-1)?.json as Fields | undefined;
  assert.ok(sent);
  return sent.max_tokens ?? sent.max_completion_tokens ?? sent.max_output_tokens;
}

for (const client of CLIENTS) {
  for (const upstream of PROTOCOL_LIST) {
    const name = `${client} on ${upstream}`;
    const fields = openEnded(client, upstream);

    test(`${name}: with enough funds the hold grows step by step, and the charge is the upstream's count`, async () => {
      const account = await here.account();
      const text = "word ".repeat(1_600);
      here.simulator.program({ text, deltaChars: 200, pace: { betweenMs: 2 } });
      const reply = await ask(here, client, account.key, fields);
      assert.equal(saidIn(client, await reply.text()), text);
      await assertAtRest(here, account);
      const [line, ...more] = await usageLines(here, account);
      assert.deepEqual(more, []);
      const memo = memoOf(line);
      assert.deepEqual([memo.output, memo.counted, memo.ended], [2_000, "upstream", "complete"]);
      assert.equal(line?.amount, recomputed(line as never));
      assert.ok(BigInt(memo.hold as string) >= (line?.amount ?? 0n), "the hold has grown to cover it");
      assert.equal((BigInt(memo.hold as string) - holdOf(client, fields, 0)) % (BigInt(STEP) * PRICE.output), 0n);
      assert.ok(Number(await extensionsOf(reply)) >= 3);
    });

    test(`${name}: with funds for a part of it the stream ends as truncated at the last nano-dollar`, async () => {
      const funds = holdOf(client, fields, 3 * STEP + 50);
      const account = await accountWith(here, funds);
      here.simulator.program({ text: ENDLESS, ignoreLimit: true, deltaChars: 40, pace: { betweenMs: 1 } });
      const reply = await ask(here, client, account.key, fields);
      // The limit sent upstream was no more than all the funds cover, so it includes hidden reasoning.
      assert.equal(limitSent(), 3 * STEP + 50);
      assert.match(reply.headers.get("x-tollgate-clamped") ?? "", new RegExp(`_tokens=${3 * STEP + 50}$`));
      const text = await reply.text();
      assertTruncated(client, text);
      await assertAtRest(here, account);
      assert.equal(await here.simulator.requests.at(-1)?.finished, "aborted");
      assert.equal(await assertBilledToTheEdge(here, account, client, text, funds), funds);
      const ended = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
      assert.equal(ended.stream_end, "brake");
    });

    test(`${name}: the limit sent is the model's maximum, or what is left of the context`, async () => {
      const account = await here.account();
      await (await ask(here, client, account.key, fields)).text();
      assert.equal(limitSent(), 32_000);
      // 200,000 tokens of context minus 540,000 bytes at three bytes per token.
      const long = "x".repeat(540_000);
      const content = client === "chat" ? { messages: [{ role: "user", content: long }] } : { input: long };
      await (await ask(here, client, account.key, { ...fields, ...content })).text();
      const limit = Number(limitSent());
      assert.ok(limit > 19_000 && limit < 20_000, `${limit}`);
      await assertAtRest(here, account);
    });
  }
}

test("a client that asks for usage gets the usage that is charged", async () => {
  const fields = openEnded("chat", "chat", { stream_options: { include_usage: true } });
  const account = await accountWith(here, holdOf("chat", fields, 2 * STEP));
  here.simulator.program({ text: ENDLESS, ignoreLimit: true, deltaChars: 40 });
  const text = await (await ask(here, "chat", account.key, fields)).text();
  await assertAtRest(here, account);
  const memo = memoOf((await usageLines(here, account))[0]);
  const usage = JSON.parse(text.split("data: ").at(-2) ?? "") as { choices: []; usage: Record<string, number> };
  assert.deepEqual(usage.choices, []);
  assert.deepEqual([usage.usage.prompt_tokens, usage.usage.completion_tokens], [memo.input, memo.output]);
});

test("each of several choices is held, and gets its own end", async () => {
  const fields = openEnded("chat", "chat", { n: 3 });
  const account = await accountWith(here, holdOf("chat", fields, 3 * 2 * STEP));
  here.simulator.program({ text: ENDLESS, ignoreLimit: true, deltaChars: 40 });
  const text = await (await ask(here, "chat", account.key, fields)).text();
  const ends = [...text.matchAll(/"index":(\d),"delta":\{\},"logprobs":null,"finish_reason":"length"/g)];
  assert.deepEqual(ends.map((end) => end[1]).sort(), ["0", "1", "2"]);
  await assertAtRest(here, account);
  assert.equal((await here.store.getAccount(account.tag))?.balance, 0n);
});

test("a tool call that is cut in the middle is closed too, passed through and translated", async () => {
  for (const upstream of PROTOCOL_LIST) {
    const tools = [{ type: "function", name: "write", parameters: { type: "object" } }];
    const fields = openEnded("responses", upstream, { tools });
    const account = await accountWith(here, holdOf("responses", fields, 2 * STEP));
    here.simulator.program({
      tools: [{ name: "write", arguments: { text: ENDLESS } }],
      ignoreLimit: true,
      deltaChars: 40,
    });
    const text = await (await ask(here, "responses", account.key, fields)).text();
    const last = JSON.parse(text.split("data: ").at(-1) ?? "") as {
      response: { status: string; output: { type: string; status: string; arguments: string }[] };
    };
    const [call, ...more] = last.response.output;
    assert.deepEqual(
      [last.response.status, call?.type, call?.status, more.length],
      ["incomplete", "function_call", "incomplete", 0],
    );
    assert.ok(call && call.arguments.length > 400 && call.arguments.startsWith('{"text":"word '));
    await assertAtRest(here, account);
    assert.equal((await here.store.getAccount(account.tag))?.balance, 0n);
  }
});

test("a client's own limit is held completely: no extension is requested and the gateway does not cut", async () => {
  for (const client of PROTOCOL_LIST) {
    const account = await here.account();
    here.simulator.program({ text: "word ".repeat(1_600), ignoreLimit: true, deltaChars: 100 });
    const reply = await ask(here, client, account.key, { stream: true });
    await reply.text();
    await assertAtRest(here, account);
    assert.equal(await extensionsOf(reply), undefined);
    assert.equal(memoOf((await usageLines(here, account))[0]).ended, "complete");
  }
});

test("a lowered limit stays: funds added in the meantime are for the next request", async () => {
  const fields = openEnded("chat", "chat");
  const account = await accountWith(here, holdOf("chat", fields, STEP) - 1n);
  here.simulator.program({ text: ENDLESS, ignoreLimit: true, deltaChars: 40, fault: { endAfterEvents: 100 } });
  const reply = await ask(here, "chat", account.key, fields);
  assert.equal(reply.headers.get("x-tollgate-clamped"), `max_completion_tokens=${STEP - 1}`);
  await here.store.credit(account.tag, { id: `late-${account.tag}`, amount: 1_000_000n, kind: "topup", note: "" });
  await reply.text();
  await assertAtRest(here, account);
  assert.equal(await extensionsOf(reply), undefined);
  assert.equal(limitSent(), STEP - 1);
});

test("a top-up counts for the next step that is requested", async () => {
  const fields = openEnded("chat", "chat");
  const account = await accountWith(here, holdOf("chat", fields, STEP));
  const text = "word ".repeat(800);
  here.simulator.program({ text, ignoreLimit: true, deltaChars: 400, pace: { firstDelayMs: 0, betweenMs: 20 } });
  const reply = await ask(here, "chat", account.key, fields);
  assert.equal(limitSent(), STEP, "the limit is what the account can pay at the time of sending");
  await here.store.credit(account.tag, { id: `late-${account.tag}`, amount: 100_000_000n, kind: "topup", note: "" });
  assert.equal(saidIn("chat", await reply.text()), text);
  await assertAtRest(here, account);
});

const card = (tag: string, quota: bigint | undefined) => ({
  id: `code_${tag}xxxxxx`,
  card: "day",
  plan: "pro",
  group: "cards",
  lastsMs: 86_400_000,
  afterPrevious: false,
  quota: quota === undefined ? undefined : nanoUsd(quota),
  reference: "test",
});

test("a card pays up to its quota, and the balance is not used", async () => {
  const fields = openEnded("chat", "chat");
  const account = await here.account({ group: "cards", usd: "5" });
  const quota = holdOf("chat", fields, 3 * STEP);
  await here.store.grant(account.tag, card(account.tag, quota));
  here.simulator.program({ text: ENDLESS, ignoreLimit: true, deltaChars: 40 });
  assertTruncated("chat", await (await ask(here, "chat", account.key, fields)).text());
  await assertAtRest(here, account);
  const state = await here.store.inspect(account.tag);
  assert.deepEqual([state?.entitlements[0]?.spent, state?.entitlements[0]?.held], [quota, 0n]);
  assert.equal(state?.account.balance, 5_000_000_000n);
});

test("with a card without quota nothing is extended, and the model's limit applies", async () => {
  const account = await here.account({ group: "cards", usd: "0" });
  await here.store.grant(account.tag, card(account.tag, undefined));
  const text = "word ".repeat(1_600);
  here.simulator.program({ text, deltaChars: 100 });
  const reply = await ask(here, "chat", account.key, openEnded("chat", "chat"));
  assert.equal(saidIn("chat", await reply.text()), text);
  await assertAtRest(here, account);
  assert.deepEqual([await extensionsOf(reply), limitSent()], [undefined, 32_000]);
});

test("the metrics count each extension and each stream that was stopped", async () => {
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  assert.match(page, /tollgate_stream_ends_total\{protocol="chat",reason="brake"\} [1-9]/);
  assert.match(page, /tollgate_hold_extensions_total\{group="money",outcome="extended"\} [1-9]/);
  assert.match(page, /tollgate_hold_extensions_total\{group="money",outcome="part"\} [1-9]/);
  assert.match(page, /tollgate_store_seconds_count\{operation="extend"\} [1-9]/);
});
