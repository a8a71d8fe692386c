/**
 * docs/vendor-dialects.md: what vendors' servers really send, through a whole gateway to a client of each protocol,
 * judged by the official SDK of the client's protocol, whole and streamed.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { askFor, type Json, modelLine, modelOn, PROTOCOL_LIST, post, startGateway } from "../directions/rig.ts";
import { type Heard, hear, payloads } from "./clients.ts";
import { type Dialect, dialects, isRefused } from "./goldens.ts";

let here: GatewayHere;

/** Models whose server is configured for its dialect. */
const MODELS = [
  modelLine("tags", "{upstream: up-chat}", "{thinking_in_text: tags}"),
  modelLine("unopened", "{upstream: up-chat}", "{thinking_in_text: unopened}"),
];

before(async () => {
  here = await startGateway({ more: MODELS.join("\n"), strict: false });
});

afterEach(() => here.simulator.clearPrograms());

after(() => here.close());

/** The simulated server's behavior: the golden's answer, byte for byte where the golden has bytes. */
function behaviorOf({ status, whole, frames, stream, content_type }: Dialect, streamed: boolean): Behavior {
  if (status !== undefined)
    return { fault: { status, body: whole ?? "", headers: { "content-type": "application/json" } } };
  if (streamed && stream !== undefined) {
    return { fault: { status: 200, body: stream, headers: { "content-type": content_type ?? "text/event-stream" } } };
  }
  return { body: whole, ...(frames && { frames }) };
}

/** A refusal's text must only contain these words, because the gateway adds more. */
function assertHeard(heard: Heard, golden: Dialect, client: Protocol): void {
  const { expect, own } = golden;
  if (!isRefused(expect)) {
    const different = client === golden.protocol && own !== "as sent" ? own : {};
    const expected = { ...expect, ...different };
    assert.deepEqual(
      heard,
      expected.usage === null ? { ...expected, usage: (heard as typeof expect).usage } : expected,
    );
    return;
  }
  if (!isRefused(heard)) assert.fail(`no refusal: ${JSON.stringify(heard)}`);
  const { words, ...told } = expect.error;
  const isUnnamed = client === "messages" && told.means === "content_policy_violation";
  const error = isUnnamed ? { ...told, means: "upstream_rejected" } : told;
  const { words: said, ...rest } = heard.error;
  assert.deepEqual(rest, error, said);
  assert.ok(said.includes(words), said);
}

/** What a client of the server's own protocol must get if nothing is added or left out. */
function plainly(client: Protocol, stream: boolean): Json {
  if (client === "chat" && stream) return { stream, stream_options: { include_usage: true } };
  return client === "responses" ? { stream, store: false } : { stream };
}

/** A golden's whole body, or its frames as a stream. */
function sentBy({ whole, frames = [] }: Dialect, stream: boolean): string {
  if (!stream) return JSON.stringify(whole);
  return frames.map(({ data }) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}`).join("\n");
}

/** The ways in which a golden's server answers. */
function* ways(golden: Dialect): Generator<boolean> {
  if (golden.whole !== undefined || golden.status !== undefined) yield false;
  if (golden.frames !== undefined || golden.stream !== undefined || golden.status !== undefined) yield true;
}

for (const golden of dialects()) {
  const model = golden.model ?? modelOn(golden.protocol);
  for (const client of PROTOCOL_LIST) {
    for (const stream of ways(golden)) {
      test(`${golden.name}: ${client} client, ${stream ? "streamed" : "whole"}`, async () => {
        const { key } = await here.account();
        // A refused request may be tried at another upstream.
        here.simulator.program(behaviorOf(golden, stream), { times: Number.POSITIVE_INFINITY });
        if (client === golden.protocol && golden.own === "as sent") {
          const answer = await post(here, client, key, {
            ...askFor({ client, upstream: client }, plainly(client, stream)),
            model,
          });
          assert.deepEqual(payloads(await answer.text(), stream), payloads(sentBy(golden, stream), stream));
          return;
        }
        assertHeard(await hear(client, { url: here.url, key, model, stream }), golden, client);
      });
    }
  }
}
