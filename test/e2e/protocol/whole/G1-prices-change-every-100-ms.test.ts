/**
 * docs/failure-model.md row G1: the file changes ten times a second under traffic; each request is charged at the
 * prices with which it was admitted.
 */
import assert from "node:assert/strict";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import test from "node:test";
import { CHAT_END } from "../../ops/fronts/fronts.ts";
import { CHARGE_NANO_USD, finish, lines, openStreams, workersScene } from "../../ops/workers/rig.ts";
import { ask, recomputed } from "./asking.ts";

const STREAMS = 10;
const CLIENTS = 3;
const RELOADS = 20;
const REQUESTS = 60;
const EVERY_MS = 100;

test("streams that run through all reloads, and requests between them, are charged at the prices of their admission", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(1);
  const old = readFileSync(gateway.file, "utf8");
  const dearer = old.replaceAll('input: "1"', 'input: "2"').replaceAll('output: "10"', 'output: "20"');
  const streams = await openStreams(scene, gateway.url, STREAMS);

  let dear = false;
  const changing = setInterval(() => {
    dear = !dear;
    // Written as editors do it: a half-written file would be invalid, and the old prices would stay.
    writeFileSync(`${gateway.file}.new`, dear ? dearer : old);
    renameSync(`${gateway.file}.new`, gateway.file);
    gateway.child.kill("SIGHUP");
  }, EVERY_MS);
  let answered = 0;
  const reloads = () => lines(gateway).filter(({ msg }) => String(msg).startsWith("configuration reloaded")).length;
  const client = async () => {
    while (answered < REQUESTS || reloads() < RELOADS) {
      const reply = await ask(gateway, "chat", scene.account.key);
      assert.equal(reply.status, 200, await reply.text());
      answered++;
    }
  };
  try {
    await Promise.all(Array.from({ length: CLIENTS }, client));
  } finally {
    clearInterval(changing);
  }
  for (const stream of streams) finish(stream);
  for (const { reader } of streams) {
    const { text, cut } = await reader.end();
    assert.ok(!cut && text.endsWith(CHAT_END));
  }
  assert.equal(await gateway.stop("SIGTERM"), 0);
  assert.doesNotMatch(gateway.output(), /"event":"config_refused"/);

  const { ledger, holds, account } = await scene.state();
  assert.deepEqual([holds, account.held], [[], 0n]);
  const usage = ledger.filter(({ kind }) => kind === "usage");
  assert.equal(usage.length, answered + STREAMS);
  const between = usage.slice(0, answered).map(({ amount }) => amount);
  for (const amount of [CHARGE_NANO_USD, 2n * CHARGE_NANO_USD]) {
    assert.ok(
      between.some((one) => one === amount),
      `no request was charged ${amount}`,
    );
  }
  for (const line of usage) assert.equal(line.amount, recomputed(line), "the line's own prices give its amount");
  // The streams ended last; they began at the first prices.
  for (const { amount } of usage.slice(answered)) assert.equal(amount, CHARGE_NANO_USD);
  t.diagnostic(`${answered} requests and ${STREAMS} streams through ${reloads()} reloads`);
});
