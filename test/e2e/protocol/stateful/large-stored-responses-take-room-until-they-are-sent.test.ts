/**
 * A client can ask for a stored response any number of times at no cost, and read the answer slowly. So a large one takes the room of
 * large bodies until it is sent, and one account leaves room for the others (docs/overload.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { bodyRoomBytes } from "../../../../src/overload/body-shares.ts";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, errorOf } from "../whole/asking.ts";
import { at } from "./rig.ts";

const MEMORY_GIB = 4;
/** The share of one account. */
const SHARE = bodyRoomBytes(MEMORY_GIB * 2 ** 30, 0) / 2;
const LARGEST_BODY = 32_000_000;
/** Less than twice a large answer. */
const REST = 200_000;

test("a large stored response is refused to an account that has taken its share, and takes room until it is sent", async (t) => {
  const here = await startGatewayHere({
    simulator: { stateful: true, uniqueIds: true },
    config: (places) =>
      testConfig(places, {
        overload: { memory: `${MEMORY_GIB}GiB` },
        upstreams: { "up-responses": { stateful: true } },
      }),
  });
  t.after(() => here.close());
  const opened: RawSocket[] = [];
  t.after(() => {
    for (const client of opened) client.close();
  });
  const opens = (head: readonly string[]) => {
    const client = new RawSocket({ port: here.port });
    opened.push(client);
    client.send(`${[...head, "Host: gateway.test", "\r\n"].join("\r\n")}`);
    return client;
  };
  const idOf = async (key: string, text: string) => {
    here.simulator.program({ text });
    const reply = await ask(here, "responses", key, { store: undefined, max_output_tokens: 32_000 });
    return ((await reply.json()) as { id: string }).id;
  };
  const [busy, calm] = [await here.account(), await here.account()];
  const large = await idOf(busy.key, "x".repeat(120_000));
  const small = await idOf(busy.key, "hello");
  const others = await idOf(calm.key, "x".repeat(120_000));
  /** A request of the busy account that announces a body and does not send it. */
  const announces = async (bytes: number) => {
    const body = ["Content-Type: application/json", `Content-Length: ${bytes}`, "Expect: 100-continue"];
    const client = opens(["POST /v1/responses HTTP/1.1", `Authorization: Bearer ${busy.key}`, ...body]);
    await client.until((text) => text.startsWith("HTTP/1.1 100 "));
  };
  for (let rest = SHARE - REST; rest > 0; rest -= LARGEST_BODY) await announces(Math.min(rest, LARGEST_BODY));
  for (let times = 0; times < 3; times++) {
    const reply = await at(here, busy.key, "GET", large);
    assert.equal(reply.status, 200, "what is sent takes no room any more");
    const bytes = (await reply.arrayBuffer()).byteLength;
    assert.ok(bytes > REST / 2 && bytes < REST, `${bytes} bytes`);
  }
  await announces(REST / 2);
  const refused = await at(here, busy.key, "GET", large);
  assert.deepEqual([refused.status, (await errorOf(refused)).cause], [429, "concurrency"]);
  await announces(REST / 2 - 100);
  assert.equal((await at(here, busy.key, "GET", small)).status, 200, "a small one takes no room");
  assert.equal((await at(here, calm.key, "GET", others)).status, 200, "another account has room");
});
