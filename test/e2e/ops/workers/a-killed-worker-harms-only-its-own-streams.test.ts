/**
 * docs/failure-model.md row A3 with several processes: one of four is killed in mid-stream; its streams are charged
 * once, and nothing else is affected.
 */
import assert from "node:assert/strict";
import process from "node:process";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { adminGet, keyOf } from "../fronts/admin.ts";
import { CHAT_END } from "../fronts/fronts.ts";
import {
  aMoment,
  CHARGE_NANO_USD,
  finish,
  lines,
  metricSum,
  metricsPage,
  openStreams,
  untilAllServe,
  workerPids,
  workersScene,
} from "./rig.ts";

const WORKERS = 4;
const STREAMS = 12;
const WHOLE = 20;
const LATER = 8;

test("kill -9 of one of four workers affects only its own streams", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(WORKERS);
  const pids = workerPids(gateway);
  assert.equal(pids.size, WORKERS);
  const whole = (count: number) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const reply = await ask(gateway, "chat", scene.account.key);
        assert.equal(reply.status, 200, await reply.text());
      }),
    );
  await whole(WHOLE);
  const streams = await openStreams(scene, gateway.url, STREAMS);

  // One page sums all workers; a worker that is slow to answer is included with its figures of some seconds before.
  const summed = (page: string) => [
    metricSum(page, "tollgate_requests_total", 'status="200"'),
    metricSum(page, "tollgate_in_flight", "chat"),
    metricSum(page, "tollgate_time_to_first_token_seconds_count"),
  ];
  const wanted = [WHOLE, STREAMS, STREAMS];
  let page = await metricsPage(gateway);
  while (summed(page).some((sum, at) => sum < (wanted[at] as number))) {
    await aMoment();
    page = await metricsPage(gateway);
  }
  assert.deepEqual(summed(page), wanted);
  // What each worker sees in the same way is not summed. On a busy machine a check of the store may have come too late:
  // then the next one counts.
  let up = 0;
  for (let look = page; up === 0; look = await metricsPage(gateway)) up = metricSum(look, "tollgate_store_up");
  assert.equal(up, 1);
  const { items } = (await adminGet(gateway, "/upstreams")) as { items: Record<string, unknown>[] };
  const chat = items.find(({ name }) => name === "up-chat");
  assert.deepEqual([chat?.health, chat?.in_flight, chat?.max_concurrency], ["healthy", STREAMS, WORKERS * 200]);
  await gateway.line('"msg":"request"', WHOLE);
  const busy = new Set(
    lines(gateway)
      .filter(({ msg }) => msg === "request")
      .map(({ worker }) => worker),
  );
  assert.equal(busy.size, WORKERS, "all workers have requests");

  const ends = streams.map((stream) => stream.reader.end());
  process.kill(pids.get(2) as number, "SIGKILL");
  await gateway.line('"msg":"a worker has ended"');
  await gateway.line("what the last process left is settled");
  await untilAllServe(gateway);
  const now = workerPids(gateway);
  assert.notEqual(now.get(2), pids.get(2), "the worker was restarted");
  for (const worker of [1, 3, 4]) assert.equal(now.get(worker), pids.get(worker), "the other workers continue");
  for (const stream of streams) finish(stream);
  const read = await Promise.all(ends);
  const cut = read.filter((one) => one.cut).length;
  const ended = read.filter((one) => !one.cut && one.text.endsWith(CHAT_END)).length;
  assert.equal(cut + ended, STREAMS, "a stream is either complete or cut with its worker");
  assert.ok(cut >= 1 && cut < STREAMS, `${cut} of ${STREAMS} streams were of this worker`);
  await whole(LATER);
  const later = await ask(gateway, "chat", await keyOf(gateway, "later"));
  assert.equal(later.status, 200, "every worker knows a key that was just created");
  await later.text();
  // A request is counted when its client has all of the answer, which may be a moment after that client has read it.
  const answered = WHOLE + ended + LATER + 1;
  let counted = 0;
  for (; counted < answered; await aMoment()) {
    const before = counted;
    counted = metricSum(await metricsPage(gateway), "tollgate_requests_total", 'status="200"');
    assert.ok(counted >= before && counted >= WHOLE, "no counter decreases");
  }
  assert.equal(counted, answered);

  assert.equal(await gateway.stop("SIGTERM"), 0);
  const { ledger, holds, inFlight, account } = await scene.state();
  assert.deepEqual([holds, inFlight, account.held], [[], 0, 0n]);
  const usage = ledger.filter(({ kind }) => kind === "usage");
  const orphans = usage.filter(({ memo }) => (JSON.parse(memo) as { ended?: string }).ended === "orphaned");
  assert.equal(usage.length, WHOLE + STREAMS + LATER, "each is charged once");
  assert.equal(orphans.length, cut);
  for (const { amount } of orphans) assert.ok(amount > 0n, "an interrupted request is charged from its checkpoint");
  const exact = usage.filter((line) => !orphans.includes(line));
  for (const { amount } of exact) assert.equal(amount, CHARGE_NANO_USD);
});
