/**
 * docs/translation-rules.md rule 43: whatever a server calls the end of its reply, the client reads truncation,
 * refusal, failure or a normal end in its own protocol's terms, in all nine directions, whole and streamed.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { framesOf, usageLines } from "../whole/asking.ts";
import { askFor, DIRECTIONS, type Json, listOf, post, recordOf, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

after(() => here.close());

/** An unknown stop reason passes unchanged to a client of the same protocol, which may know it. */
const NEW = "a word of tomorrow";

/** What servers send. Responses servers name a reason only if an answer is incomplete. */
const WORDS = {
  truncated: ["MAX_TOKENS", "FinishReason.MAX_TOKENS", "max_new_tokens", "stop: MAX_TOKENS"],
  refused: ["SAFETY", "content_filter: SAFETY", "FINISH_REASON_PROHIBITED_CONTENT", "guardrail_intervened"],
  failed: ["abort", "function_call_filter: MALFORMED_FUNCTION_CALL", "ERROR_TIMEOUT"],
  ended: ["STOP", "eos", NEW],
} as const;

type End = keyof typeof WORDS;

const READ_AS: Readonly<Record<Protocol, Readonly<Record<Exclude<End, "failed">, string>>>> = {
  chat: { truncated: "length", refused: "content_filter", ended: "stop" },
  messages: { truncated: "max_tokens", refused: "refusal", ended: "end_turn" },
  responses: { truncated: "max_output_tokens", refused: "content_filter", ended: "completed" },
};

const WHY: Readonly<Record<Protocol, (reply: Json) => unknown>> = {
  chat: ({ choices }) => listOf(choices)[0]?.finish_reason,
  messages: (reply) => reply.stop_reason,
  responses: ({ status, incomplete_details: why }) => (status === "incomplete" ? recordOf(why).reason : status),
};

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;
  for (const [end, words] of Object.entries(WORDS) as [End, readonly string[]][]) {
    // A responses server's unknown reason for an incomplete answer passes unchanged.
    if (upstream === "responses" && end === "ended") continue;
    test(`${client} client, ${upstream} upstream: a reply that counts as ${end}`, async () => {
      for (const stop of words) {
        for (const stream of [false, true]) {
          const account = await here.account();
          // A whole answer that failed is requested again.
          here.simulator.program({ text: "a few words", stop }, { times: Number.POSITIVE_INFINITY });
          const answer = await post(here, client, account.key, askFor(direction, { stream }));
          const text = await answer.text();
          const said = `${stop}, ${stream ? "streamed" : "whole"}: ${text}`;
          if (end === "failed") assert.ok(hasFailed(answer.status, text, client, stream), said);
          else
            assert.equal(
              whyEnded(text, client, stream),
              client === upstream && stop === NEW ? stop : READ_AS[client][end],
              said,
            );
          await here.requestEnd(answer.headers.get("x-request-id") ?? "");
          for (const { memo } of await usageLines(here, account)) {
            const { ended } = JSON.parse(memo) as Json;
            assert.equal(ended === "complete", end !== "failed", `${said}: the ledger has ${ended}`);
          }
          here.simulator.clearPrograms();
        }
      }
    });
  }
}

function whyEnded(text: string, client: Protocol, stream: boolean): unknown {
  if (!stream) return WHY[client](JSON.parse(text) as Json);
  const events = eventsOf(text);
  if (client === "responses") return WHY.responses(recordOf(events.at(-1)?.response));
  if (client === "messages") return recordOf(events.at(-2)?.delta).stop_reason;
  const reasons = events.flatMap(({ choices }) => listOf(choices).flatMap((choice) => choice.finish_reason ?? []));
  assert.equal(reasons.length, 1);
  return reasons[0];
}

/** Asserts that nothing reads as success, and that an error of the protocol is at the end. */
function hasFailed(status: number, text: string, client: Protocol, stream: boolean): boolean {
  if (!stream) return status === 403;
  const last = eventsOf(text).at(-1);
  const success = { chat: "[DONE]", messages: "message_stop", responses: "response.completed" }[client];
  return !text.includes(success) && (last?.error !== undefined || last?.type === "response.failed");
}

function eventsOf(text: string): Json[] {
  return framesOf(text)
    .filter(({ data }) => data !== "" && data !== "[DONE]")
    .map(({ data }) => JSON.parse(data) as Json);
}
