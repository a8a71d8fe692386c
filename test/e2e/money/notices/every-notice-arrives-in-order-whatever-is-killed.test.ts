/**
 * Two hundred charges take the balances of several accounts below their thresholds, while the gateway is killed
 * repeatedly and the receiver sometimes fails. Each notice that the ledger calls for arrives, those of one account in
 * order, and repeated deliveries have the same id (docs/failure-model.md row A4).
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { formatUsd } from "../../../../src/values/money.ts";
import { testConfig } from "../../../rig/config.ts";
import { type GatewayProcess, spawnGateway } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { admin, ask, chat, fundsOf, ledgerOf, type MoneyAccount, nano, openAccount } from "../shared/rig.ts";
import { type Receiver, startReceiver, webhookSecret } from "./receiver.ts";

const ACCOUNTS = 5;
const CHARGES = 40;
/**
 * Charges between two kills. With Redis the next gateway delivers some seconds later, when the last one's lease has
 * expired.
 */
const KILL_EVERY = { embedded: 25, redis: 40 };
/** Minimum number of messages between two kills: each gateway is killed while it delivers. */
const BETWEEN_KILLS = 6;
const FAIL_EVERY = 9;
const BELOW = 1_000_000_000n;
const BODY = chat({ maxTokens: 16 });

for (const store of ["embedded", "redis"] as const) {
  test(`${store}: no notice is missing or out of order, and repeated deliveries have one id`, (t) => play(t, store));
}

/** Starts one gateway after another and kills each in the middle of its work. */
class Killed {
  #current: Promise<GatewayProcess>;
  readonly #open: () => Promise<GatewayProcess>;
  readonly #receiver: Receiver;
  /** How many messages the receiver had at each kill. */
  readonly kills: number[] = [];

  constructor(receiver: Receiver, open: () => Promise<GatewayProcess>) {
    this.#receiver = receiver;
    this.#open = open;
    this.#current = open();
  }

  get gateway(): Promise<GatewayProcess> {
    return this.#current;
  }

  kill(): void {
    this.kills.push(this.#receiver.log.length);
    const before = this.#current;
    this.#current = before.then(async (gateway) => {
      await gateway.stop("SIGKILL");
      return this.#open();
    });
  }

  /** What fails because of a kill is sent again to the next gateway. */
  async surely<T>(work: (gateway: GatewayProcess) => Promise<T>): Promise<T> {
    for (;;) {
      const gateway = await this.#current;
      try {
        return await work(gateway);
      } catch (error) {
        if ((await this.#current) === gateway) throw error;
      }
    }
  }
}

async function play(t: TestContext, store: "embedded" | "redis"): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-notices-"));
  const simulator = await startSimulator();
  const redis = store === "redis" ? await startRedis() : undefined;
  const receiver = await startReceiver(webhookSecret("new"));
  let arrivals = 0;
  receiver.answer = () => (++arrivals % FAIL_EVERY === 0 ? { status: 500 } : { status: 204 });
  const config = testConfig(
    { upstreamUrl: simulator.url, dir, store: redis?.url },
    {
      notices: {
        url: receiver.url,
        secrets: [webhookSecret("old"), webhookSecret("new")],
        balance_below: formatUsd(BELOW),
      },
    },
  );
  const life = new Killed(receiver, () => spawnGateway(config));
  try {
    const accounts: MoneyAccount[] = [];
    for (let i = 0; i < ACCOUNTS; i++) accounts.push(await openAccount(await life.gateway, { funds: BELOW }));
    let charges = 0;
    const every = KILL_EVERY[store];
    let open = Promise.resolve();
    const spend = async ({ name, key }: MoneyAccount): Promise<void> => {
      for (let turn = 0; turn < CHARGES; turn++) {
        await open;
        // A kill may lose the answer but leave the charge; only the ledger counts in the end.
        await life.gateway.then((gateway) => ask(gateway, key, BODY)).catch(() => undefined);
        charges += 1;
        if (charges % every === 0) {
          const had = life.kills.at(-1) ?? 0;
          open = receiver.until(() => receiver.log.length >= had + BETWEEN_KILLS);
        }
        if (charges % every === 2 && charges > every) life.kill();
        await life.surely(async (gateway) => {
          const { balance } = await fundsOf(gateway, name);
          if (balance >= BELOW) return;
          const topup = { usd: formatUsd(BELOW - balance), id: `again-${turn}` };
          await admin(gateway, "POST", `/accounts/${name}/topups`, topup).catch((error: unknown) => {
            // Either this turn's top-up was made before the kill and another charge has come since; or it was made, and
            // a slow machine did not report in time that there is no replica to confirm it.
            if (!/id_used|not_confirmed/.test(String(error))) throw error;
          });
        });
      }
    };
    // Waits for all of them, even if one fails: one that continued would kill a gateway after the end of this test.
    for (const spent of await Promise.allSettled(accounts.map(spend)))
      if (spent.status === "rejected") throw spent.reason;
    assert.equal(charges, ACCOUNTS * CHARGES);
    receiver.answer = () => ({ status: 204 });
    const wanted = new Map<string, readonly string[]>();
    for (const { name } of accounts) wanted.set(name, await life.surely((gateway) => crossings(gateway, name)));
    await life.surely((gateway) => admin(gateway, "POST", "/notices/retry"));
    await receiver.until(() =>
      accounts.every(({ name }) => taken(receiver, name).length >= (wanted.get(name)?.length ?? 0)),
    );
    judge(t, receiver, wanted, life.kills);
  } finally {
    await (await life.gateway).stop();
    await receiver.close();
    await simulator.close();
    await redis?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The charges that took the balance from the threshold or above to below it, by the ledger. */
async function crossings(gateway: GatewayProcess, name: string): Promise<readonly string[]> {
  const found: string[] = [];
  let before = 0n;
  for (const { balance_usd, reference } of await ledgerOf(gateway, name)) {
    const balance = nano(balance_usd);
    if (before >= BELOW && balance < BELOW) found.push(reference);
    before = balance;
  }
  return found;
}

/** The messages that the receiver got for an account, each once, in the order of first delivery. */
function taken({ log }: Receiver, name: string): readonly string[] {
  const mine = log.filter(({ account, status, type }) => account === name && status < 300 && type === "balance_low");
  return [...new Set(mine.map(({ reference }) => reference))];
}

function judge(
  t: TestContext,
  receiver: Receiver,
  wanted: ReadonlyMap<string, readonly string[]>,
  kills: readonly number[],
): void {
  assert.deepEqual(
    receiver.log.filter(({ type }) => type === "unverified"),
    [],
    "each notice is signed",
  );
  for (const [name, references] of wanted) assert.deepEqual(taken(receiver, name), references, name);
  const bodies = new Map<string, string>();
  let again = 0;
  for (const { id, body } of receiver.log) {
    if (bodies.has(id)) again += 1;
    assert.equal(bodies.get(id) ?? body, body, `${id} is the same in each delivery`);
    bodies.set(id, body);
  }
  const all = [...wanted.values()].flat();
  assert.equal(bodies.size, new Set(all).size, "each notice has an id of its own");
  const failed = receiver.log.filter(({ status }) => status >= 300).length;
  assert.ok(all.length > (ACCOUNTS * CHARGES) / 2, `${all.length} notices`);
  assert.ok(kills.length >= 4 && failed > 0, `${kills.length} kills, ${failed} answers of 500`);
  t.diagnostic(`${all.length} notices, ${kills.length} kills, ${failed} answers of 500, ${again} sent again`);
  for (const at of kills.slice(0, 3)) {
    t.diagnostic(`around a kill, behind message ${at}:`);
    for (const { status, id, account, reference } of receiver.log.slice(Math.max(0, at - 4), at + 8))
      t.diagnostic(`  ${status} ${id} ${account} ${reference}`);
  }
}
