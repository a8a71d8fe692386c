/**
 * A gateway on the embedded store is killed fifteen times under load, and a separate log of the clients' answers is compared
 * with the ledger: no charge is missing, none is double, and the balance is the sum.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";
import { openStore } from "../../../src/store/open.ts";
import { printRequestId, type RequestId } from "../../../src/values/request-id.ts";
import { type GatewayProcess, makeAccount, settingsOf, spawnGateway, testConfig } from "../../rig/gateway.ts";
import { seeded } from "./rig.ts";

const KILLS = 15;
const CLIENTS = 8;
/** Answers between two kills: at least one, and fewer than this. */
const ANSWERS_MAX = 40;
const SEED = 20_261_121;

/** Requests whose client has received the whole answer, and the cost in that answer. */
type Truth = Map<string, bigint>;

test(`${KILLS} kills lose and double no charge`, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-kills-"));
  const simulator = await startSimulator();
  const text = testConfig({ upstreamUrl: simulator.url, dir });
  const openHere = () => openStore(settingsOf(text).store);
  let gateway: GatewayProcess | undefined;
  t.after(async () => {
    await gateway?.stop("SIGKILL");
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const before = await openHere();
  const account = await makeAccount(before);
  await before.close();

  const random = seeded(SEED);
  const truth: Truth = new Map();
  let killed = 0;
  let begun = 0;
  for (; killed <= KILLS; killed++) {
    const running = await spawnGateway(text);
    gateway = running;
    let left = 1 + Math.floor(random() * (ANSWERS_MAX - 1));
    const enough = Promise.withResolvers<void>();
    const stopped = { now: false };
    const client = async (number: number): Promise<void> => {
      while (!stopped.now) {
        begun++;
        if (!(await one(running.url, account.key, (begun + number) % 2 === 0, truth))) return;
        if (--left === 0) enough.resolve();
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
    await enough.promise;
    // The last process is stopped normally, after its clients.
    stopped.now = killed === KILLS;
    if (!stopped.now) await running.stop("SIGKILL");
    await Promise.all(clients);
  }
  if (gateway?.output().includes("settling")) await gateway.line("what the last process left is settled");
  assert.equal(await gateway?.stop(), 0);

  const store = await openHere();
  const state = await store.inspect(account.tag);
  await store.close();
  assert.ok(state);
  const lines = state.ledger.filter((line) => line.kind === "usage");
  const charged = new Map<string, bigint>();
  let double = 0;
  for (const { reference, amount } of lines) {
    const id = printRequestId(reference as RequestId);
    if (charged.has(id)) double++;
    charged.set(id, amount);
  }
  const missing = [...truth].filter(([id, cost]) => charged.get(id) !== cost);
  t.diagnostic(JSON.stringify({ begun, answered: truth.size, lines: lines.length, missing: missing.length, double }));
  assert.deepEqual(missing, []);
  assert.equal(double, 0);
  assert.ok(truth.size > KILLS);
  const sum = state.ledger.reduce((total, { kind, amount }) => total + (kind === "topup" ? amount : -amount), 0n);
  assert.equal(state.account.balance, sum);
  assert.deepEqual(state.holds, []);
});

/** One request; false when the gateway has died. Its cost goes into the log once the end of the answer has been read. */
async function one(url: string, key: string, stream: boolean, truth: Truth): Promise<boolean> {
  const options = stream ? { stream, stream_options: { include_usage: true } } : {};
  let id: string | null;
  let text: string;
  try {
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hello" }], ...options }),
    });
    assert.equal(reply.status, 200);
    id = reply.headers.get("x-request-id");
    text = await reply.text();
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return false;
  }
  if (stream && !text.includes("[DONE]")) return true;
  const [, input, output] = /"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(text) ?? [];
  assert.ok(id && input && output, text);
  truth.set(id, BigInt(input) * 1_000n + BigInt(output) * 10_000n);
  return true;
}
