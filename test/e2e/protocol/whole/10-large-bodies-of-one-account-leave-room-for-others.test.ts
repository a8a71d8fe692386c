/**
 * ARCHITECTURE.md promise 10, docs/failure-model.md row D7: the bodies that are being read are limited per account. An
 * account that sends too many gets 429, the others get their answers, and all of the room is released.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { bodyRoomBytes } from "../../../../src/overload/body-shares.ts";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, assertAtRest, bodyOf, pathOf } from "./asking.ts";

const MEMORY = 4 * 2 ** 30;
const LARGE = 32_000_000;
/** The share of one account: half of the room. */
const MOST = Math.floor(bodyRoomBytes(MEMORY, 0) / 2 / LARGE);

test("an account that announces more bodies than there is room for gets 429, and others are served", async (t) => {
  const here = await startGatewayHere({ config: (places) => testConfig(places, { overload: { memory: "4GiB" } }) });
  t.after(() => here.close());
  const [busy, calm] = [await here.account(), await here.account()];
  const opened: RawSocket[] = [];
  t.after(() => {
    for (const client of opened) client.close();
  });
  /** A client that sends its body only after 100 Continue. */
  const announced = async (key: string, bytes: number, path = pathOf("chat")) => {
    const head = [
      `POST ${path} HTTP/1.1`,
      "Host: gateway.test",
      `Authorization: Bearer ${key}`,
      `Content-Length: ${bytes}`,
    ];
    const client = new RawSocket({ port: here.port });
    opened.push(client);
    client.send(`${head.join("\r\n")}\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n\r\n`);
    await client.until((text) => text.includes("\r\n\r\n"));
    return { client, isAsked: client.text.startsWith("HTTP/1.1 100 ") };
  };
  const refusedOf = async ({ client, isAsked }: Awaited<ReturnType<typeof announced>>) => {
    assert.equal(isAsked, false);
    const [response] = await client.responses(1);
    assert.ok(response);
    assert.ok(Number(response.headers["retry-after"]) >= 1);
    const { cause, message } = JSON.parse(response.body).error;
    return { status: response.status, cause, message };
  };

  /** Announces bodies until one is refused. @returns the clients that were not refused. */
  const filled = async () => {
    const waiting: RawSocket[] = [];
    for (;;) {
      const next = await announced(busy.key, LARGE);
      if (next.isAsked) waiting.push(next.client);
      else {
        const { status, cause, message } = await refusedOf(next);
        assert.deepEqual([status, cause], [429, "concurrency"]);
        assert.match(message, new RegExp(`running requests use ${waiting.length * LARGE} bytes`));
        return waiting;
      }
    }
  };
  const waiting = await filled();
  assert.equal(waiting.length, MOST);
  const counting = await refusedOf(await announced(busy.key, LARGE, "/v1/messages/count_tokens"));
  assert.deepEqual([counting.status, counting.cause], [429, "concurrency"], "the limit applies to all paths");

  assert.equal((await ask(here, "chat", busy.key)).status, 200, "a small body reserves no memory");
  assert.equal((await announced(calm.key, LARGE)).isAsked, true, "another account has room");
  const raw = JSON.stringify(bodyOf("chat", { metadata: { pad: "x".repeat(1_000_000) } }));
  for (const [key, status] of [
    [calm.key, 200],
    [busy.key, 200],
  ] as const) {
    assert.equal((await ask(here, "chat", key, {}, { raw })).status, status);
    assert.equal((await ask(here, "chat", key, {}, { raw: raw.slice(1) })).status, 400);
    const path = "/v1/messages/count_tokens";
    assert.equal(
      (await ask(here, "messages", key, {}, { raw: raw.replace("chat-1", "messages-1"), path })).status,
      200,
    );
  }
  const { body: page } = await here.gateway.metrics.page();
  assert.match(page, /^tollgate_shed_total\{point="room"\} 2$/m);
  assert.doesNotMatch(page, /status="5/);

  const left = (count: number) =>
    here.log.filter(({ msg, cause }) => msg === "request" && cause === "framing").length >= count;
  for (const client of opened) client.close();
  if (!left(MOST + 1)) await here.logged(() => left(MOST + 1));
  assert.equal((await filled()).length, MOST, "a disconnected client and an answered one release all of their memory");
  for (const account of [busy, calm]) await assertAtRest(here, account);
});
