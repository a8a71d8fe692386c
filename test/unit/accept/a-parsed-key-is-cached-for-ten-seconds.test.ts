import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { rememberingReader } from "../../../src/accept/key.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";

const aKey = () => newKey(newAccountTag(randomBytes), randomBytes).text;

/** A clock whose timers run only when the test runs them. */
function heldClock() {
  const timers: { ms: number; task: () => void }[] = [];
  const after = (ms: number, task: () => void) => {
    timers.push({ ms, task });
    return () => {};
  };
  return { timers, after };
}

test("the reading of a key is reused for ten seconds, and then the key is read again", () => {
  const clock = heldClock();
  const read = rememberingReader(clock);
  const [text, other] = [aKey(), aKey()];
  const first = read(text);
  assert.deepEqual(first, readKey(text));
  assert.equal(read(text), first);
  read(other);
  assert.equal(clock.timers.length, 1);
  assert.equal(clock.timers[0]?.ms, 10_000);
  clock.timers[0]?.task();
  const anew = read(text);
  assert.notEqual(anew, first);
  assert.deepEqual(anew, first);
  assert.equal(clock.timers.length, 2);
});

test("a text that is no key or has a wrong checksum is not remembered", () => {
  const clock = heldClock();
  const read = rememberingReader(clock);
  const text = aKey();
  const noise = text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");
  for (let i = 0; i < 2; i++) {
    assert.equal(read(noise), "noise");
    assert.equal(read(`${text} `), undefined);
  }
  assert.equal(clock.timers.length, 0);
});

test("a thousand keys are remembered at a time", () => {
  const read = rememberingReader(heldClock());
  const texts = Array.from({ length: 1_000 }, aKey);
  const keys = texts.map((text) => read(text));
  assert.ok(texts.every((text, i) => read(text) === keys[i]));
  read(aKey());
  assert.ok(texts.every((text, i) => read(text) !== keys[i]));
});
