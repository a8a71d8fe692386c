/**
 * Before a stored response is deleted, its server is asked whether it is still being written
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). One that is too large to be read may still be written, and is not deleted; a
 * server that does not know it, or has no such endpoint, is asked nothing more.
 */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test from "node:test";
import { WHOLE_BYTES_MAX } from "../../../../src/dispatch/attempt.ts";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask } from "../whole/asking.ts";
import { at } from "./rig.ts";

const ID = "resp_0123456789abcdef";
const USAGE = { input_tokens: 11, output_tokens: 4, total_tokens: 15 };
const MESSAGE = { type: "message", role: "assistant", content: [{ type: "output_text", text: "said" }] };
const ANSWER = {
  id: ID,
  object: "response",
  status: "completed",
  model: "responses-1",
  usage: USAGE,
  output: [MESSAGE],
};

for (const [title, found, body, status, seen] of [
  ["one that is too large to be read is not deleted", 200, `"${"x".repeat(WHOLE_BYTES_MAX)}"`, 400, ["GET"]],
  ["one that its server does not know is not there", 404, "{}", 404, ["GET"]],
  ["one of a server that has no such endpoint is not there", 405, "{}", 404, ["GET"]],
] as const) {
  test(title, async (t) => {
    const asked: (string | undefined)[] = [];
    const answers: RequestListener = (request, response) => {
      request.resume();
      const { method } = request;
      if (method !== "POST") asked.push(method);
      response.writeHead(method === "GET" ? found : 200, { "content-type": "application/json" });
      if (method === "GET") response.end(body);
      else response.end(JSON.stringify(method === "POST" ? ANSWER : { id: ID, object: "response", deleted: true }));
    };
    const here = await startBefore(t, answers);
    const account = await here.account();
    const reply = await ask(here, "responses", account.key, { store: undefined });
    const { id } = (await reply.json()) as { id: string };
    const deleted = await at(here, account.key, "DELETE", id);
    assert.equal(deleted.status, status, await deleted.text());
    assert.deepEqual(asked, seen);
  });
}
