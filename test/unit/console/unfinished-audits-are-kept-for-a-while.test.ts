/** An unfinished audit waits for its next answer: for two minutes, for one answer, and with at most seven others. */
import assert from "node:assert/strict";
import test from "node:test";
import { KeptAudits } from "../../../src/console/routes/parts/kept-audits.ts";

function keptAt() {
  const time = { nowMs: 1_000 };
  return { time, kept: new KeptAudits<{ readonly id: string }>({ monotonicMs: () => time.nowMs }) };
}

test("an audit is taken once; another answer that asks for it meanwhile begins anew", () => {
  const { kept } = keptAt();
  const audit = { id: "a" };
  kept.keep(audit);
  assert.equal(kept.take("a"), audit);
  assert.equal(kept.take("a"), undefined);
  kept.keep(audit);
  assert.equal(kept.take("a"), audit);
});

test("an audit that nobody asks for is forgotten after two minutes, and not before", () => {
  const { kept, time } = keptAt();
  kept.keep({ id: "a" });
  time.nowMs += 119_999;
  assert.equal(kept.take("a")?.id, "a");
  kept.keep({ id: "a" });
  time.nowMs += 120_000;
  assert.equal(kept.take("a"), undefined);
});

test("of nine audits the one that nobody has asked for longest is forgotten", () => {
  const { kept } = keptAt();
  for (const id of "abcdefgh") kept.keep({ id });
  const first = kept.take("a");
  assert.ok(first);
  kept.keep(first);
  kept.keep({ id: "i" });
  assert.deepEqual(
    [..."abcdefghi"].filter((id) => kept.take(id) === undefined),
    ["b"],
  );
});
