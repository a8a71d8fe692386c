// ARCHITECTURE.md promise 5: with funds for a single hold, and with a single place, each request of a client that asks
// one thing after another through one process finds the one before settled.
import assert from "node:assert/strict";
import test from "node:test";
import {
  type Answer,
  ask,
  chat,
  type House,
  ledgerOf,
  openAccount,
  priceOf,
  startHouse,
  untilNothingHeld,
} from "./house.ts";

const REQUESTS = 300;
/** The answers' usage: what one costs is next to nothing beside what it holds. */
const USAGE = { input: 0, cached: 1, output: 1 };

const GROUPS = ["money", "one-at-a-time"] as const;

async function oneAfterAnother(house: House, group: string, stream: boolean): Promise<void> {
  const [gateway] = house.gateways;
  assert.ok(gateway);
  const body = chat({ model: "chat-cheap", maxTokens: 16, stream });
  const { hold, cost } = await priceOf(gateway, body);
  const spent = cost * BigInt(REQUESTS);
  assert.ok(cost > 0n && spent < hold, "two holds must never fit at once");
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
  const house = await startHouse({ store });
  house.simulator.program({ text: "Yes.", usage: USAGE }, { times: Infinity });
  try {
    await Promise.all(
      GROUPS.flatMap((group) => [oneAfterAnother(house, group, false), oneAfterAnother(house, group, true)]),
    );
  } finally {
    await house.close();
  }
}

const WHAT = "300 in a row, whole and streamed, with and without a single place";

test(`embedded: ${WHAT}`, () => inARow("embedded"));

test(`Redis: ${WHAT}`, () => inARow("redis"));
