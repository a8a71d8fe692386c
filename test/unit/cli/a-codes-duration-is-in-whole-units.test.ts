/** The page of codes is printed and cut for customers, so the duration of a card is in the largest unit without a fraction. */
import assert from "node:assert/strict";
import test from "node:test";
import { codesAsPage } from "../../../src/cli/cards/export.ts";

test("a card's duration is in days, hours, minutes or seconds, whichever is the largest that gives a whole number", () => {
  const shown = (lasts_seconds: number) => {
    const body = { card: "pass", label: null, lasts_seconds, quota_usd: null, redeem_by: null };
    return /<p>pass, (.*)<\/p>/.exec(codesAsPage(body, [{ id: "code_1", code: "A" }]))?.[1];
  };
  assert.deepEqual([86_400, 2_592_000, 129_600, 3_600, 5_400, 90, 1].map(shown), [
    "1 day",
    "30 days",
    "36 hours",
    "1 hour",
    "90 minutes",
    "90 seconds",
    "1 second",
  ]);
});
