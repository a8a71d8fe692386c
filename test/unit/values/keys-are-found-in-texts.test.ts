/**
 * docs/failure-model.md row H3: a key is found in a text in every coding and next to any characters, and nothing else is
 * mistaken for one.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { newAccountTag, newKey, randomBase62 } from "../../../src/values/key.ts";
import { containsKey } from "../../../src/values/key-search.ts";
import { workTimer } from "../../rig/stopwatch.ts";

const seeded = (seed: number) => (count: number) =>
  Uint8Array.from({ length: count }, (_, at) => (seed * (at + 7)) % 248);
const key = fc.integer({ min: 1, max: 1_000_000 }).map((seed) => {
  const tag = newAccountTag(seeded(seed));
  return newKey(tag, seeded(seed + 1)).text;
});
const beside = fc.string({ unit: "binary-ascii", maxLength: 12 }).map((text) => text.replaceAll("%", ""));

const CODINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  base64: (text) => Buffer.from(text, "latin1").toString("base64"),
  base64url: (text) => Buffer.from(text, "latin1").toString("base64url"),
  percent: (text) => [...text].map((each) => `%${each.charCodeAt(0).toString(16).padStart(2, "0")}`).join(""),
};

for (const [name, code] of Object.entries(CODINGS)) {
  test(`row H3: a key is found in ${name} coding`, () => {
    fc.assert(
      fc.property(key, beside, beside, beside, (text, front, behind, around) => {
        assert.ok(containsKey(`${around} ${code(`${front}${text}${behind}`)} ${around}`));
        assert.ok(containsKey(`x_${code(`${front}${text}${behind}`)}`), "next to characters of the same alphabet");
        const percented = CODINGS.percent as (text: string) => string;
        assert.ok(containsKey(percented(code(text))));
      }),
    );
  });
}

test("row H3: a key is found behind up to three percent-encodings", () => {
  const text = newKey(newAccountTag(randomBytes), randomBytes).text;
  for (const dash of ["-", "%2d", "%252d", "%25252d"]) assert.ok(containsKey(text.replace("-", dash)), dash);
});

test("row H3: an encoded key may start anywhere in a run of its alphabet", () => {
  const text = newKey(newAccountTag(randomBytes), randomBytes).text;
  for (const front of ["", "a", "ab", "abc", "abcd"]) {
    assert.ok(containsKey(front + Buffer.from(text).toString("base64")), front);
  }
});

test("row H3: a mistyped key counts as a key if it stands alone, and not next to further characters of its alphabet", () => {
  const text = newKey(newAccountTag(randomBytes), randomBytes).text;
  const mistyped = `${text.slice(0, -1)}${text.endsWith("0") ? "1" : "0"}`;
  for (const found of [mistyped, `.${mistyped}-`, `key=${mistyped};`]) assert.ok(containsKey(found), found);
  for (const other of [`ta${mistyped}`, `${mistyped}0`, text.slice(0, -1), text.replace("sk-", "SK-"), text.slice(3)]) {
    assert.ok(!containsKey(other), other);
  }
});

test("row H3: random text is never taken for a key", () => {
  for (let round = 0; round < 2_000; round += 1) {
    assert.ok(!containsKey(`task-${randomBase62(64, randomBytes)} ${randomBytes(200).toString("base64")}`));
  }
});

test("row 59: 100 kB of any text are searched in less than a second", () => {
  const texts = ["A", "%25", "sk-", `sk-${"A".repeat(48)}`, `${"x".repeat(67)}.`, "c2st", "%", "NrL/"];
  for (const piece of texts) {
    const text = piece.repeat(100_000 / piece.length);
    const worked = workTimer();
    containsKey(text);
    assert.ok(worked() < 1_000, piece);
  }
});
