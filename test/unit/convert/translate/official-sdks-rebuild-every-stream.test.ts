/** The official SDKs' own accumulators are the judges: each translated recording must come out as the upstream said it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import type { Behaviour } from "../../../../src/simulator/behaviour.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type Rebuilt, rebuild } from "./replay.ts";
import { behaviourOf, recordings } from "./stream-cases.ts";

const STOPS: Readonly<Record<Protocol, Readonly<Record<"end" | "tools" | "length" | "refusal" | "stopped", string>>>> =
  {
    chat: { end: "stop", tools: "tool_calls", length: "length", refusal: "content_filter", stopped: "stop" },
    messages: {
      end: "end_turn",
      tools: "tool_use",
      length: "max_tokens",
      refusal: "refusal",
      stopped: "stop_sequence",
    },
    responses: {
      end: "completed",
      tools: "completed",
      length: "max_output_tokens",
      refusal: "content_filter",
      stopped: "completed",
    },
  };

for (const upstream of PROTOCOL_NAMES) {
  for (const { name, client, expected } of recordings(upstream)) {
    const behaviour = behaviourOf(name, upstream);
    assert(behaviour, `${name} has no behaviour`);
    const stream = readFileSync(expected, "utf8");
    const { errorEventAfter, endAfterEvents, noTerminal } = behaviour.fault ?? {};
    // Responses says why it stopped in its last event only, so that without it nobody knows.
    const fails = errorEventAfter || endAfterEvents || (noTerminal && upstream === "responses");
    test(`${name}, from ${upstream} to ${client}`, async () => {
      if (fails) {
        await assert.rejects(rebuild(client, stream), /forbidden/);
        return;
      }
      const rebuilt = await rebuild(client, stream);
      const said = whatWasSaid(name, behaviour, upstream, client);
      assert.deepEqual({ ...rebuilt, tokens: undefined, calls: readable(rebuilt.calls) }, said);
      const { usage } = behaviour;
      if (usage?.input !== undefined) assert.deepEqual(rebuilt.tokens, [105, 20]);
    });
  }
}

/** What the behaviour says, as far as the client's protocol can tell it. */
function whatWasSaid(name: string, behaviour: Behaviour, upstream: Protocol, client: Protocol) {
  const { text = "", texts = [text], thinking = "", refusal = "", tools = [] } = behaviour;
  const emulated = upstream === "responses" && client !== "responses" && name === "stop-string";
  const kind = emulated ? "stopped" : stopKind(behaviour, upstream, client);
  // Message items of responses are messages: one string of them all has a blank line between.
  const joined = texts.join(upstream === "responses" && client === "chat" ? "\n\n" : "");
  const words = emulated ? "yes" : joined;
  return {
    text: client === "messages" ? words + refusal : words,
    reasoning: thinking,
    refusal,
    calls: readable(
      tools.map(({ name: tool, arguments: input }) => {
        const wrapped = (input as { input?: string }).input;
        const isFree = client !== "messages" && tool === "apply_patch";
        // The SDK makes an empty object of arguments that are cut off.
        if (client === "messages" && behaviour.stop === "length") return { name: tool, input: "" };
        return { name: tool, input: isFree ? String(wrapped ?? input) : asJson(tool, input) };
      }),
    ),
    stop: STOPS[client][kind],
    tokens: undefined,
  };
}

function stopKind(behaviour: Behaviour, upstream: Protocol, client: Protocol): keyof (typeof STOPS)["chat"] {
  if (behaviour.stop === "length") return "length";
  // Only messages has a stop reason of its own for the model's refusal; the others say it and end.
  if (behaviour.refusal) return upstream === "messages" || client === "messages" ? "refusal" : "end";
  return behaviour.tools ? "tools" : "end";
}

function asJson(tool: string, input: unknown): string {
  // Free text where the client offered a function: kept, under the name for what is no arguments.
  if (tool === "apply_patch" && typeof input === "string") return JSON.stringify({ _raw_arguments: input });
  return typeof input === "string" ? input : JSON.stringify(input);
}

/** Arguments as values: how JSON is spaced is nobody's business. Broken ones stay text; nothing at all is an object. */
function readable(calls: Rebuilt["calls"]) {
  return calls.map(({ name, input }) => {
    try {
      return { name, input: JSON.parse(input === "" ? "{}" : input) };
    } catch {
      return { name, input };
    }
  });
}
