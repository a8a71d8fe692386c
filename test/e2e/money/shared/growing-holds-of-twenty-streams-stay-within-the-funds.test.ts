// ARCHITECTURE.md promise 1 for streams whose holds grow: twenty streams at once with money for only some of them never
// take the balance below zero, not by a nano-dollar.
import assert from "node:assert/strict";
import test from "node:test";
import {
  ask,
  type Deployment,
  fundsOf,
  ledgerOf,
  nano,
  openAccount,
  startDeployment,
  untilNothingHeld,
} from "./rig.ts";

const STREAMS = 20;
/**
 * Output tokens of a whole answer: what the first hold and one step cover, including the margin at which a hold grows.
 * Twenty of them cost more than the account has, even if those that end first leave the rest of their steps to the
 * others.
 */
const TOKENS = 14_500;
/** Streams whose next step is covered if all ask at once. */
const GROWING = 15;
const BODY = JSON.stringify({
  model: "chat-1",
  messages: [{ role: "user", content: "Say a lot." }],
  stream: true,
});
/** In nano-dollars: the first hold of 8,192 tokens, and each step. */
const STEP = 81_920_000n;

async function share(deployment: Deployment): Promise<void> {
  const { simulator, gateways } = deployment;
  const [first] = gateways;
  assert.ok(first);
  // Covers every first hold with its input, but not every step.
  const funds = BigInt(STREAMS) * (STEP + 200_000n) + BigInt(GROWING) * STEP;
  const account = await openAccount(first, { funds });
  simulator.program(
    { text: "word ".repeat((TOKENS * 4) / 5), deltaChars: 400, pace: { betweenMs: 1 } },
    { times: STREAMS },
  );
  let running = true;
  const answers = Promise.all(
    Array.from({ length: STREAMS }, (_, i) => ask(gateways[i % gateways.length] ?? first, account.key, BODY)),
  ).finally(() => {
    running = false;
  });
  while (running) {
    const { balance, held } = await fundsOf(first, account.name);
    assert.ok(balance - held >= 0n, `${balance} less ${held}`);
  }
  const texts = (await answers).map(({ status, text }) => {
    assert.equal(status, 200);
    assert.ok(text.endsWith("data: [DONE]\n\n"));
    return text;
  });
  const cut = texts.filter((text) => text.includes('"finish_reason":"length"')).length;
  assert.ok(cut >= 1 && cut <= STREAMS - GROWING, `${cut} were cut`);
  const after = await untilNothingHeld(first, account.name);
  const lines = (await ledgerOf(first, account.name)).filter((line) => line.kind !== "topup");
  assert.equal(lines.length, STREAMS, "one charge each, nothing absorbed");
  assert.ok(lines.every((line) => line.kind === "usage" && nano(line.balance_usd) >= 0n));
  assert.equal(after.balance, funds - lines.reduce((sum, line) => sum + nano(line.usd), 0n));
  assert.ok(after.balance >= 0n);
}

test("embedded store, one process: twenty growing holds never exceed the funds", async () => {
  const deployment = await startDeployment({ store: "embedded" });
  try {
    await share(deployment);
  } finally {
    await deployment.close();
  }
});

test("Redis, two processes: twenty growing holds never exceed the funds", async () => {
  const deployment = await startDeployment({ store: "redis", gateways: 2 });
  try {
    await share(deployment);
  } finally {
    await deployment.close();
  }
});
