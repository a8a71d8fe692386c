/**
 * docs/failure-model.md row B12: FLUSHALL while requests run. Nothing is restored until the operator confirms the loss; then
 * everything is.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";
import { PATIENT } from "../store/benches.ts";
import { admin, balanced, charged, chat, LOST, openAccount, readiness, tollgate, untilSettled } from "./lossy-scene.ts";

const CLIENTS = 4;
const FOLLOWED = "the journal follows this store";

test("FLUSHALL under load: requests get 503 and not 401, nothing is recreated, and the confirmation restores everything", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  await here.logged((line) => line.msg === FOLLOWED);
  const key = await openAccount(here.adminUrl, "loaded");

  const answers: Awaited<ReturnType<typeof chat>>[] = [];
  let stop = false;
  const enough = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<void>();
  const client = async (_: unknown, index: number) => {
    while (!stop) {
      const answer = await chat(here.url, key, index % 2 === 0);
      answers.push(answer);
      if (answers.length >= 40) enough.resolve();
      if (answer.status !== 200) refused.resolve();
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  await enough.promise;
  // From here on requests are admitted and wait for their answer: they are in flight while the store is emptied.
  here.simulator.hold();
  await here.simulator.waitFor(here.simulator.count + CLIENTS);
  assert.match(await redis.command("FLUSHALL"), /^\+OK/);
  const lost = await here.logged((line) => LOST.test(String(line.msg)));
  // The command that confirms the loss needs its id, which `tollgate store status` shows.
  assert.match(String(lost.msg), /tollgate store status$/);
  assert.deepEqual([lost.event, lost.losses], ["store_older", [{ part: 0, kind: "empty" }]]);
  here.simulator.release();
  await refused.promise;
  stop = true;
  await Promise.all(clients);

  assert.deepEqual([...new Set(answers.map(({ status }) => status))].sort(), [200, 503]);
  for (const { status, text } of answers) if (status === 503) assert.match(text, /"cause":"store_older"/);
  assert.equal(await redis.command("DBSIZE"), ":0\r\n");
  const { ready, reasons } = await readiness(here.adminUrl);
  assert.deepEqual([ready, reasons.length], [false, 1]);
  assert.match(reasons[0] ?? "", /^store_older: the store lost data.* run .*tollgate.* store status$/);
  assert.match((await here.gateway.metrics.page()).body, /tollgate_store_older 1\n/);
  const topup = await admin(here.adminUrl, "POST", "/accounts", { name: "another" });
  assert.deepEqual([topup.status, (topup.json.error as { code: string }).code], [503, "store_older"]);
  assert.equal(
    (await chat(here.url, key.slice(0, -1) + (key.endsWith("0") ? "1" : "0"))).status,
    401,
    "a malformed key is refused without the store",
  );
  assert.match((await here.gateway.metrics.page()).body, /tollgate_dead_letters 0\n/);

  assert.equal((await tollgate(here.adminUrl, "store", "confirm", "0123456789ab")).status, 1);
  const status = await tollgate(here.adminUrl, "store", "status");
  assert.equal(status.status, 1, "scripts can read the state from the exit status");
  const [, seen] = /tollgate store confirm ([0-9a-f]{12})\n/.exec(status.out) ?? [];
  assert.ok(seen, status.out);
  assert.match(status.out, /0 +empty +\S+ \(\d+ s\) +nothing\n/);
  const waiting = Number(/wait for the store: (\d+)\./.exec(status.out)?.[1]);
  assert.ok(waiting >= 1, "charges of earlier requests are waiting");
  const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
  assert.equal((await tollgate(here.adminUrl, "store", "confirm", seen)).status, 0);
  await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
  assert.deepEqual(await readiness(here.adminUrl), { ready: true, reasons: [], notes: [] });

  const good = answers.filter((answer) => answer.status === 200).map(({ requestId }) => requestId);
  await untilSettled(here.adminUrl);
  const state = await balanced(here.store, "loaded");
  assert.equal(charged(state).length, good.length);
  assert.equal(new Set(charged(state)).size, good.length);
  assert.equal(state.account.balance + state.account.spent, 5_000_000_000n);
  assert.match((await here.gateway.metrics.page()).body, /tollgate_dead_letters 0\n/);
  assert.match((await here.gateway.metrics.page()).body, /tollgate_store_older 0\n/);
  assert.equal((await chat(here.url, key)).status, 200);
});
