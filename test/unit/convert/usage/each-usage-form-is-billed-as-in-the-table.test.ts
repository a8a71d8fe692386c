/**
 * Each row of docs/usage-forms.md, whole and streamed, to a client of each protocol: the tokens that are billed, their
 * price, and the usage that the client gets.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readWholeUsage as readChat } from "../../../../src/convert/chat/usage.ts";
import type { AttemptCounts } from "../../../../src/convert/exchange.ts";
import { readUsage as readMessages } from "../../../../src/convert/messages/usage.ts";
import { readUsage as readResponses } from "../../../../src/convert/responses/usage.ts";
import { meter } from "../../../../src/settle/meter.ts";
import { charge, MULTIPLIER_ONE } from "../../../../src/values/price.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import type { Usage } from "../../../../src/values/tokens/usage.ts";
import { priceOf } from "../../values/prices.ts";
import { framesOf } from "../translate/rig.ts";
import { INPUT_ESTIMATE, streamedReply, type UsageGolden, usageGoldens, wholeReply } from "./usage-goldens.ts";

const PRICE = priceOf("3 0.3 3.75 6 15");
/** Evidence for a model that shows all of its output. */
const EVIDENCE = {
  ...{ input: INPUT_ESTIMATE, visibleFactor: 1, byEvent: false, hiddenPerS: 0, outputMost: 100_000 },
  ...{ contextTokens: 200_000, unseenCalls: {} },
};

/** Compares what a reply is billed for with the golden. */
function assertBilled(golden: UsageGolden, counts: AttemptCounts): Usage {
  const { usage, counted } = meter({ ...counts, silentMs: 0 }, EVIDENCE);
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, toolCalls } = usage;
  const tokens = { input, cached_input: cachedInput, cache_write: cacheWrite, cache_write_1h: cacheWrite1h };
  assert.deepEqual({ ...tokens, output, reasoning }, golden.tokens);
  assert.equal(counted, golden.counted);
  assert.deepEqual({ ...toolCalls }, golden.tool_calls ?? {});
  assert.equal(String(charge(PRICE, MULTIPLIER_ONE, { ...usage, toolCalls: {} }).amount), golden.nano_usd);
  return usage;
}

/** Reads the usage that a client of another protocol gets with that protocol's own reader. */
function assertReported(told: Usage | undefined, billed: Usage): void {
  const sums = ({ input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning }: Usage) => {
    return { input, cachedInput, written: cacheWrite + cacheWrite1h, output, reasoning };
  };
  assert.ok(told, "the client receives the usage");
  assert.deepEqual(sums(told), sums(billed));
}

const READ: Readonly<Record<Protocol, (reply: Record<string, unknown>) => Usage | undefined>> = {
  chat: readChat,
  messages: ({ usage }) => readMessages(usage),
  responses: (reply) => readResponses(reply),
};

/** The usage in the last frame of the client's stream that has one. */
function lastUsage(client: Protocol, text: string): Usage | undefined {
  const told = framesOf(text).flatMap(({ data }) => {
    const reply = client === "responses" ? data.response : data;
    return (typeof reply === "object" && reply !== null && READ[client](reply as Record<string, unknown>)) || [];
  });
  return told.at(-1);
}

for (const golden of usageGoldens()) {
  for (const client of PROTOCOL_NAMES) {
    // Only chat has several choices.
    if (golden.n !== undefined && client !== "chat") continue;
    const other = client !== golden.protocol;
    if (golden.whole) {
      test(`${golden.name}, whole, is billed as in the table to a ${client} client`, () => {
        const { counts, json } = wholeReply(golden, client);
        const billed = assertBilled(golden, counts);
        if (other) assertReported(READ[client](json), billed);
      });
    }
    if (golden.stream) {
      test(`${golden.name}, streamed, is billed as in the table to a ${client} client`, () => {
        for (const chunkBytes of [1, 100_000]) {
          const { counts, text, ended } = streamedReply(golden, client, chunkBytes);
          assert.ok(ended);
          const billed = assertBilled(golden, counts);
          if (other) assertReported(lastUsage(client, text), billed);
        }
      });
    }
  }
}
