// docs/failure-model.md row 36: the check-then-act race. Every 403 is sent while the three admitted requests still run.
import assert from "node:assert/strict";
import test from "node:test";
import {
  ask,
  chat,
  type Deployment,
  fundsOf,
  ledgerOf,
  nano,
  openAccount,
  priceOf,
  startDeployment,
  untilNothingHeld,
} from "./rig.ts";

const PARALLEL = 200;
const ROUNDS = 5;
/** The smallest output for which it is worth paying the input (ARCHITECTURE.md promise 1). */
const USEFUL = 16;

async function race(deployment: Deployment): Promise<void> {
  const { simulator, gateways } = deployment;
  const [first] = gateways;
  assert.ok(first);
  const body = chat({ maxTokens: 100 });
  const full = await priceOf(first, body);
  // The useful minimum of the same request: this many output tokens less, at 10 USD per million.
  const least = full.hold - BigInt(100 - USEFUL) * 10_000n;
  const funds = 3n * full.hold + least - 1n;
  const account = await openAccount(first, { funds });
  const before = simulator.count;
  simulator.hold();
  let decided = 0;
  const allDecided = Promise.withResolvers<void>();
  const answers = Array.from({ length: PARALLEL }, async (_, i) => {
    const answer = await ask(gateways[i % gateways.length] ?? first, account.key, body);
    if (answer.status !== 200) decided += 1;
    if (decided === PARALLEL - 3) allDecided.resolve();
    return answer;
  });
  // A fourth request at the upstream is the failure that this test looks for; without this line it would wait forever.
  await Promise.all([simulator.waitFor(before + 3), Promise.race([allDecided.promise, simulator.waitFor(before + 4)])]);
  const during = await fundsOf(first, account.name);
  simulator.release();
  const given = await Promise.all(answers);
  assert.equal(simulator.count - before, 3, "only requests with funds are sent to the upstream");
  assert.deepEqual(during, { balance: funds, held: 3n * full.hold });
  assert.equal(given.filter((answer) => answer.status === 200).length, 3);
  const refused = given.filter((answer) => answer.status !== 200).map(({ status, cause }) => `${status} ${cause}`);
  assert.deepEqual(countsOf(refused), { "403 insufficient_balance": PARALLEL - 3 });
  const clamped = given.filter((answer) => answer.headers["x-tollgate-clamped"] !== undefined);
  assert.equal(clamped.length, 0);
  const after = await untilNothingHeld(first, account.name);
  assert.deepEqual(after, { balance: funds - 3n * full.cost, held: 0n });
  const lines = await ledgerOf(first, account.name);
  assert.deepEqual(
    lines.map((line) => line.kind),
    ["topup", "usage", "usage", "usage"],
  );
  assert.ok(lines.every((line) => nano(line.balance_usd) >= 0n));
}

function countsOf(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

test("embedded store, one process: three of 200 are answered", async () => {
  const deployment = await startDeployment({ store: "embedded" });
  try {
    for (let round = 0; round < ROUNDS; round++) await race(deployment);
  } finally {
    await deployment.close();
  }
});

test("Redis, four processes: three of 200 are answered", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 4 });
  try {
    for (let round = 0; round < ROUNDS; round++) await race(deployment);
  } finally {
    await deployment.close();
  }
});
