/**
 * Servers answer `/cancel` with the whole response. A client can ask for that any number of times at no cost and read the answers
 * slowly, and a change that is done cannot be refused. So the room of a large response is taken before its server is asked to cancel it.
 * `DELETE` has a small answer, so an account without room can delete what is large
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test from "node:test";
import { bodyRoomBytes } from "../../../../src/overload/body-shares.ts";
import { testConfig } from "../../../rig/gateway.ts";
import { startBefore } from "../../../rig/own-upstream.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, errorOf } from "../whole/asking.ts";
import { at } from "./rig.ts";

const MEMORY_GIB = 4;
/** The share of one account. */
const SHARE = bodyRoomBytes(MEMORY_GIB * 2 ** 30, 0) / 2;
const LARGEST_BODY = 32_000_000;
const TEXT_BYTES = 200_000;
const ANSWER = JSON.stringify({
  id: "resp_0123456789abcdef",
  object: "response",
  status: "completed",
  model: "responses-1",
  usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "x".repeat(TEXT_BYTES) }] }],
});

test("a large stored response is cancelled only if its account has room for it, and deleted without", async (t) => {
  const changes: string[] = [];
  const answers: RequestListener = (request, response) => {
    request.resume();
    const { method, url = "" } = request;
    if (method === "DELETE" || url.endsWith("/cancel")) changes.push(`${method}`);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(ANSWER);
  };
  const here = await startBefore(t, answers, {
    config: (places) =>
      testConfig(places, {
        overload: { memory: `${MEMORY_GIB}GiB` },
        upstreams: { "up-responses": { stateful: true } },
      }),
  });
  const opened: RawSocket[] = [];
  t.after(() => {
    for (const client of opened) client.close();
  });
  const { key } = await here.account();
  const reply = await ask(here, "responses", key, { store: undefined });
  const { id } = (await reply.json()) as { id: string };
  const cancel = `${id}/cancel`;
  for (let times = 0; times < 2; times++) {
    const cancelled = await at(here, key, "POST", cancel);
    assert.equal(cancelled.status, 200, "what is sent takes no room any more");
    assert.ok((await cancelled.arrayBuffer()).byteLength > TEXT_BYTES);
  }
  const whole = await at(here, key, "DELETE", id);
  assert.ok((await whole.arrayBuffer()).byteLength > TEXT_BYTES, "with room, the answer of its server is passed on");
  /** A request that announces a body and does not send it. */
  const announces = async (bytes: number) => {
    const client = new RawSocket({ port: here.port });
    opened.push(client);
    const head = ["POST /v1/responses HTTP/1.1", "Host: gateway.test", `Authorization: Bearer ${key}`];
    const body = ["Content-Type: application/json", `Content-Length: ${bytes}`, "Expect: 100-continue"];
    client.send([...head, ...body, "\r\n"].join("\r\n"));
    await client.until((text) => text.startsWith("HTTP/1.1 100 "));
  };
  for (let rest = SHARE - TEXT_BYTES / 2; rest > 0; rest -= LARGEST_BODY) await announces(Math.min(rest, LARGEST_BODY));
  const sent = changes.length;
  const refused = await at(here, key, "POST", cancel);
  assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "concurrency"]);
  assert.equal(changes.length, sent, "its server is not asked to cancel it");
  const deleted = await at(here, key, "DELETE", id);
  assert.equal(deleted.status, 200);
  assert.deepEqual(
    await deleted.json(),
    { id, object: "response", deleted: true },
    "not the large answer of this server",
  );
  assert.deepEqual(changes.slice(sent), ["DELETE"]);
});
