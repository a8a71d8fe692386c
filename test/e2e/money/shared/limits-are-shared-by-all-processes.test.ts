// The token buckets are in the store: four processes together admit as many requests as one process would.
import assert from "node:assert/strict";
import test from "node:test";
import { type Answer, ask, chat, type Deployment, openAccount, startDeployment, untilNothingHeld } from "./rig.ts";

const PLENTY = 100_000_000_000n;
const BODY = chat({ maxTokens: 16 });
/** Far above both limits, and few enough that four slow processes still get the store's answer in time. */
const AT_ONCE = 160;
/** The limit of the group `sixty-a-minute`: a bucket of sixty that refills by one each second. */
const BURST = 60;
const RATE_PER_S = 1;
/** The limit of the group `five-at-a-time`. */
const PLACES = 5;

async function withFour(run: (deployment: Deployment) => Promise<void>): Promise<void> {
  const deployment = await startDeployment({ store: "redis", gateways: 4 });
  try {
    await run(deployment);
  } finally {
    await deployment.close();
  }
}

/** Sends this many requests at once, distributed over all processes. */
function askAll(deployment: Deployment, key: string, onAnswer: (answer: Answer) => void = () => {}): Promise<Answer[]> {
  return Promise.all(
    Array.from({ length: AT_ONCE }, async (_, i) => {
      const gateway = deployment.gateways[i % deployment.gateways.length];
      assert.ok(gateway);
      const answer = await ask(gateway, key, BODY);
      onAnswer(answer);
      return answer;
    }),
  );
}

test("of 160 concurrent requests, four processes admit sixty per minute plus the refill", async () => {
  await withFour(async (deployment) => {
    const [first] = deployment.gateways;
    assert.ok(first);
    const { key } = await openAccount(first, { funds: PLENTY, group: "sixty-a-minute" });
    const startedMs = performance.now();
    const answers = await askAll(deployment, key);
    const tookS = (performance.now() - startedMs) / 1_000;
    const admitted = answers.filter((answer) => answer.status === 200).length;
    const refused = answers.filter((answer) => answer.status === 429 && answer.cause === "requests");
    // On a machine where Redis gets no CPU time: the store did not answer in time, but may have counted the request.
    const unanswered = answers.filter((answer) => answer.cause === "store_unavailable").length;
    const [least, most] = [BURST - unanswered, BURST + Math.floor(RATE_PER_S * tookS)];
    assert.ok(admitted >= least && admitted <= most, `${admitted} admitted, ${least} to ${most} expected`);
    assert.equal(refused.length, AT_ONCE - admitted - unanswered);
    assert.ok(refused.every((answer) => /^[1-9]\d*$/.test(String(answer.headers["retry-after"]))));
  });
});

test("of 160 concurrent requests, four processes admit five at a limit of five", async () => {
  await withFour(async (deployment) => {
    const { simulator } = deployment;
    const [first] = deployment.gateways;
    assert.ok(first);
    const { key, name } = await openAccount(first, { funds: PLENTY, group: "five-at-a-time" });
    simulator.hold();
    let refused = 0;
    const othersRefused = Promise.withResolvers<void>();
    const all = askAll(deployment, key, (answer) => {
      if (answer.status === 429 && answer.cause === "concurrency") refused += 1;
      if (refused === AT_ONCE - PLACES) othersRefused.resolve();
    });
    await Promise.race([othersRefused.promise, simulator.waitFor(PLACES + 1)]);
    simulator.release();
    const answers = await all;
    assert.equal(simulator.count, PLACES);
    assert.equal(answers.filter((answer) => answer.status === 200).length, PLACES);
    assert.equal(refused, AT_ONCE - PLACES);
    await untilNothingHeld(first, name);
    assert.equal((await ask(first, key, BODY)).status, 200, "the slots are free again");
  });
});
