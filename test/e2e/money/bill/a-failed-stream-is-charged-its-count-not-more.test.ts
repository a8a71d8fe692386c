/**
 * ARCHITECTURE.md promise 3: if the upstream ends a stream as failed and sends a final count, the client is charged
 * that count and not a higher estimate, in all nine directions. It is never charged more than its hold; the rest is
 * absorbed.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { formatUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { assertAtRest, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { asked, billed, DIRECTIONS, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

type Frame = { readonly data: unknown; readonly event?: string };
const frame = (payload: Fields): Frame => ({
  data: payload,
  ...(typeof payload.type === "string" ? { event: payload.type } : {}),
});

/** The estimate for this text is about 4 times the tokens that the upstream counts. */
const DENSE = "नमस्ते दुनिया यह एक परीक्षण है ".repeat(20);
const CHAT_USAGE = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };
const USAGE = { input_tokens: 1_000, output_tokens: 100 };
const ERROR = { code: "server_error", message: "The model broke off." };

const chunk = (members: Fields) =>
  frame({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], ...members });
const choice = (delta: object, finish: string | null = null) => [{ index: 0, delta, finish_reason: finish }];
const said = chunk({ choices: choice({ role: "assistant", content: DENSE }) });
const done = { data: "[DONE]" };

const message = { type: "message", id: "msg_1", role: "assistant", model: "m", content: [], stop_reason: null };
const begun = [
  frame({ type: "message_start", message: { ...message, usage: { input_tokens: 1_000, output_tokens: 1 } } }),
  frame({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  frame({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: DENSE } }),
];

const response = (status: string, members: object) => ({
  response: { id: "resp_1", object: "response", created_at: 1, model: "m", status, output: [], ...members },
});
const item = { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] };
const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
const opened = [
  frame({ type: "response.created", sequence_number: 0, ...response("in_progress", { usage: null }) }),
  frame({ type: "response.output_item.added", sequence_number: 1, output_index: 0, item }),
  frame({ type: "response.output_text.delta", sequence_number: 2, ...place, delta: DENSE }),
];
const responseUsage = { ...USAGE, total_tokens: 1_100 };

/** Ends of failed streams, with the count in each of the places where servers put it. */
const ENDS: Readonly<Record<Protocol, Readonly<Record<string, readonly Frame[]>>>> = {
  chat: {
    "a stop reason for the failure, then the count": [
      said,
      chunk({ choices: choice({}, "abort") }),
      chunk({ usage: CHAT_USAGE }),
      done,
    ],
    "a stop reason and the count in one chunk": [
      said,
      chunk({ choices: choice({}, "abort"), usage: CHAT_USAGE }),
      done,
    ],
    "no marker": [said, chunk({ choices: choice({}, "abort") }), chunk({ usage: CHAT_USAGE })],
    "an error": [said, chunk({ error: ERROR, usage: CHAT_USAGE })],
  },
  messages: {
    "a word for the failure": [
      ...begun,
      frame({ type: "message_delta", delta: { stop_reason: "error" }, usage: USAGE }),
      frame({ type: "message_stop" }),
    ],
    "an error": [...begun, frame({ type: "error", error: { type: "api_error", message: "" }, usage: USAGE })],
  },
  responses: {
    "a failed response": [
      ...opened,
      frame({
        type: "response.failed",
        sequence_number: 3,
        ...response("failed", { error: ERROR, usage: responseUsage }),
      }),
    ],
    "a word for the failure": [
      ...opened,
      frame({
        type: "response.incomplete",
        sequence_number: 3,
        ...response("incomplete", { incomplete_details: { reason: "error" }, usage: responseUsage }),
      }),
    ],
    "an error": [...opened, frame({ type: "error", ...ERROR, sequence_number: 3, usage: responseUsage })],
  },
};

for (const [client, upstream] of DIRECTIONS) {
  for (const [what, frames] of Object.entries(ENDS[upstream])) {
    test(`${client} on ${upstream}: ${what}: the count is charged although the text is estimated higher`, async () => {
      const account = await here.account();
      here.simulator.program({ frames });
      const { text } = await asked(here, client, account, limited(client, upstream, 8_000, { stream: true }));
      assert.match(text, /error/);
      const { usd, memo } = await billed(here, account);
      assert.deepEqual(
        [usd, memo.input, memo.output, memo.counted, memo.final],
        ["0.0045", 1_000, 100, "upstream", true],
      );
    });
  }
}

test("a count sent before the failure is not final: the text after it is estimated", async () => {
  const account = await here.account();
  const early = chunk({ choices: choice({ role: "assistant", content: "Hello" }), usage: CHAT_USAGE });
  here.simulator.program({ frames: [early, said, chunk({ error: ERROR })] });
  await asked(here, "chat", account, limited("chat", "chat", 8_000, { stream: true }));
  const { memo } = await billed(here, account);
  assert.equal(memo.counted, "estimate");
  assert.ok(Number(memo.output) > 100, String(memo.output));
});

for (const [upstream, ends] of Object.entries(ENDS)) {
  test(`${upstream}: if a failed stream counts more than the hold, the client is charged the hold and the rest is absorbed`, async () => {
    for (const frames of Object.values(ends)) {
      const account = await here.account();
      here.simulator.program({ frames });
      await asked(here, "chat", account, limited("chat", upstream as Protocol, 50, { stream: true }));
      await assertAtRest(here, account);
      const [charge, rest, ...more] = await usageLines(here, account);
      assert.ok(charge && rest);
      assert.deepEqual(
        [charge.kind, rest.kind, rest.debit, more.length],
        ["usage", "absorbed", "absorbed:cut_over_hold", 0],
      );
      assert.equal(String(charge.amount), memoOf(charge).hold);
      assert.equal(formatUsd((charge.amount + rest.amount) as typeof charge.amount), "0.0045");
    }
  });
}
