import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { sampledTokens } from "../../../src/accept/envelope/text-density.ts";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

const LIST = "1,2,3,".repeat(20_000);
const PROSE = readFileSync("README.md", "utf8");
const CODE = readFileSync("src/gateway.ts", "utf8");

const bodyOf = (content: unknown) =>
  Buffer.from(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content }] }));

/** Tokens for each byte of text. */
function densityOf(body: Buffer): number {
  const read = readEnvelope("chat", body);
  if (isRefusal(read)) assert.fail(JSON.stringify(read));
  return read.envelope.textTokens / read.envelope.textBytes;
}

test("text of a token a byte is seen, and prose and code are left alone", () => {
  for (let i = 0; i < 50; i++) {
    assert.ok(densityOf(bodyOf(LIST)) > 0.75);
    assert.ok(densityOf(bodyOf(PROSE)) < 0.35);
    assert.ok(densityOf(bodyOf(CODE)) < 0.4);
  }
});

test("wide characters weigh the same as themselves and as escapes", () => {
  const chinese = "这是一个很长的中文文本。".repeat(3_000);
  const plain = densityOf(bodyOf(chinese));
  const escaped = bodyOf(chinese)
    .toString()
    .replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // Six bytes for what is three.
  const twice = densityOf(Buffer.from(escaped)) * 2;
  assert.ok(plain > 0.3 && plain < 0.45, `${plain}`);
  assert.ok(Math.abs(twice - plain) < 0.1 * plain, `${twice} ${plain}`);
});

test("media is no text, wherever it stands", () => {
  const image = (seed: number) => ({
    type: "image_url",
    image_url: { url: `data:image/png;base64,${Buffer.alloc(90_000, seed).toString("base64")}` },
  });
  const text = (part: string) => ({ type: "text", text: part });
  for (let i = 0; i < 50; i++) {
    const prose = densityOf(bodyOf([image(1), text(PROSE), image(1), image(2)]));
    assert.ok(prose < 0.4, `${prose}`);
    const list = densityOf(bodyOf([image(1), text(LIST), image(1), image(2)]));
    assert.ok(list > 0.6, `${list}`);
  }
});

test("what is looked at differs from time to time", () => {
  // Prose exactly where a fixed choice would look, at the start of each 32nd, and a list everywhere else.
  const piece = `${PROSE.slice(0, 300)}${"1,".repeat(1_850)}`;
  const body = Buffer.from(piece.repeat(32));
  assert.ok(sampledTokens(body, [], () => 0) < 0.45 * body.length);
  const sorted = Array.from({ length: 101 }, () => sampledTokens(body, [], Math.random)).toSorted((a, b) => a - b);
  assert.ok((sorted[5] as number) > 0.6 * body.length, `${sorted[5]}`);
});

test("a short text is not looked at, nor an empty body", () => {
  assert.equal(sampledTokens(Buffer.from("1,".repeat(2_000)), [], Math.random), 0);
  assert.equal(sampledTokens(Buffer.alloc(0), [], Math.random), 0);
});
