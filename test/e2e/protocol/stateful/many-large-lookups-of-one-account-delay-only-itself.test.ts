/**
 * Four stored responses of an upstream are read at once for clients, and the others wait (ARCHITECTURE.md promise 13). An account that
 * asks for many large ones must not keep another account waiting until its time is over.
 */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { RequestListener, ServerResponse } from "node:http";
import test from "node:test";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask } from "../whole/asking.ts";
import { at } from "./rig.ts";

const LOOKUPS = 12;
const READ_AT_ONCE = 4;
/** Too large to arrive together with its head. */
const LARGE = JSON.stringify({ object: "response", status: "completed", text: "x".repeat(8 * 1024 * 1024) });

test("an account's stored response is read in its turn, however many another account asks for", async (t) => {
  const slow: ServerResponse[] = [];
  const begun = new EventEmitter();
  let made = 0;
  const answers: RequestListener = (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/json" });
    if (request.method === "POST") {
      const usage = { input_tokens: 11, output_tokens: 4, total_tokens: 15 };
      const content = [{ type: "output_text", text: "said" }];
      const output = [{ type: "message", role: "assistant", content }];
      const id = `resp_${String(++made).padStart(16, "0")}`;
      response.end(
        JSON.stringify({ id, object: "response", status: "completed", model: "responses-1", usage, output }),
      );
    } else if (request.url?.endsWith("input_items")) response.end("{}");
    else if (!request.url?.endsWith("1"))
      response.write(LARGE.slice(0, 9), () => {
        begun.emit("large");
        response.end(LARGE.slice(9));
      });
    else response.write('{"text":"', () => begun.emit("one", slow.push(response)));
  };
  const here = await startBefore(t, answers);
  const [busy, calm] = [await here.account(), await here.account()];
  const idOf = async (key: string) => {
    const reply = await ask(here, "responses", key, { store: undefined });
    return ((await reply.json()) as { id: string }).id;
  };
  const [asked, other] = [await idOf(busy.key), await idOf(calm.key)];
  const lookups: Promise<Response>[] = [];
  /** A small answer is read at once: after it, the gateway has the heads of the answers before it. */
  const headsAreRead = async () => assert.equal((await at(here, calm.key, "GET", `${other}/input_items`)).status, 200);
  /** The busy account asks until it has asked so often. */
  const asks = async (times: number) => {
    while (lookups.length < times) lookups.push(at(here, busy.key, "GET", asked));
    while (slow.length < times) await once(begun, "one");
    await headsAreRead();
  };
  await asks(READ_AT_ONCE);
  await asks(LOOKUPS);
  const large = once(begun, "large");
  const wanted = at(here, calm.key, "GET", other);
  await large;
  await headsAreRead();
  // The first turn that becomes free may be the busy account's, the second is not.
  for (const response of slow.slice(0, READ_AT_ONCE)) response.end('"}');
  const reply = await wanted;
  assert.equal(reply.status, 200);
  assert.ok((await reply.arrayBuffer()).byteLength >= LARGE.length);
  for (const response of slow.slice(READ_AT_ONCE)) response.end('"}');
  for (const lookup of lookups) assert.equal((await lookup).status, 200);
});
