/**
 * For every conversation that a client sends in its own protocol, the translation satisfies the upstream's strict rules
 * (calls and results paired and placed, no blank text, no unknown member), and every text and result arrives in order.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { RouteFacts } from "../../../../src/convert/exchange.ts";
import type { HubRequest, Turn } from "../../../../src/convert/hub.ts";
import { originOf, sealReasoning } from "../../../../src/convert/rules/envelope.ts";
import { settleResults } from "../../../../src/convert/rules/pairing.ts";
import { strictProblem } from "../../../../src/simulator/strict.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { REQUEST_OF, type Script, scripts, textsOf } from "./scripts.ts";
import { type Body, CONTEXT, routeTo, TRANSLATORS, upstreamBody } from "./translate.ts";

/** Reasoning of a route's server, as its clients get it. */
function sealedBy(route: RouteFacts): string {
  const native: Readonly<Record<Protocol, unknown>> = {
    chat: "thought",
    messages: { type: "thinking", thinking: "thought", signature: "s" },
    responses: { type: "reasoning", id: "rs_9", summary: [], encrypted_content: "e" },
  };
  return sealReasoning([native[route.protocol]], originOf(route), CONTEXT);
}

for (const from of PROTOCOL_NAMES) {
  for (const to of PROTOCOL_NAMES) {
    for (const midSystem of [false, true]) {
      const where = midSystem ? "system turns native" : "system turns as reminders";
      test(`${from} to ${to}, ${where}: a conversation is accepted, and nothing of it is missing`, () => {
        fc.assert(
          fc.property(scripts, (script) => {
            const route = routeTo(to, { midSystem, vision: true });
            const body = upstreamBody(from, REQUEST_OF[from](script, sealedBy(route)), route);
            assert.deepEqual(strictProblem(to, body), undefined);
            assertInOrder(body, script);
            assertResults(body, script);
          }),
          { numRuns: 200 },
        );
      });
    }
  }
}

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol} to ${protocol}: the encoded request decodes to the same meaning`, () => {
    fc.assert(
      fc.property(scripts, (script) => {
        // Messages accepts system turns in few places. Elsewhere they become text of the user
        // (docs/translation-rules.md rule 10).
        const rounds = script.rounds.map((one) => ({ ...one, note: protocol === "messages" ? undefined : one.note }));
        const route = routeTo(protocol, { midSystem: true, vision: true });
        const body = REQUEST_OF[protocol]({ ...script, rounds }, sealedBy(route));
        const again = upstreamBody(protocol, body, route);
        assert.deepEqual(meaning(protocol, again), meaning(protocol, body));
      }),
      { numRuns: 200 },
    );
  });
}

function assertInOrder(body: Body, script: Script): void {
  const text = JSON.stringify({ s: body.system, i: body.instructions, m: body.messages, p: body.input });
  let from = 0;
  for (const expected of textsOf(script)) {
    const at = text.indexOf(JSON.stringify(expected).slice(1, -1), from);
    assert.ok(at >= 0, `${expected} is missing or out of order in ${text}`);
    from = at;
  }
}

/** Every output of a tool is in the body. */
function assertResults(body: Body, script: Script): void {
  const outputs = script.rounds.flatMap((one) => one.calls.map((call) => call.output));
  const found = JSON.stringify(body.messages ?? body.input);
  for (const output of outputs) assert.ok(found.includes(JSON.stringify(output)), `${output} is missing`);
}

/** What a request means, independent of how it was written. */
function meaning(protocol: Protocol, body: Body): unknown {
  const hub = TRANSLATORS[protocol].decodeRequest(body, { model: "", stream: body.stream === true });
  assert.ok(!isRefusal(hub));
  return {
    system: hub.system.map((part) => part.text).join("\n\n"),
    turns: said(hub),
    tools: hub.tools.map((tool) => tool.type === "function" && [tool.tool.name, tool.schema]),
    limit: hub.outputLimit?.tokens,
    stream: hub.stream,
  };
}

/** The parts of all turns, without blank ones and reasoning: each result with the position of its call in place of the id. */
function said(hub: HubRequest): readonly unknown[] {
  const list: (readonly [string, unknown])[] = [];
  const order: string[] = [];
  for (const turn of settleResults(hub.turns)) {
    for (const piece of pieces(turn, order)) list.push([turn.role, piece]);
  }
  return list;
}

function pieces(turn: Turn, order: string[]): readonly unknown[] {
  if (turn.role === "tool") {
    return turn.results.map(({ callId, content }) => [order.lastIndexOf(callId), content.map(textOf)]);
  }
  const found: unknown[] = [];
  for (const part of turn.parts) {
    if (part.type === "reasoning") continue;
    if (part.type !== "tool-call") found.push(...(textOf(part).trim() === "" ? [] : [textOf(part)]));
    else {
      order.push(part.id);
      found.push([part.tool.name, JSON.parse(part.input)]);
    }
  }
  return found;
}

function textOf(part: object): string {
  return "text" in part ? String(part.text) : "";
}
