/** The official SDKs' own accumulators must rebuild from each translated recording what the upstream has sent. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type Rebuilt, rebuild } from "./replay.ts";
import { behaviorOf, recordings } from "./stream-cases.ts";

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
    const behavior = behaviorOf(name, upstream);
    assert(behavior, `${name} has no behavior`);
    const stream = readFileSync(expected, "utf8");
    const { errorEventAfter, endAfterEvents, noTerminal } = behavior.fault ?? {};
    // Responses has its stop reason only in its last event, so it is unknown without that event.
    const fails = errorEventAfter || endAfterEvents || (noTerminal && upstream === "responses");
    test(`${name}, from ${upstream} to ${client}: ${fails ? "the SDK throws" : "the SDK rebuilds the reply"}`, async () => {
      if (fails) {
        await assert.rejects(rebuild(client, stream), /forbidden/);
        return;
      }
      const rebuilt = await rebuild(client, stream);
      const said = whatWasSaid(name, behavior, upstream, client);
      assert.deepEqual({ ...rebuilt, tokens: undefined, calls: readable(rebuilt.calls) }, said);
      const { usage } = behavior;
      if (usage?.input !== undefined) assert.deepEqual(rebuilt.tokens, [105, 20]);
    });
  }
}

/** The reply of the behavior, as far as the client's protocol can express it. */
function whatWasSaid(name: string, behavior: Behavior, upstream: Protocol, client: Protocol) {
  const { text = "", texts = [text], thinking = "", refusal = "", tools = [] } = behavior;
  const emulated = upstream === "responses" && client !== "responses" && name === "stop-string";
  const kind = emulated ? "stopped" : stopKind(behavior, upstream, client);
  // Message items of responses are separate messages: in one string they are separated by a blank line.
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
        // The SDK turns arguments that are cut off into an empty object.
        if (client === "messages" && behavior.stop === "length") return { name: tool, input: "" };
        return { name: tool, input: isFree ? String(wrapped ?? input) : asJson(tool, input) };
      }),
    ),
    stop: STOPS[client][kind],
    tokens: undefined,
  };
}

function stopKind(behavior: Behavior, upstream: Protocol, client: Protocol): keyof (typeof STOPS)["chat"] {
  if (behavior.stop === "length") return "length";
  // Only messages has a stop reason for the model's refusal. The others send the refusal and end.
  if (behavior.refusal) return upstream === "messages" || client === "messages" ? "refusal" : "end";
  return behavior.tools ? "tools" : "end";
}

function asJson(tool: string, input: unknown): string {
  // Free text for a tool that the client offered as a function is kept under the name for invalid arguments.
  if (tool === "apply_patch" && typeof input === "string") return JSON.stringify({ _raw_arguments: input });
  return typeof input === "string" ? input : JSON.stringify(input);
}

/** Arguments as values, because the spacing of JSON does not matter. Broken ones stay text; none become an object. */
function readable(calls: Rebuilt["calls"]) {
  return calls.map(({ name, input }) => {
    try {
      return { name, input: JSON.parse(input === "" ? "{}" : input) };
    } catch {
      return { name, input };
    }
  });
}
