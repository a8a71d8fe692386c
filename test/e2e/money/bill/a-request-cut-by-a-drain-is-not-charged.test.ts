/**
 * Promise 3: a gateway that shuts down cuts requests that still wait for their upstream. This is not the clients'
 * doing: they are not charged, and it does not use their accounts' allowance for disconnects. Row D1 of
 * docs/failure-model.md.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { type GatewayHere, spawnGateway, startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { untilSettled } from "../../../unit/settle/lossy-scene.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { ask, errorOf, memoOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { bodyOfTokens, leaveAtOnce, linesOf, sumOf } from "./disconnecting-clients.ts";
import { pricedConfig } from "./rig.ts";

let redis: TestRedis;
/** Continues with the same store when the other gateway has ended. */
let here: GatewayHere;
before(async () => {
  redis = await startRedis();
  // With a clock that stands still, a settlement that Redis did not answer in time would never be sent again.
  const store = { store: redis.url, storeTimes: PATIENT };
  here = await startGatewayHere({ config: pricedConfig, ...store, clock: new HandClock() });
});
after(async () => {
  await here?.close();
  await redis?.stop();
});

for (const [signal, how] of [
  ["SIGTERM", "a drain whose deadline has passed"],
  ["SIGINT", "an immediate stop"],
] as const) {
  test(`${signal}: ${how} charges no client for a disconnect, and does not use the allowance`, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "tollgate-cut-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const places = { upstreamUrl: here.simulator.url, dir, store: redis.url };
    const ending = await spawnGateway(`${pricedConfig(places)}drain: {lame_duck: 1ms, deadline: 1ms}\n`);
    t.after(() => ending.stop("SIGKILL"));
    const account = await here.account({ usd: "5" });
    const begun: Promise<unknown>[] = [];
    for (const client of PROTOCOL_LIST) {
      here.simulator.program({ text: "word", usage: { input: 20_000 }, fault: { stallAfterEvents: 1 } });
      const reply = await ask(ending, client, account.key, bodyOfTokens(client, 20_000, { stream: true }));
      assert.equal(reply.status, 200);
      begun.push(reply.text());
    }
    here.simulator.hold();
    t.after(() => here.simulator.release());
    const seen = here.simulator.count;
    const waiting = PROTOCOL_LIST.flatMap((client) =>
      [true, false].map((stream) => ask(ending, client, account.key, bodyOfTokens(client, 20_000, { stream }))),
    );
    const cut = Promise.all(waiting);
    const ended = Promise.allSettled(begun);
    await here.simulator.waitFor(seen + waiting.length);
    assert.equal(await ending.stop(signal), 0);
    for (const reply of await cut) assert.deepEqual([reply.status, (await errorOf(reply)).cause], [503, "draining"]);
    await ended;
    here.simulator.release();
    const lines = await linesOf(here, account);
    assert.deepEqual([lines.length, sumOf(lines, "usage")], [begun.length + waiting.length, "0.00"]);
    for (const line of lines) assert.equal(memoOf(line).paid, undefined);
    assert.equal((await here.store.getAccount(account.tag))?.balance, 5_000_000_000n);

    // The whole 0.50 is still there: 0.48 are absorbed, and the next one is charged.
    await leaveAtOnce(here, "chat", account, 8, bodyOfTokens("chat", 20_000));
    await untilSettled(here.adminUrl);
    assert.equal(sumOf(await linesOf(here, account), "usage"), "0.00");
    await leaveAtOnce(here, "chat", account, 1, bodyOfTokens("chat", 20_000));
    await untilSettled(here.adminUrl);
    assert.equal(sumOf(await linesOf(here, account), "usage"), "0.06");
  });
}
