/**
 * ARCHITECTURE.md promise 1: if the charges of an account exceed its holds and its funds repeatedly, its requests are
 * held at the highest possible cost from then on. Here the operator has limited a file to 3,000 tokens on a route, so
 * ten of twelve requests run on a balance of 0.20 USD at a cost of 7.50; this must not happen again and again. Row 64
 * of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { formatUsd, nanoUsd } from "../../../../src/values/money.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { pdf } from "../../../rig/pdf.ts";
import { ask, assertAtRest, bodyOf, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { limitSent, pricedConfig } from "./rig.ts";

const CONTEXT = 400_000;
const OUTPUT = 32_000;

function config(places: ConfigPlaces): string {
  return pricedConfig(places, {
    models: {
      "chat-figure": {
        plans: ["free"],
        price: { input: "3", cache_write: "3", cache_write_1h: "3", output: "15" },
        context_tokens: CONTEXT,
        max_output_tokens: OUTPUT,
        routes: [{ upstream: "up-chat" }],
        media_tokens: { file: 3000, file_max: 3000 },
      },
    },
  });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const FILE = `data:application/pdf;base64,${pdf({ pages: 55 }).toString("base64")}`;
const BOOK: Fields = {
  model: "chat-figure",
  max_tokens: 500,
  messages: [{ role: "user", content: [{ type: "file", file: { filename: "a.pdf", file_data: FILE } }] }],
};

let payments = 0;

async function pay(account: TestAccount, usd: bigint): Promise<void> {
  const payment = { id: `more-${payments++}`, amount: nanoUsd(usd), kind: "topup", note: "" } as const;
  assert.equal((await here.store.credit(account.tag, payment)).outcome, "credited");
}

/**
 * Twelve requests with 250,000 tokens each, this many of them at the upstream before any ends. @returns how many ran,
 * and the sum of the lines written after `after`.
 */
async function twelve(
  account: TestAccount,
  after: number,
  atOnce = 0,
): Promise<[ran: number, charged: string, absorbed: string]> {
  here.simulator.program({ text: "ok", usage: { input: 250_000, output: 20 } }, { times: 12 });
  here.simulator.hold();
  const seen = here.simulator.requests.length;
  const running = Array.from({ length: 12 }, () => ask(here, "chat", account.key, BOOK));
  await here.simulator.waitFor(seen + atOnce);
  here.simulator.release();
  const replies = await Promise.all(running);
  for (const reply of replies) await reply.text();
  here.simulator.clearPrograms();
  await assertAtRest(here, account);
  const lines = (await usageLines(here, account)).slice(after);
  const sum = (kind: string) =>
    formatUsd(nanoUsd(lines.filter((line) => line.kind === kind).reduce((total, { amount }) => total + amount, 0n)));
  return [replies.filter(({ status }) => status === 200).length, sum("usage"), sum("absorbed")];
}

test("twelve concurrent requests can exceed their holds once; then the next ones must cover the whole context", async () => {
  const account = await here.account({ usd: "0.20" });
  const [ran, charged, absorbed] = await twelve(account, 0, 10);
  assert.ok(ran >= 10, `${ran} ran`);
  assert.deepEqual([charged, absorbed], ["0.20", formatUsd(nanoUsd(BigInt(ran) * 750_300_000n - 200_000_000n))]);
  const before = (await usageLines(here, account)).length;
  for (let again = 0; again < 3; again++) {
    await pay(account, 200_000_000n);
    assert.deepEqual(await twelve(account, before), [0, "0.00", "0.00"], "on 0.20, 0.40 and 0.60");
  }
  await pay(account, 1_400_000_000n);
  assert.deepEqual(await twelve(account, before), [1, "0.7503", "0.00"], "on 2.00");
});

test("the highest possible cost is one token per byte and all that the model can produce, for each choice", async () => {
  const account = await here.account({ usd: "0.01" });
  let ran = 0;
  const chat = (usd: bigint, input: number, fields: Fields) => async () => {
    await pay(account, usd);
    here.simulator.program({ text: "ok", usage: { input, output: 2 }, ignoreLimit: true });
    const reply = await ask(here, "chat", account.key, { model: "chat-figure", max_tokens: 100, ...fields });
    assert.equal(reply.status, 200, await reply.text());
    await assertAtRest(here, account);
    const line = (await usageLines(here, account)).findLast(({ kind }) => kind === "usage");
    const { hold, held } = memoOf(line);
    assert.equal(held, ran++ < 3 ? undefined : "dearest");
    return BigInt(hold as string);
  };
  for (let i = 0; i < 3; i++) assert.ok((await chat(100_000_000n, 100_000, {})()) < 2_000_000n);
  const bytes = BigInt(JSON.stringify(bodyOf("chat", { model: "chat-figure", max_tokens: 100, n: 2 })).length);
  assert.equal(await chat(5_000_000_000n, 20, { n: 2 })(), bytes * 3_000n + 2n * BigInt(OUTPUT) * 15_000n);
  assert.equal(limitSent(here), 100, "the limit of the client is unchanged");
  // A stream without a limit gets what the model can produce, and all of it is held.
  const open = { stream: true, max_tokens: undefined };
  const openBytes = BigInt(JSON.stringify(bodyOf("chat", { model: "chat-figure", ...open })).length);
  assert.equal(await chat(1n, 20, open)(), openBytes * 3_000n + BigInt(OUTPUT) * 15_000n);
  assert.equal(limitSent(here), OUTPUT);
  // Funds that cover less lower the limit to what is left after the input at its highest cost.
  const { balance = nanoUsd(0n) } = (await here.store.getAccount(account.tag)) ?? {};
  const asked = { max_tokens: 30_000 };
  const askedBytes = BigInt(JSON.stringify(bodyOf("chat", { model: "chat-figure", ...asked })).length);
  const funds = askedBytes * 3_000n + 1_000n * 15_000n;
  await here.store.credit(account.tag, { id: "rest", amount: funds - balance - 1n, kind: "adjust", note: "" });
  assert.equal(await chat(1n, 20, asked)(), funds);
  assert.equal(limitSent(here), 1_000);
});
