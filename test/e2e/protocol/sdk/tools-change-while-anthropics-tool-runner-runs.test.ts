/**
 * docs/translation-rules.md rule 33: the tool runner of Anthropic's SDK adds and removes tools between its requests, with
 * blocks in the conversation. A server of its protocol gets the blocks, others the tools that are left.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { type Json, listOf, modelOn, PROTOCOL_LIST, recordOf, seenBody, startGateway } from "../directions/rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGateway({ more: "", strict: false });
});
after(() => here.close());

/** A tool without arguments, which notes its calls. */
function toolNamed(name: string, calls: string[]) {
  return {
    name,
    description: `Does ${name}.`,
    input_schema: { type: "object" as const, properties: {} },
    parse: (input: unknown) => input as Json,
    run: () => {
      calls.push(name);
      return "Done.";
    },
  };
}

function offeredNames(body: Json): string[] {
  return listOf(body.tools).map((tool) => String((tool.function ? recordOf(tool.function) : tool).name));
}

for (const upstream of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    test(`${upstream} upstream${stream ? ", streamed" : ""}`, async () => {
      const { key } = await here.account();
      const calls: string[] = [];
      const [look, climb] = [toolNamed("look", calls), toolNamed("climb", calls)];
      here.simulator.program({ tools: [{ name: "look", arguments: {} }] });
      here.simulator.program({ tools: [{ name: "climb", arguments: {} }] });
      here.simulator.program({ text: "There is a chimney." });
      const translations: (string | null)[] = [];
      const sdk = new Anthropic({
        baseURL: here.url,
        apiKey: key,
        maxRetries: 0,
        fetch: async (...args) => {
          const reply = await fetch(...args);
          if (reply.ok) translations.push(reply.headers.get("x-tollgate-translation"));
          return reply;
        },
      });
      const runner = sdk.beta.messages.toolRunner({
        model: modelOn(upstream),
        max_tokens: 500,
        messages: [{ role: "user", content: "What is on this roof?" }],
        tools: [look],
        stream,
        betas: ["inline-tools-2026-09-15"],
      });
      let answers = 0;
      for await (const answer of runner) {
        if ("finalMessage" in answer) await answer.finalMessage();
        if (answers++ > 0) continue;
        runner.addTools(climb);
        await runner.generateToolResponse();
        runner.removeTools(look);
      }
      assert.deepEqual(calls, ["look", "climb"]);
      const [first, second, third] = here.simulator.requests.slice(-3).map(seenBody) as [Json, Json, Json];
      assert.deepEqual(offeredNames(first), ["look"]);
      if (upstream === "messages") {
        assert.deepEqual(offeredNames(third), ["look"]);
        const changes = listOf(third.messages).find(({ role }) => role === "system");
        assert.deepEqual(
          listOf(changes?.content).map(({ type }) => type),
          ["tool_addition", "tool_removal"],
        );
      } else {
        assert.deepEqual([offeredNames(second), offeredNames(third)], [["climb"], ["climb"]]);
        assert.match(JSON.stringify(third.messages ?? third.input), /"look"/, "the call stays in the history");
      }
      const header = upstream === "messages" ? null : "exact";
      assert.deepEqual(translations, [header, header, header]);
    });
  }
}
