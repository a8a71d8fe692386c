/**
 * docs/failure-model.md rows A3 and A4 with whole processes: `kill -9` in the middle of a stream, and between FINAL and the
 * settlement.
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";
import type { Store } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import type { AccountState } from "../../../src/store/records.ts";
import { each } from "../../rig/config.ts";
import {
  type GatewayProcess,
  makeAccount,
  settingsOf,
  spawnGateway,
  type TestAccount,
  testConfig,
} from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";

const SETTLED = "what the last process left is settled";

interface Scene {
  readonly account: TestAccount;
  readonly simulator: Awaited<ReturnType<typeof startSimulator>>;
  readonly redis: Awaited<ReturnType<typeof startRedis>> | undefined;
  start(): Promise<GatewayProcess>;
  /** The account's state. No gateway may run on an embedded store when it is read. */
  state(): Promise<AccountState>;
}

/** @param stepTokens output tokens of the first hold of a stream without a limit, and of each extension. */
async function scene(t: TestContext, kind: "embedded" | "redis", stepTokens = 8_192): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-kill-"));
  const simulator = await startSimulator();
  const redis = kind === "redis" ? await startRedis() : undefined;
  const text = testConfig({ upstreamUrl: simulator.url, dir, store: redis?.url }, ({ models }) => ({
    models: each(Object.keys(models), { default_output_tokens: stepTokens }),
  }));
  const processes: GatewayProcess[] = [];
  t.after(async () => {
    await Promise.all(processes.map((process) => process.stop("SIGKILL")));
    await redis?.stop();
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const withStore = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStore(settingsOf(text).store);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const account = await withStore((store) => makeAccount(store));
  return {
    account,
    simulator,
    redis,
    async start() {
      const process = await spawnGateway(text);
      processes.push(process);
      return process;
    },
    async state() {
      const state = await withStore((store) => store.inspect(account.tag));
      assert.ok(state);
      return state;
    },
  };
}

function ask(url: string, key: string, body: object): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hello" }], max_tokens: 500, ...body }),
  });
}

/** Resolves in a later turn of the gateway, since it records what a client has received in the turn in which it was sent. */
async function laterTurn({ adminUrl }: GatewayProcess): Promise<void> {
  await (await fetch(`${adminUrl}/healthz`)).text();
}

/**
 * Asserts that there is exactly one usage line, no hold and no request in flight, and that the balance is the sum of the
 * ledger.
 */
function chargedOnce(state: AccountState): { amount: bigint; memo: Record<string, unknown> } {
  const usage = state.ledger.filter((line) => line.kind === "usage");
  assert.equal(usage.length, 1);
  assert.deepEqual([state.holds, state.inFlight, state.account.held], [[], 0, 0n]);
  const [line] = usage;
  const funds = state.ledger.find(({ kind }) => kind === "topup")?.amount;
  assert.ok(line && funds !== undefined);
  assert.equal(state.account.balance, funds - line.amount);
  return { amount: line.amount, memo: JSON.parse(line.memo) };
}

for (const kind of ["embedded", "redis"] as const) {
  test(`${kind}: a gateway killed in the middle of a stream charges once, for the output up to the last checkpoint`, async (t) => {
    const { account, simulator, start, state } = await scene(t, kind);
    simulator.program({
      text: "one two three four five six seven",
      pace: { betweenMs: 2 },
      fault: { stallAfterEvents: 5 },
    });
    const first = await start();
    const reply = await ask(first.url, account.key, { stream: true });
    // The reader stays connected: a client that disconnects would end the request before the kill.
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
    for (let hasText = false; !hasText; ) {
      const { value } = await reader.read();
      assert.ok(value);
      hasText = /"content":"[^"]/.test(Buffer.from(value).toString());
    }
    await laterTurn(first);
    await first.stop("SIGKILL");
    await reader.cancel().catch(() => undefined);
    const second = await start();
    await second.line(SETTLED);
    await second.stop();
    const { amount, memo } = chargedOnce(await state());
    assert.equal(memo.ended, "orphaned");
    assert.equal(memo.counted, "estimate");
    assert.ok(amount > 0n && amount < BigInt(memo.hold as string));
    // A third process has nothing to recover.
    const third = await start();
    assert.ok(!third.output().includes("settling"));
    await third.stop();
    chargedOnce(await state());
  });

  test(`${kind}: a gateway killed after the hold has grown charges from the last checkpoint, within the grown hold`, async (t) => {
    const { account, simulator, start, state } = await scene(t, kind, 200);
    simulator.program({
      text: "word ".repeat(1_200),
      deltaChars: 100,
      pace: { betweenMs: 2 },
      fault: { stallAfterEvents: 51 },
    });
    const first = await start();
    const reply = await ask(first.url, account.key, { stream: true, max_tokens: undefined });
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader();
    for (let words = 0; words < 1_000; ) {
      const { value } = await reader.read();
      assert.ok(value);
      words += Buffer.from(value).toString().split("word").length - 1;
    }
    await laterTurn(first);
    await first.stop("SIGKILL");
    await reader.cancel().catch(() => undefined);
    const second = await start();
    await second.line(SETTLED);
    await second.stop();
    const { amount, memo } = chargedOnce(await state());
    assert.deepEqual([memo.ended, memo.counted], ["orphaned", "estimate"]);
    // 5,000 bytes were produced and the last checkpoint is at most 2,048 bytes old; how many arrive at once depends on the
    // machine.
    assert.ok(Number(memo.output) > (5_000 - 2_048) / 4 && Number(memo.output) <= 1_250, `${memo.output}`);
    assert.ok(amount > 7_000_000n && amount <= BigInt(memo.hold as string), "the charge is far above the first hold");
  });

  test(`${kind}: a gateway killed before the first output gives the hold back and charges nothing`, async (t) => {
    const { account, simulator, start, state } = await scene(t, kind);
    simulator.hold();
    const first = await start();
    const reply = ask(first.url, account.key, {});
    const failed = assert.rejects(reply);
    await simulator.waitFor(1);
    await first.stop("SIGKILL");
    await failed;
    simulator.release();
    const second = await start();
    await second.line(SETTLED);
    await second.stop();
    const { ledger, holds, inFlight } = await state();
    assert.deepEqual([ledger.filter((line) => line.kind === "usage"), holds, inFlight], [[], [], 0]);
  });
}

test("a gateway killed between FINAL and the settlement charges once, exactly the cost of the client's answer", async (t) => {
  const { account, simulator, redis, start, state } = await scene(t, "redis");
  assert.ok(redis);
  simulator.hold();
  const first = await start();
  const reply = ask(first.url, account.key, {});
  await simulator.waitFor(1);
  redis.freeze();
  simulator.release();
  const answer = await reply;
  assert.equal(answer.status, 200, "the charge is in the journal, so the client does not wait for the store");
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
  await first.stop("SIGKILL");
  redis.thaw();
  const second = await start();
  await second.line(SETTLED);
  await second.stop();
  const { amount, memo } = chargedOnce(await state());
  assert.equal(memo.counted, "upstream");
  assert.equal(amount, BigInt(usage.prompt_tokens) * 1_000n + BigInt(usage.completion_tokens) * 10_000n);
});

test("a second gateway on the same journal refuses to start", async (t) => {
  const { start } = await scene(t, "redis");
  await start();
  await assert.rejects(
    start(),
    /another process \(\d+\) has the folder \S+ with the journal; give each process its own journal\.dir/,
  );
});
