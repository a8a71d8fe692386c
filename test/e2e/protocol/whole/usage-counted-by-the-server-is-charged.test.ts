/**
 * What the model's server counts is what the account is charged, through a whole gateway and its ledger: cases that
 * were once charged otherwise, with the old charge, and every form of docs/usage-forms.md. Prices are 3.00 (input),
 * 0.30 (cached), 3.75 and 6.00 (cache writes) and 15.00 (output) US dollars per million tokens.
 */
import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { join } from "node:path";
import test, { after, afterEach, before } from "node:test";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { startBefore } from "../../../rig/own-upstream.ts";
import { type UsageGolden, usageGoldens } from "../../../unit/convert/usage/usage-goldens.ts";
import { ask, assertAtRest, framesOf, memoOf, recomputed, usageLines } from "./asking.ts";

function config({ upstreamUrl, dir }: ConfigPlaces): string {
  const price = '{input: "3", cached_input: "0.3", cache_write: "3.75", cache_write_1h: "6", output: "15"}';
  const model = (protocol: Protocol) =>
    `  ${protocol}-1: {plans: [free], price: ${price}, context_tokens: 1000000, max_output_tokens: 128000, routes: [{upstream: up-${protocol}}]}`;
  const upstream = (protocol: Protocol) =>
    `  up-${protocol}: {protocol: ${protocol}, base_url: ${JSON.stringify(upstreamUrl)}, api_key: k, on_client_gone: abort}`;
  return `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
admin_token: test-admin-token
store: ${JSON.stringify(`embedded:${join(dir, "data")}`)}
sealing_keys: [test-sealing-key-of-32-characters-or-more]
plans: {free: {}}
upstreams:
${PROTOCOL_NAMES.map(upstream).join("\n")}
models:
${PROTOCOL_NAMES.map(model).join("\n")}
groups:
  money: {kind: pay_per_use, models: ["*"]}
`;
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

type Form = Pick<UsageGolden, "name" | "protocol" | "n" | "whole" | "stream">;

/** Sends one request whose upstream answers in this form. @returns its only ledger line. */
async function lineOf(form: Form, client: Protocol, stream: boolean) {
  const account = await here.account();
  const frames = (form.stream ?? []).map((data) => {
    const type = (data as { type?: string }).type;
    return type === undefined ? { data } : { event: type, data };
  });
  here.simulator.program(stream ? { frames } : { body: form.whole });
  const choices = form.n === undefined ? {} : { n: form.n };
  const reply = await ask(here, client, account.key, { model: `${form.protocol}-1`, stream, ...choices });
  assert.equal(reply.status, 200);
  const text = await reply.text();
  await assertAtRest(here, account);
  const [line, ...more] = await usageLines(here, account);
  assert.ok(line);
  assert.deepEqual(more, []);
  return { line, text };
}

/** Whether the form exists whole or streamed, and for which clients: several choices exist for chat clients only. */
function* waysOf(form: Form): Generator<[client: Protocol, stream: boolean]> {
  for (const client of PROTOCOL_NAMES) {
    if (form.n !== undefined && client !== "chat") continue;
    if (form.whole) yield [client, false];
    if (form.stream) yield [client, true];
  }
}

function chunk(choices: object[], more: object = {}): object {
  return { id: "c1", object: "chat.completion.chunk", created: 1, model: "chat-1", choices, ...more };
}

/** A chat reply with this usage, whole and streamed. */
function chatForm(name: string, usage: object): Form {
  const message = { role: "assistant", content: "Yes." };
  const whole = { id: "c1", object: "chat.completion", created: 1, model: "chat-1", usage };
  return {
    name,
    protocol: "chat",
    whole: { ...whole, choices: [{ index: 0, message, finish_reason: "stop" }] },
    stream: [
      chunk([{ index: 0, delta: message, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
      chunk([], { usage }),
      "[DONE]",
    ],
  };
}

function compactionForm(): Form {
  const iterations = [
    { type: "compaction", input_tokens: 180_000, output_tokens: 3_500 },
    { type: "message", input_tokens: 23_000, output_tokens: 1_000 },
  ];
  const usage = { input_tokens: 23_000, output_tokens: 1_000, iterations };
  const message = { id: "m1", type: "message", role: "assistant", model: "messages-1", stop_sequence: null };
  const begun = { ...message, content: [], stop_reason: null, usage: { input_tokens: 23_000, output_tokens: 1 } };
  return {
    name: "compaction beside the top-level counts",
    protocol: "messages",
    whole: { ...message, content: [{ type: "text", text: "Yes." }], stop_reason: "end_turn", usage },
    stream: [
      { type: "message_start", message: begun },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Yes." } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
      { type: "message_stop" },
    ],
  };
}

const ROWS: readonly { readonly form: Form; readonly was: bigint; readonly due: bigint }[] = [
  {
    form: chatForm("reasoning beside the output count", {
      prompt_tokens: 20,
      completion_tokens: 10,
      total_tokens: 20_030,
      completion_tokens_details: { reasoning_tokens: 20_000 },
    }),
    was: 210_000n,
    due: 300_210_000n,
  },
  {
    form: chatForm("cached input at the top level of usage", {
      prompt_tokens: 100_000,
      completion_tokens: 10,
      total_tokens: 100_010,
      cached_tokens: 100_000,
    }),
    was: 300_150_000n,
    due: 30_150_000n,
  },
  { form: compactionForm(), was: 84_000_000n, due: 676_500_000n },
];

for (const { form, was, due } of ROWS) {
  for (const [client, stream] of waysOf(form)) {
    test(`${form.name}: ${due} nano-dollars, not ${was} (${client} client, ${stream ? "streamed" : "whole"})`, async () => {
      const { line } = await lineOf(form, client, stream);
      assert.equal(line.amount, due);
      assert.equal(memoOf(line).counted, "upstream");
      assert.equal(recomputed(line), due);
    });
  }
}

/** Output tokens that each of two choices has when its client disconnects; the first one has ended. */
const RUNNING = [3_000, 4_200] as const;
/** What the first choice alone would cost, and what both cost. */
const ONE_CHOICE = 1_000n * 3_000n + 3_000n * 15_000n;
const BOTH_CHOICES = 1_000n * 3_000n + 7_200n * 15_000n;

test(`running counts of two choices, disconnected after one has ended: ${BOTH_CHOICES} nano-dollars, not ${ONE_CHOICE}`, async (t) => {
  const asked = Promise.withResolvers<ServerResponse>();
  const answers: RequestListener = (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    asked.resolve(response);
  };
  const gateway = await startBefore(t, answers, { config });
  const account = await gateway.account();
  const leaving = new AbortController();
  const fields = {
    n: 2,
    max_tokens: 5_000,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  const replying = ask(gateway, "chat", account.key, fields, { signal: leaving.signal });
  const upstream = await asked.promise;
  const frame = (index: number, delta: object, reason: string | null, completion: number) => {
    const usage = { prompt_tokens: 1_000, completion_tokens: completion, total_tokens: 1_000 + completion };
    return `data: ${JSON.stringify(chunk([{ index, delta, finish_reason: reason }], { usage }))}\n\n`;
  };
  upstream.write(frame(0, { role: "assistant", content: "one" }, null, 1));
  upstream.write(frame(1, { role: "assistant", content: "two" }, null, RUNNING[1]));
  upstream.write(frame(0, {}, "stop", RUNNING[0]));
  let text = "";
  for await (const piece of (await replying).body ?? []) {
    text += Buffer.from(piece).toString();
    if (framesOf(text).some(({ data }) => data.includes('"stop"'))) break;
  }
  leaving.abort();
  await assertAtRest(gateway, account);
  const [line, ...more] = await usageLines(gateway, account);
  assert.deepEqual(more, []);
  assert.equal(line?.amount, BOTH_CHOICES);
});

for (const golden of usageGoldens()) {
  // What a server leaves out is estimated from the request's size, which differs from the golden's.
  if (golden.counted === "estimate") continue;
  test(`${golden.name}: the ledger has the figures of docs/usage-forms.md`, async () => {
    for (const [client, stream] of waysOf(golden)) {
      const { line } = await lineOf(golden, client, stream);
      const { input, cached_input, cache_write, cache_write_1h, output, reasoning, counted } = memoOf(line);
      assert.deepEqual({ input, cached_input, cache_write, cache_write_1h, output, reasoning }, golden.tokens);
      assert.equal(String(line.amount), golden.nano_usd, `${client}, ${stream ? "streamed" : "whole"}`);
      assert.equal(counted, "upstream");
    }
  });
}
