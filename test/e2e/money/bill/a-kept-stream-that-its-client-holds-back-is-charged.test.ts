/**
 * A client that reads a stream slowly, whose server keeps the answer, could pay for the little that it has read when the request's
 * time is over, and retrieve the rest. After a minute of holding it back it counts as disconnected, and the upstream's count is
 * charged (docs/decisions/stateful-upstreams-get-wrapped-ids.md). A card without a quota pays nothing, so its client may be slow.
 */
import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import test, { type TestContext } from "node:test";
import { nanoUsd } from "../../../../src/values/money.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { event, startBefore } from "../../../rig/own-upstream.ts";
import { ask, bodyOf, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { pricedConfig } from "./rig.ts";

const HELD_BACK_MS = 60_000;
const DAY_MS = 86_400_000;
/** More than the buffers of two sockets hold. */
const PIECES = 300;
const PADDING = "x".repeat(50_000);

const OPENING = event({ type: "response.created", sequence_number: 0, response: { id: "resp_1", output: [] } });
const usage = { input_tokens: 11, output_tokens: 4_000, total_tokens: 4_011 };
const COMPLETED = event({
  type: "response.completed",
  sequence_number: 2,
  response: { id: "resp_1", status: "completed", output: [], usage },
});

const STREAM = { model: "responses-1", stream: true, max_output_tokens: 32_000 };

interface Scene {
  readonly here: GatewayHere;
  readonly clock: HandClock;
  /** Asks for a stream, and reads nothing of it. */
  holdBack(account: TestAccount): Promise<Socket>;
}

async function scene(t: TestContext): Promise<Scene> {
  const answer = async (response: ServerResponse) => {
    response.on("error", () => {});
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(OPENING);
    for (let piece = 0; piece < PIECES; piece++) {
      const delta = event({
        type: "response.output_text.delta",
        output_index: 0,
        delta: "word ",
        obfuscation: PADDING,
      });
      if (!response.write(delta)) await new Promise<void>((resolve) => response.once("drain", resolve));
    }
    response.end(COMPLETED);
  };
  const answers: RequestListener = (request, response) => {
    request.resume();
    void answer(response);
  };
  const clock = new HandClock();
  const here = await startBefore(t, answers, {
    clock,
    config: (places) =>
      pricedConfig(places, { upstreams: { "up-responses": { stateful: true } }, groups: { cards: { models: ["*"] } } }),
    settings: (settings) => ({ ...settings, heartbeatMs: 3_600_000 }),
  });
  // The first use of a key sets a timer of a minute, too, which is then there already.
  const first = await here.account();
  const reply = await ask(here, "responses", first.key, { ...STREAM, store: false });
  await reply.text();
  return {
    here,
    clock,
    async holdBack({ key }) {
      const body = JSON.stringify(bodyOf("responses", { ...STREAM, store: undefined }));
      const { hostname, port } = new URL(here.url);
      const socket = connect(Number(port), hostname);
      t.after(() => socket.destroy());
      socket.on("error", () => {});
      socket.pause();
      const head = `POST /v1/responses HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\n`;
      socket.write(
        `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      return socket;
    },
  };
}

test("after a minute it counts as disconnected, and the upstream's count is charged", async (t) => {
  const { here, clock, holdBack } = await scene(t);
  const account = await here.account({ usd: "10" });
  const held = clock.nextTimerOf(HELD_BACK_MS);
  await holdBack(account);
  await held;
  const requestEnds = here.logged((line) => line.msg === "request" && line.key_id === account.keyId);
  clock.advance(HELD_BACK_MS);
  await requestEnds;
  const [line] = await usageLines(here, account);
  const { counted, output, ended } = memoOf(line);
  assert.deepEqual([line?.kind, counted, output, ended], ["usage", "upstream", 4_000, "client_gone"]);
});

for (const [title, isMetered] of [
  ["of an account that pays", true],
  ["whose card has no quota", false],
] as const) {
  test(`the time of a client ${title} is ${isMetered ? "" : "not "}limited whenever it accepts no more`, async (t) => {
    const { here, clock, holdBack } = await scene(t);
    const account = await here.account({ group: "cards", usd: isMetered ? "10" : "0" });
    const id = `code_${account.tag}unlimited`;
    await here.store.grant(account.tag, {
      ...{ id, card: "day", plan: "free", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: id },
      quota: isMetered ? nanoUsd(10_000_000_000n) : undefined,
    });
    let isLimited = false;
    void clock.nextTimerOf(HELD_BACK_MS).then(() => {
      isLimited = true;
    });
    const socket = await holdBack(account);
    let tail = "";
    for await (const bytes of socket) {
      tail = (tail + String(bytes)).slice(-1_000);
      if (tail.includes("response.completed")) break;
    }
    assert.match(tail, /response\.completed/);
    assert.equal(isLimited, isMetered);
  });
}
