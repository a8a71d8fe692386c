/**
 * `tollgate_kept_answer_questions_total` says what the servers tell about the answers that they keep, so that an operator sees which
 * streams are charged without their word (docs/metrics.md).
 */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test from "node:test";
import { settledMetrics } from "../../../rig/gateway.ts";
import { event, KEEPING, startBefore } from "../../../rig/own-upstream.ts";
import { ask, assertAtRest } from "../../protocol/whole/asking.ts";
import { pricedConfig } from "./rig.ts";

const RESPONSE = { id: "resp_0123456789abcdef", object: "response", model: "responses-1", output: [], usage: null };
const CREATED = { type: "response.created", sequence_number: 0, response: { ...RESPONSE, status: "in_progress" } };
const USAGE = { input_tokens: 11, output_tokens: 40, total_tokens: 51 };

test("each question is counted once, by its outcome and upstream", async (t) => {
  /** What the server says, in order: an answer, or a status. */
  const told = [{ status: "completed", usage: USAGE }, { status: "in_progress" }, { status: "in_progress" }, 404, 400];
  const answers: RequestListener = (request, response) => {
    request.resume();
    if (request.method === "POST") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(CREATED), () => response.destroy());
      return;
    }
    const next = told.shift();
    response.writeHead(typeof next === "number" ? next : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(typeof next === "number" ? {} : { ...RESPONSE, ...next }));
  };
  const here = await startBefore(t, answers, { config: (places) => pricedConfig(places, KEEPING) });
  const account = await here.account();
  while (told.length > 0) {
    const reply = await ask(here, "responses", account.key, { stream: true, store: undefined });
    assert.match(await reply.text(), /response\.failed/);
  }
  await assertAtRest(here, account);
  const page = await settledMetrics(here.adminUrl);
  const found = page.matchAll(
    /^tollgate_kept_answer_questions_total\{upstream="up-responses",outcome="(\w+)"\} (\d+)$/gm,
  );
  assert.deepEqual(Object.fromEntries([...found].map(([, outcome, count]) => [outcome, Number(count)])), {
    ...{ ended: 1, running: 2, none: 1, unknown: 1 },
  });
});
