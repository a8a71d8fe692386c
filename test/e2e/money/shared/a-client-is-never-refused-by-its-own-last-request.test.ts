// ARCHITECTURE.md promise 5: a client that sends one request after another through one process is never refused because
// its last request has not been settled. Its funds cover one hold, and its group allows one concurrent request.
import assert from "node:assert/strict";
import test from "node:test";
import {
  type Answer,
  ask,
  chat,
  type Deployment,
  ledgerOf,
  openAccount,
  priceOf,
  startDeployment,
  untilNothingHeld,
} from "./rig.ts";

const REQUESTS = 300;
/** The usage of the answers: it costs next to nothing compared with the hold. */
const USAGE = { input: 0, cached: 1, output: 1 };

const GROUPS = ["money", "one-at-a-time"] as const;

async function oneAfterAnother(deployment: Deployment, group: string, stream: boolean): Promise<void> {
  const [gateway] = deployment.gateways;
  assert.ok(gateway);
  const body = chat({ model: "chat-cheap", maxTokens: 16, stream });
  const { hold, cost } = await priceOf(gateway, body);
  const spent = cost * BigInt(REQUESTS);
  assert.ok(cost > 0n && spent < hold, "two holds do not fit at once");
  const funds = hold + spent;
  const { name, key } = await openAccount(gateway, { funds, group });
  const wrong: string[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const problem = problemOf(await ask(gateway, key, body), stream);
    if (problem) wrong.push(`${i}: ${problem}`);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(await untilNothingHeld(gateway, name), { balance: hold, held: 0n });
  const lines = (await ledgerOf(gateway, name)).filter((line) => line.kind === "usage");
  assert.equal(lines.length, REQUESTS);
  assert.ok(lines.every((line) => line.usage?.hold === String(hold)));
}

/** What is wrong with an answer, if anything. */
function problemOf({ status, text, headers }: Answer, stream: boolean): string | undefined {
  if (status !== 200) return `${status} ${text}`;
  if (headers["x-tollgate-clamped"] !== undefined) return `clamped: ${headers["x-tollgate-clamped"]}`;
  return stream && !text.endsWith("data: [DONE]\n\n") ? "no end" : undefined;
}

async function inARow(store: "embedded" | "redis"): Promise<void> {
  const deployment = await startDeployment({ store });
  deployment.simulator.program({ text: "Yes.", usage: USAGE }, { times: Infinity });
  try {
    await Promise.all(
      GROUPS.flatMap((group) => [oneAfterAnother(deployment, group, false), oneAfterAnother(deployment, group, true)]),
    );
  } finally {
    await deployment.close();
  }
}

const WHAT = "300 requests in a row, whole and streamed, with and without a concurrency limit of one";

test(`embedded: ${WHAT}`, () => inARow("embedded"));

test(`Redis: ${WHAT}`, () => inARow("redis"));
