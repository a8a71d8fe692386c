/** docs/failure-model.md rows 26, 30 and 32: the form of a key, and that nothing of another form is accepted. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import test from "node:test";
import { crc32 } from "node:zlib";
import {
  base62,
  hashKey,
  newAccountTag,
  newKey,
  pooled,
  randomBase62,
  readKey,
  tagOfId,
} from "../../../src/values/key.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** CRC-32 in base62, computed independently, so that the checksum is not compared with itself. */
function checksumByHand(text: string): string {
  let rest = crc32(text);
  let out = "";
  for (let i = 0; i < 6; i++) {
    out = DIGITS[rest % 62] + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

test("CRC-32 is the IEEE one", () => assert.equal(crc32("123456789"), 0xcbf43926));

test("a new key is sk-, tag, secret and a checksum of the first 45 characters, and is stored as SHA-256", () => {
  for (let round = 0; round < 200; round++) {
    const tag = newAccountTag(randomBytes);
    const { text, hash, id } = newKey(tag, randomBytes);
    assert.match(text, /^sk-[0-9A-Za-z]{48}$/);
    assert.equal(text.slice(3, 13), tag);
    assert.equal(text.slice(45), checksumByHand(text.slice(0, 45)));
    assert.equal(hash, createHash("sha256").update(text).digest("hex"));
    assert.match(id, new RegExp(`^key_${tag}[0-9A-Za-z]{8}$`));
    assert.ok(!id.includes(text.slice(13, 21)), "the id contains nothing of the secret");
    assert.deepEqual(readKey(text), { tag, hash });
    assert.equal(tagOfId(id), tag);
  }
});

test("a small checksum is padded with zeros", () => {
  let found = false;
  for (let i = 0; i < 5_000 && !found; i++) {
    const first45 = `sk-${String(i).padStart(42, "0")}`;
    if (crc32(first45) >= 62 ** 5) continue;
    found = true;
    const text = first45 + checksumByHand(first45);
    assert.match(text.slice(45), /^0/);
    assert.deepEqual(readKey(text), { tag: text.slice(3, 13), hash: hashKey(text) });
  }
  assert.ok(found);
});

test("row 30: a key with one changed character is invalid", () => {
  const { text } = newKey(newAccountTag(randomBytes), randomBytes);
  for (let i = 3; i < text.length; i++) {
    const other = text[i] === "x" ? "y" : "x";
    assert.equal(readKey(text.slice(0, i) + other + text.slice(i + 1)), "noise", `position ${i}`);
  }
  // Swapping two equal characters leaves the same key.
  const swapped = text.slice(0, 4) + text[5] + text[4] + text.slice(6);
  assert.deepEqual(readKey(swapped), swapped === text ? readKey(text) : "noise");
});

test("rows 26 and 32: a text of another form is no key, and is not trimmed into one", () => {
  const { text } = newKey(newAccountTag(randomBytes), randomBytes);
  const bad = [
    "",
    "sk-",
    text.slice(0, -1),
    `${text}0`,
    ` ${text}`,
    `${text} `,
    `${text}\n`,
    `\t${text}`,
    text.toUpperCase(),
    `Bearer ${text}`,
  ];
  bad.push(
    `sk_${text.slice(3)}`,
    text.replace("sk-", "sk–"),
    `${text.slice(0, 20)}\u200b${text.slice(21)}`,
    `${text.slice(0, 20)}ａ${text.slice(21)}`,
  );
  bad.push(
    "sk-}{a:victim}..".padEnd(51, "0"),
    `sk-*${"0".repeat(47)}`,
    `sk-${"0".repeat(1e6)}`,
    `${text.slice(0, 50)}\r\n`,
    `${text}, ${text}`,
  );
  for (const candidate of bad) {
    assert.equal(readKey(candidate), undefined, JSON.stringify(candidate.slice(0, 60)));
  }
});

test("the tag in an id is read, and an id of another form has none", () => {
  assert.equal(tagOfId("acct_0123456789"), "0123456789");
  assert.equal(tagOfId("key_012345678900000000"), "0123456789");
  for (const bad of [
    "",
    "acct_012345678",
    "acct_0123456789x",
    "key_0123456789",
    "key_0123456789}{a:xx0",
    "xacct_0123456789",
    "acct_0123456789\n",
  ]) {
    assert.equal(tagOfId(bad), undefined, bad);
  }
});

test("base62 uses all 62 digits in order, padded on the left", () => {
  assert.equal(Array.from({ length: 62 }, (_, i) => base62(BigInt(i), 1)).join(""), DIGITS);
  assert.equal(base62(0n, 6), "000000");
  assert.equal(base62(62n, 4), "0010");
  assert.equal(base62(0xffffffffn, 6), "4gfFC3");
  assert.equal(base62(62n ** 8n, 1), "100000000");
  assert.equal(base62(62n ** 16n + 61n, 20), `0001${"0".repeat(15)}z`);
  for (let i = 0; i < 500; i++) {
    const value = BigInt(`0x${randomBytes(1 + (i % 18)).toString("hex")}`);
    const back = [...base62(value, 24)].reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
    assert.equal(back, value);
  }
});

test("pooled random bytes are used in order, and none of them twice", () => {
  let next = 0;
  const counting = (count: number) => Uint8Array.from({ length: count }, () => next++ % 251);
  const take = pooled(counting);
  const got = Array.from({ length: 1_000 }, () => [...take(16)]);
  // 4,096 bytes are 256 times 16.
  got.forEach((bytes, i) => {
    assert.deepEqual(
      bytes,
      Array.from({ length: 16 }, (_, j) => (16 * i + j) % 251),
    );
  });
  assert.equal(take(5_000).length, 5_000);
});

test("random characters are unbiased: each byte value below 248 counts four times, the rest is discarded", () => {
  const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);
  let calls = 0;
  const text = randomBase62(248, () => {
    calls++;
    return everyByte;
  });
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  assert.equal(calls, 1);
  assert.equal(counts.size, 62);
  assert.deepEqual(new Set(counts.values()), new Set([4]));
});

test("a source that gives only bytes to discard is asked again", () => {
  const sources = [new Uint8Array(20).fill(255), new Uint8Array(20).fill(248), new Uint8Array(20).fill(61)];
  assert.equal(
    randomBase62(10, () => sources.shift() as Uint8Array),
    "z".repeat(10),
  );
  assert.equal(sources.length, 0);
});
