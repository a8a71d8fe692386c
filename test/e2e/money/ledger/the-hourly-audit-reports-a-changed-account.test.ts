/** The automatic audit: it runs a minute after the start and every hour, and reports to two gauges and the log. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { testConfig } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { refusingPort } from "../../../rig/refusing-port.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { webhookSecret } from "../notices/receiver.ts";

const NOT_BALANCED = "the ledger of an account does not balance";

/**
 * Waits until a gauge has this value. By then the pass is over, except where the gauge counts findings, which it shows
 * at once.
 */
async function untilGauge(here: GatewayHere, name: string, value: number): Promise<void> {
  const line = `tollgate_${name} ${value}\n`;
  while (!(await here.gateway.metrics.page()).body.includes(line)) await setImmediate();
}

test("a doctored account raises the gauge at the next audit, and is named in the log", async (t) => {
  const clock = new HandClock();
  // No receiver takes notices here, so that they can be read in the queue.
  const notices = { url: `http://127.0.0.1:${await refusingPort(t)}/`, secrets: [webhookSecret("one")] };
  const here = await startGatewayHere({ clock, config: (places) => testConfig(places, { notices }) });
  t.after(() => here.close());
  assert.ok(here.settings.store.kind === "embedded");
  const db = new DatabaseSync(join(here.settings.store.dir, "tollgate.db"));
  t.after(() => db.close());

  const sound = await here.account({ usd: "0.99" });
  const doctored = await here.account();
  // More lines than the audit reads at a time.
  for (let index = 0; index < 250; index++) {
    await here.store.credit(doctored.tag, { id: `pay-${index}`, amount: 1n, kind: "topup", note: "" });
  }
  clock.advance(60_000);
  await untilGauge(here, "accounts_low", 1);
  await untilGauge(here, "ledger_unbalanced_accounts", 0);
  assert.ok(!here.log.some(({ msg }) => msg === NOT_BALANCED));

  db.prepare("UPDATE ledger SET amount = amount + 1 WHERE tag = ? AND seq = 240").run(doctored.tag);
  const firstOver = clock.nextTimerOf(3_600_000);
  clock.advance(3_600_000);
  const line = await here.logged(({ msg }) => msg === NOT_BALANCED);
  assert.equal(line.account, `acct_${doctored.tag}`);
  assert.equal((line.findings as { line: number }[])[0]?.line, 240);
  // The gauge rises as soon as something is found; the audit is over when it sets the timer for the next hour.
  await untilGauge(here, "ledger_unbalanced_accounts", 1);
  await firstOver;
  const over = clock.nextTimerOf(3_600_000);
  clock.advance(3_600_000);
  await over;
  assert.equal(here.log.filter(({ msg }) => msg === NOT_BALANCED).length, 2);
  const { notices: told } = await here.store.readNotices("", 5);
  assert.deepEqual(
    told.map(({ kind, data }) => [kind, data.finding, data.account_id, data.findings]),
    [["books_off", "ledger_unbalanced", `acct_${doctored.tag}`, "4"]],
    "the finding is reported once",
  );

  db.prepare("UPDATE ledger SET amount = amount - 1 WHERE tag = ? AND seq = 240").run(doctored.tag);
  await here.store.credit(sound.tag, { id: "more", amount: 1_000_000_000n, kind: "topup", note: "" });
  clock.advance(3_600_000);
  await untilGauge(here, "ledger_unbalanced_accounts", 0);
  await untilGauge(here, "accounts_low", 0);
});

test("time cards that end soon are counted", async (t) => {
  const clock = new HandClock();
  const here = await startGatewayHere({ clock });
  t.after(() => here.close());
  const { tag } = await here.account();
  const card = { card: "day", plan: "pro", group: "cards", afterPrevious: false, quota: undefined, reference: "test" };
  const day = 86_400_000;
  for (const [index, lastsMs] of [day / 2, day, 6 * day, 8 * day].entries())
    await here.store.grant(tag, { ...card, id: `card-${index}`, lastsMs });
  clock.advance(60_000);
  await untilGauge(here, 'entitlements_expiring{within="1d"}', 2);
  await untilGauge(here, 'entitlements_expiring{within="7d"}', 3);
});

test("a gateway that closes during an audit does not wait for the audit", async () => {
  const clock = new HandClock();
  const here = await startGatewayHere({ clock });
  for (let index = 0; index < 20; index++) await here.account();
  clock.advance(60_000);
  await here.close();
});
