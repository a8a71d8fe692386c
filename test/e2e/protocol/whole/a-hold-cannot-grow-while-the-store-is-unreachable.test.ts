/**
 * ARCHITECTURE.md promise 1 if the store's reply is lost, or the store does not reply, just when a running stream asks
 * for more.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { type FaultProxy, startFaultProxy } from "../../../rig/fault-proxy.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { ask, assertAtRest, memoOf, recomputed, usageLines } from "./asking.ts";
import { assertTruncated, holdOf, openEnded, PRICE, STEP, saidIn, smallSteps } from "./open-ended.ts";

let redis: TestRedis;
let proxy: FaultProxy;
let here: GatewayHere;
before(async () => {
  redis = await startRedis();
  proxy = await startFaultProxy(redis.port);
  here = await startGatewayHere({ config: smallSteps, store: proxy.url });
});
after(async () => {
  await here.close();
  await proxy.close();
  await redis.stop();
});

const TEXT = "word ".repeat(400);
const FIELDS = openEnded("chat", "chat");

/** Starts a stream of 500 tokens, calls a function when its first words are out, and returns all of it. */
async function readWhile(key: string, act: () => void): Promise<string> {
  here.simulator.program({ text: TEXT, deltaChars: 100, pace: { firstDelayMs: 0, betweenMs: 20 } });
  const reply = await ask(here, "chat", key, FIELDS);
  assert.equal(reply.status, 200);
  let text = "";
  let acted = false;
  for await (const piece of reply.body as ReadableStream<Uint8Array>) {
    text += Buffer.from(piece).toString();
    if (acted || !text.includes("word")) continue;
    acted = true;
    act();
  }
  return text;
}

/** Polls until the store is back and the charge is in the ledger. */
async function untilCharged(account: TestAccount): Promise<LedgerLine[]> {
  for (;;) {
    const lines = await usageLines(here, account).catch(() => []);
    if (lines.length > 0) return lines;
  }
}

test("if the reply is lost, the step counts once: the stream continues, and the hold grows by one step only", async () => {
  const account = await here.account();
  const faults = proxy.faults();
  const said = saidIn("chat", await readWhile(account.key, () => proxy.loseNextReply()));
  assert.equal(said, TEXT);
  assert.equal(proxy.faults(), faults + 1);
  const [line, ...more] = await untilCharged(account);
  assert.deepEqual(more, []);
  assert.equal(line?.amount, recomputed(line as never));
  const steps = (BigInt(memoOf(line).hold as string) - holdOf("chat", FIELDS, 0)) / (BigInt(STEP) * PRICE.output);
  assert.equal(steps, 3n, "500 tokens and the margin fit into three steps");
  await assertAtRest(here, account);
});

test("if the store does not reply, the stream ends as truncated at the edge of its hold, and is charged when the store is back", async () => {
  const account = await here.account();
  const text = await readWhile(account.key, () => redis.freeze());
  redis.thaw();
  assertTruncated("chat", text);
  await here.logged((line) => line.msg === "request" && line.stream_end === "brake");
  const lines = await untilCharged(account);
  assert.equal(lines.length, 1);
  const memo = memoOf(lines[0]);
  assert.deepEqual([memo.ended, memo.hold], ["brake", String(holdOf("chat", FIELDS, STEP))]);
  assert.equal(memo.output, Math.ceil(saidIn("chat", text).length / 4));
  assert.ok((lines[0]?.amount ?? 0n) > 0n && (lines[0]?.amount ?? 0n) <= BigInt(memo.hold as string));
  await assertAtRest(here, account);
});
