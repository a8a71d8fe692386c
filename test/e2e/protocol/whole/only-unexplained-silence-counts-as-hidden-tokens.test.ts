/**
 * The time in which a model may have thought: time without output while the stream was read, minus one second per
 * silence.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AttemptCounts } from "../../../../src/convert/exchange.ts";
import { endedSilence, Silence } from "../../../../src/request/silence.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";

function counts(deltas: number, output?: number): AttemptCounts {
  const usage = output === undefined ? undefined : { ...NO_USAGE, output };
  return { usage, final: false, produced: { bytes: deltas, tokens: deltas, deltas } };
}

test("each silence counts from its second second on, starting with the request itself", () => {
  const silence = new Silence(1_000);
  assert.equal(silence.ms(2_000), 0);
  assert.equal(silence.ms(5_000), 3_000);
  silence.saw(counts(1), 5_000);
  assert.equal(silence.ms(5_900), 3_000);
  silence.saw(counts(2), 5_900);
  assert.equal(silence.ms(8_900), 5_000);
});

test("an event without output does not end a silence", () => {
  const silence = new Silence(0);
  silence.saw(counts(0), 4_000);
  assert.equal(silence.ms(6_000), 5_000);
});

test("a count that has grown covers what was hidden before it", () => {
  const silence = new Silence(0);
  silence.saw(counts(0, 700), 9_000);
  assert.equal(silence.ms(9_000), 0);
  silence.saw(counts(1, 700), 12_000);
  assert.equal(silence.ms(12_000), 2_000);
});

test("time in which the client does not read is no silence: output may be waiting", () => {
  const silence = new Silence(0);
  silence.holdBack(true, 3_000);
  assert.equal(silence.ms(60_000), 2_000);
  silence.holdBack(false, 60_000);
  assert.equal(silence.ms(60_500), 2_000);
  assert.equal(silence.ms(63_000), 4_000);
});

test("silence after the client's end does not count, and a count that comes then covers the silence before", () => {
  const then = { ...counts(1, 5), silentMs: 4_000 };
  assert.equal(endedSilence(then, { ...counts(3, 5), silentMs: 9_000 }).silentMs, 4_000);
  assert.equal(endedSilence(then, { ...counts(3, 6), silentMs: 9_000 }).silentMs, 0);
});
