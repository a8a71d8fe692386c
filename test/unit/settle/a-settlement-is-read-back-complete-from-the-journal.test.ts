/**
 * What the journal writes of a settlement is what a later process sends to the store: a member that is not written is money, a
 * limit or a cost that is lost with the process.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeCharge, encodeCharge, readCharge } from "../../../src/settle/journal/payload.ts";
import { JournalBrokenError } from "../../../src/settle/journal.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { leftUnpaid } from "../store/asks.ts";
import { askOf, ManualClock, openOn, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const TOKENS = { input: 1, cachedInput: 2, cacheWrite: 3, output: 4, reasoning: 5 };

/** Each member has a distinct value; no real settlement has all of them. */
const WHOLE: Required<SettleAsk> = {
  ...askOf(1),
  kind: "time_card",
  entitlement: "card_1",
  perKey: true,
  amount: nanoUsd(41n),
  absorbed: nanoUsd(42n),
  absorbedCause: "upstream_timeout",
  upstream: "east",
  tokensTaken: 43,
  tokensUsed: 44,
  tokensPerMinute: 45,
  counted: "key_1:day",
  tokens: TOKENS,
  voided: true,
  attempts: [{ upstream: "west", cause: "upstream_reset", amount: nanoUsd(46n), memo: '{"input":1}' }],
  costs: [
    {
      ...{ upstream: "east", model: "m-east", requests: 2, tokens: TOKENS },
      ...{ cost: nanoUsd(48n), absorbed: nanoUsd(47n), charged: true },
    },
  ],
  leftUnpaid: leftUnpaid(49n, 50n, { memo: '{"paid":"allowance_used"}', cost: 51n }),
  idempotency: { key: "a".repeat(64), fingerprint: "b".repeat(64), streamed: true, untilMs: 52 },
};

test("every member of a settlement is read back", () => {
  assert.deepEqual(decodeCharge(encodeCharge(WHOLE, {})), { ask: WHOLE, orphan: false });
});

test("a settlement without its optional members is read back without them, with the orphan flag", () => {
  assert.deepEqual(decodeCharge(encodeCharge(askOf(2), { orphan: true })), { ask: askOf(2), orphan: true });
});

test("the summary for a lookup in the store matches the whole record, whatever its names and their order are", () => {
  const nasty = 'a","amount":"7","b\\","tag":"x';
  const asks = [WHOLE, askOf(2), { ...askOf(3), group: nasty, model: nasty, keyId: nasty, entitlement: nasty }];
  for (const { requestId, tag, amount, ...rest } of asks) {
    const ask = { requestId, tag, amount, ...rest };
    const record = encodeCharge(ask, {});
    assert.deepEqual(readCharge(Buffer.from(record)), { requestId, tag, amount, record });
    // The same record as a version with another member order wrote it.
    const before = JSON.stringify({ ask: { ...JSON.parse(record).ask, requestId: undefined, id: 1 } });
    assert.equal(readCharge(Buffer.from(before)), undefined);
    const { attempts, ...others } = JSON.parse(record).ask;
    const other = JSON.stringify({ orphan: true, ask: { attempts, ...others } });
    assert.deepEqual(readCharge(Buffer.from(other)), { requestId, tag, amount, record: other });
  }
  assert.equal(readCharge(Buffer.from('{"ask":{"requestId":"1","tag":"t","admittedAtMs":1,"amount":"-7"')), undefined);
});

/** A settlement whose memo has this many characters of two bytes. */
const wordy = (number: number, chars: number): SettleAsk => ({ ...askOf(number), memo: "ä".repeat(chars) });

test("a memo beyond ASCII is measured in bytes, and only a record that is too long is refused", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const { journal } = await openOn(disk, clock, { bytesMax: 32 * 65_536 });
  const said = (ask: SettleAsk) => {
    journal.open({ voided: voidOf(Number.parseInt(ask.requestId, 16)), hold: nanoUsd(1n) });
    return journal.final(ask).then(
      () => "written",
      (error: unknown) => error,
    );
  };
  // Fewer characters than a record may have bytes, but more bytes.
  const tooLong = await said(wordy(2, 20_000));
  assert.ok(tooLong instanceof JournalBrokenError, String(tooLong));
  const outcomes = Promise.all([said(wordy(1, 15_000)), said(wordy(3, 10))]);
  await clock.advance(2);
  assert.deepEqual(await outcomes, ["written", "written"]);
  await journal.close();
  const { leftovers, alarms, journal: again } = await openOn(disk.afterKill(), clock, { bytesMax: 32 * 65_536 });
  assert.deepEqual(alarms, []);
  const finals = leftovers.filter(({ final }) => final).map(({ ask }) => ask);
  assert.deepEqual(finals, [wordy(1, 15_000), wordy(3, 10)]);
  await again.close();
});
