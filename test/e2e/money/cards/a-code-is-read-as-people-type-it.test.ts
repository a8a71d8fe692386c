// Codes are typed from paper and pasted from chats. A mistyped code is refused without asking the store.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { newCode, readCode } from "../../../../src/values/code.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const fresh = () => newCode(Date.now(), randomBytes);

/** All symbols without the dashes. */
const bare = (text: string): string => text.replaceAll("-", "");

test("a code has 16 symbols and a check symbol, none of which looks like another", () => {
  const seen = new Set<string>();
  for (let i = 0; i < 2_000; i++) {
    const { text, id } = fresh();
    assert.match(text, /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}-[0-9A-HJKMNP-TV-Z]$/);
    assert.match(id, /^code_[0-9A-Za-z]{16}$/);
    for (const symbol of bare(text)) seen.add(symbol);
  }
  assert.deepEqual([...seen].sort().join(""), ALPHABET);
});

test("a code and its id do not reveal its hash, and ids sort by the time of creation", () => {
  const zeros = (count: number) => new Uint8Array(count);
  const { text, id, hash } = newCode(0, zeros);
  assert.equal(text, "0000-0000-0000-0000-0");
  assert.equal(id, "code_0000000000000000");
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.ok(newCode(Date.UTC(2026, 0, 1), zeros).id < newCode(Date.UTC(2026, 0, 1) + 1, zeros).id);
  assert.ok(newCode(Date.UTC(2026, 0, 1), zeros).id < newCode(Date.UTC(2126, 0, 1), zeros).id);
});

/** As a Chinese or Japanese keyboard types it. */
const fullWidth = (text: string): string =>
  text.replace(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0));

test("case, spaces, dashes, look-alike and full-width characters do not matter", () => {
  for (let i = 0; i < 300; i++) {
    const { text, hash } = fresh();
    const plain = bare(text);
    const typed = [
      text,
      plain,
      plain.toLowerCase(),
      ` ${text.replaceAll("-", " ")}\n`,
      text.replaceAll("-", "\u2013"),
      text.replaceAll("-", "\u00a0-\u200b"),
      plain.replaceAll("0", "O").replaceAll("1", "l"),
      plain.replaceAll("0", "o").replaceAll("1", "I").replaceAll("V", "u"),
      [...plain].join(" "),
      fullWidth(text),
      fullWidth(plain.toLowerCase()),
    ];
    for (const one of typed) assert.equal(readCode(one), hash, JSON.stringify(one));
  }
});

test("one wrong symbol is always detected as a typo, and so are two swapped symbols", () => {
  for (let i = 0; i < 20; i++) {
    const symbols = [...bare(fresh().text)];
    for (const [at, right] of symbols.entries()) {
      for (const wrong of ALPHABET) {
        if (wrong !== right) assert.equal(readCode(symbols.with(at, wrong).join("")), "typo");
      }
      for (const [other, there] of symbols.entries()) {
        if (there !== right) assert.equal(readCode(symbols.with(at, there).with(other, right).join("")), "typo");
      }
    }
  }
});

test("input that does not have the form of a code is rejected, whatever it is", () => {
  const { text } = fresh();
  const none = [
    "",
    " ",
    "-",
    "sk-",
    text.slice(0, -1),
    `${text}0`,
    text.replace(/./, "*"),
    text.replace(/./, "é"),
    "ß".repeat(17),
  ];
  for (const one of [...none, "0".repeat(65), " ".repeat(100_000)]) assert.equal(readCode(one), undefined, one);
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 80 }), (typed) => {
      const read = readCode(typed);
      assert.ok(read === undefined || read === "typo" || /^[0-9a-f]{64}$/.test(read));
    }),
  );
});
