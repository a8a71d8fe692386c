/**
 * A client that deletes or cancels its answer in the middle of the stream would make an honest server end the stream without a count,
 * and what its model has thought by then would be free (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import test from "node:test";
import { event, KEEPING, startBefore } from "../../../rig/own-upstream.ts";
import { at } from "../../protocol/stateful/rig.ts";
import { ask, errorOf } from "../../protocol/whole/asking.ts";
import { billed, pricedConfig } from "./rig.ts";

const ID = "resp_0123456789abcdef";
const MESSAGE = { type: "message", role: "assistant", content: [{ type: "output_text", text: "All that is wanted." }] };
const answer = (status: string, usage: object | null = null) => ({
  ...{ id: ID, object: "response", status, model: "responses-1", usage, output: usage ? [MESSAGE] : [] },
});
const USAGE = { input_tokens: 11, output_tokens: 4_000, total_tokens: 4_011 };

test("it is refused until the server has completed the answer, which is charged by its count", async (t) => {
  /** What the server keeps, and the stream in which it writes it. */
  let kept: object | undefined = answer("in_progress");
  let stream: ServerResponse | undefined;
  const changes: string[] = [];
  const answers: RequestListener = (request, response) => {
    request.resume();
    if (request.method === "POST" && request.url === "/v1/responses") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ type: "response.created", sequence_number: 0, response: answer("in_progress") }));
      const delta = { item_id: "msg_1", output_index: 0, content_index: 0, delta: "All that is wanted." };
      response.write(event({ type: "response.output_text.delta", sequence_number: 1, ...delta }));
      return;
    }
    const found = kept;
    if (request.method !== "GET") {
      changes.push(`${request.method} ${request.url}`);
      kept = undefined;
      stream?.destroy();
    }
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(request.method === "GET" ? (found ?? {}) : { id: ID, deleted: true }));
  };
  const here = await startBefore(t, answers, { config: (places) => pricedConfig(places, KEEPING) });
  const account = await here.account();
  const fields = { stream: true, store: undefined, max_output_tokens: 8_000 };
  const reply = await ask(here, "responses", account.key, fields);
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("wanted")) text += (await reader?.read())?.value ?? "";
  const id = /"(resp_gw1\.u\.[\w-]+)"/.exec(text)?.[1] ?? "";

  for (const [method, path] of [
    ["DELETE", id],
    ["POST", `${id}/cancel`],
  ] as const) {
    const refused = await at(here, account.key, method, path);
    assert.equal(refused.status, 400, method);
    assert.match((await errorOf(refused)).message, /still being written/);
  }
  assert.deepEqual(changes, []);

  kept = answer("completed", USAGE);
  stream?.end(event({ type: "response.completed", sequence_number: 2, response: kept }));
  while (!(await reader?.read())?.done);
  const deleted = await at(here, account.key, "DELETE", id);
  assert.deepEqual([deleted.status, ((await deleted.json()) as { id: string }).id], [200, id]);
  assert.deepEqual(changes, [`DELETE /v1/responses/${ID}`]);
  assert.equal((await at(here, account.key, "DELETE", id)).status, 404, "it is gone");
  assert.deepEqual(changes, [`DELETE /v1/responses/${ID}`]);
  const { memo } = await billed(here, account);
  assert.deepEqual([memo.counted, memo.output], ["upstream", 4_000]);
});
