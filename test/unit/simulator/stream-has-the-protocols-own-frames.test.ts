import assert from "node:assert/strict";
import test from "node:test";
import type { Behavior } from "../../../src/simulator/server.ts";
import { post, streamText, withSimulator } from "./clients.ts";

const RICH: Behavior = { text: "some text", thinking: "hm", tools: [{ name: "f" }], pings: 3 };

interface Event {
  readonly type: string;
  readonly sequence_number?: number;
}

function framesOf(text: string): string[] {
  return text.split("\n\n").filter((frame) => frame !== "");
}

test("responses: sequence numbers count from 0 without a gap, including heartbeats, and event names equal types", () =>
  withSimulator(async (simulator) => {
    const frames = framesOf(await streamText(simulator, "responses", RICH));
    const events = frames.map((frame) => JSON.parse(frame.replace(/^event: .*\ndata: /, "")) as Event);
    assert.deepEqual(
      events.map((event) => event.sequence_number),
      events.map((_, i) => i),
    );
    assert.ok(events.some(({ type }) => type === "keepalive"));
    for (const [i, { type }] of events.entries()) assert.ok(frames[i]?.startsWith(`event: ${type}\n`));
    assert.deepEqual([events[0]?.type, events.at(-1)?.type], ["response.created", "response.completed"]);
  }));

test("messages: event names equal types, blocks do not overlap, and pings may come anywhere", () =>
  withSimulator(async (simulator) => {
    const frames = framesOf(await streamText(simulator, "messages", RICH));
    let open: number | undefined;
    let blocks = 0;
    for (const frame of frames) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? [];
      const event = JSON.parse(String(data)) as Event & { index: number };
      assert.equal(event.type, name);
      if (event.type === "content_block_start") {
        assert.deepEqual([open, event.index], [undefined, blocks++]);
        open = event.index;
      }
      if (event.type === "content_block_delta") assert.equal(event.index, open);
      if (event.type === "content_block_stop") open = undefined;
    }
    assert.equal(blocks, 3);
    assert.match(frames.join("\n"), /event: ping/);
    assert.match(String(frames.at(-1)), /message_stop/);
  }));

test("chat: on request, usage comes after the end of the choice and before [DONE]", () =>
  withSimulator(async (simulator) => {
    simulator.program(RICH, { times: 2 });
    const asked = await post(simulator, "chat", { stream: true, stream_options: { include_usage: true } });
    const frames = framesOf(await asked.text()).filter((frame) => frame.startsWith("data: "));
    assert.equal(frames.at(-1), "data: [DONE]");
    assert.match(String(frames.at(-2)), /"choices":\[\],"usage":\{/);
    assert.match(String(frames.at(-3)), /"delta":\{\}.*"finish_reason":"tool_calls".*"usage":null/);
    assert.match(String(frames[0]), /"role":"assistant"/);
    const plain = await (await post(simulator, "chat", { stream: true })).text();
    assert.doesNotMatch(plain, /"usage"/);
    assert.match(plain, /^: ping$/m);
  }));
