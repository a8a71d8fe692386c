/**
 * A tool loop of two turns, with pictures, parallel calls, thinking and a tool that fails, through the whole gateway:
 * the final text and the charge are the same for any two protocols, and the upstream gets back exactly what it sent.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Behavior } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { memoOf, usageLines } from "../whole/asking.ts";
import { CHIMNEY, FAILED, FOUND, type Heard, LOOPS, ROOF } from "./loop-clients.ts";
import { DIRECTIONS, type Direction, type Json, listOf, modelOn, recordOf, seenBody, startDirections } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startDirections();
});

after(() => here.close());

const THOUGHT = "I should look at the roof \u{1f3e0} and search the archive.";
const FINAL = "There is a chimney; the archive is closed.";
const CALLS = [
  { id: "toolu_01look", name: "look", input: { part: "r\u00f6\u00f6f \u2713" } },
  { id: "toolu_02search", name: "search", input: { part: "chimney" } },
];

const FIRST: Behavior = {
  text: "Let me see.",
  thinking: THOUGHT,
  tools: CALLS.map(({ id, name, input }) => ({ id, name, arguments: input })),
  interleave: true,
  usage: { input: 900, cached: 100, cacheWrite: 30, output: 400, reasoning: 150 },
};
const SECOND: Behavior = { text: FINAL, usage: { input: 1300, cached: 200, cacheWrite: 0, output: 60, reasoning: 0 } };
/**
 * The charge by hand, in nano-dollars: 900 new tokens at 1000, 100 cached at 100, 30 written at 1250, 400 out at 10000;
 * then 1300 at 1000, 200 at 100, 60 at 10000.
 */
const BILL = [900_000n + 10_000n + 37_500n + 4_000_000n, 1_300_000n + 20_000n + 600_000n];

for (const direction of DIRECTIONS) {
  for (const stream of [false, true]) {
    test(`${direction.client} client, ${direction.upstream} upstream, ${stream ? "streamed" : "whole"}`, () =>
      runLoop(direction, stream));
  }
}

async function runLoop(direction: Direction, stream: boolean): Promise<void> {
  const { client, upstream } = direction;
  const account = await here.account();
  here.simulator.program(FIRST);
  here.simulator.program(SECOND);
  const requestIds: string[] = [];
  const heard = await LOOPS[client]({
    url: here.url,
    key: account.key,
    model: modelOn(upstream),
    stream,
    async fetch(...args) {
      const reply = await fetch(...args);
      requestIds.push(reply.headers.get("x-request-id") ?? "");
      return reply;
    },
  });
  assert.deepEqual(heard, { calls: CALLS, thought: THOUGHT, finalText: FINAL } satisfies Heard);
  assert.equal(requestIds.length, 2);
  for (const id of requestIds) await here.requestEnd(id);
  const lines = await usageLines(here, account);
  assert.deepEqual(
    lines.map((line) => line.amount),
    BILL,
  );
  assert.deepEqual([...new Set(lines.map((line) => memoOf(line).counted))], ["upstream"]);
  const [first, second] = here.simulator.requests.slice(-2).map((seen) => seenBody(seen));
  assert.ok(JSON.stringify(first).includes(ROOF), "the image of the question is sent");
  PROOFS[upstream](second as Json, client);
}

/** What the second turn must contain in the upstream's own form. */
const PROOFS: Readonly<Record<Protocol, (body: Json, client: Protocol) => void>> = {
  chat(body) {
    const messages = listOf(body.messages);
    const said = messages.find((message) => message.role === "assistant");
    const calls = listOf(said?.tool_calls).map(({ id, function: called }) => {
      const { name, arguments: text } = recordOf(called);
      return { id, name, input: JSON.parse(String(text)) };
    });
    assert.deepEqual(calls, CALLS);
    assert.equal(said?.reasoning_content, THOUGHT);
    const results = messages.filter((message) => message.role === "tool");
    assert.deepEqual(
      results.map((result) => result.tool_call_id),
      CALLS.map(({ id }) => id),
    );
    assert.equal(results[1]?.content, `Error: ${FAILED}`);
    assertResultsSent(body, results);
  },
  messages(body, client) {
    const messages = listOf(body.messages);
    const said = listOf(messages.find((message) => message.role === "assistant")?.content);
    const calls = said.filter((block) => block.type === "tool_use");
    assert.deepEqual(
      calls.map(({ id, name, input }) => ({ id, name, input })),
      CALLS,
    );
    const thinking = said.filter((block) => block.type === "thinking");
    // Chat cannot carry a signature, and thinking without one is refused.
    assert.deepEqual(
      thinking.map((block) => block.thinking),
      client === "chat" ? [] : [THOUGHT],
    );
    for (const { signature } of thinking)
      assert.ok(!String(signature).startsWith("gw1."), "it is the count of the upstream");
    const results = listOf(messages.at(-1)?.content).filter((block) => block.type === "tool_result");
    assert.deepEqual(
      results.map((result) => result.tool_use_id),
      CALLS.map(({ id }) => id),
    );
    // Only the messages protocol can mark a result as failed; the others say it in the text.
    assert.equal(results[1]?.is_error === true, client === "messages");
    assertResultsSent(body, results);
  },
  responses(body, client) {
    const items = listOf(body.input);
    const calls = items.filter((item) => item.type === "function_call");
    assert.deepEqual(
      calls.map((item) => ({ id: item.call_id, name: item.name, input: JSON.parse(String(item.arguments)) })),
      CALLS,
    );
    const reasoning = items.filter((item) => item.type === "reasoning");
    assert.equal(reasoning.length, client === "chat" ? 0 : 1);
    for (const { encrypted_content: sealed } of reasoning) {
      assert.ok(typeof sealed === "string" && !sealed.startsWith("gw1."), "it is the count of the upstream");
    }
    const results = items.filter((item) => item.type === "function_call_output");
    assert.deepEqual(
      results.map((result) => result.call_id),
      CALLS.map(({ id }) => id),
    );
    assert.equal(results[1]?.output, `Error: ${FAILED}`);
    assertResultsSent(body, results);
  },
};

/** Asserts that both results are there in order, and the picture of the first somewhere. */
function assertResultsSent(body: Json, [found, failed]: readonly Json[]): void {
  assert.ok(JSON.stringify(found).includes(FOUND));
  assert.ok(JSON.stringify(failed).includes(FAILED));
  assert.ok(JSON.stringify(body).includes(CHIMNEY), "the image of the result is sent");
}
