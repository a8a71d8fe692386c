import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { readingBudget } from "../../../src/accept/envelope/pdf-size.ts";
import { textTokens } from "../../../src/accept/envelope/text-density.ts";
import { readEnvelope } from "../../../src/accept/envelope.ts";
import { isRefusal } from "../../../src/values/errors.ts";

const LIST = "1,2,3,".repeat(20_000);
const PROSE = readFileSync("docs/configuration.md", "utf8");
const CODE = readFileSync("src/gateway.ts", "utf8");

const jsonOf = (content: unknown) =>
  JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content }] });
const bodyOf = (content: unknown) => Buffer.from(jsonOf(content));

function textOf(body: Buffer): { readonly textBytes: number; readonly textTokens: number } {
  const read = readEnvelope("chat", body);
  if (isRefusal(read)) assert.fail(JSON.stringify(read));
  return read.envelope;
}

/** Tokens per byte of text. */
function densityOf(body: Buffer): number {
  const { textBytes, textTokens } = textOf(body);
  return textTokens / textBytes;
}

test("text with one token per byte is recognized, and prose and code are not mistaken for it", () => {
  for (let i = 0; i < 50; i++) {
    assert.ok(densityOf(bodyOf(LIST)) > 0.75);
    assert.ok(densityOf(bodyOf(PROSE)) < 0.35);
    assert.ok(densityOf(bodyOf(CODE)) < 0.4);
  }
});

test("a list of numbers and the names of members count as text, too", () => {
  const tool = { type: "function", function: { name: "f", parameters: { enum: Array(20_000).fill(1) } } };
  const body = (more: object) => Buffer.from(jsonOf("hi").replace(/}$/, `,${JSON.stringify(more).slice(1)}`));
  const listed = densityOf(body({ tools: [tool] }));
  assert.ok(listed > 0.75, `${listed}`);
  const named = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`${i % 10},`.repeat(5) + i, ""]));
  // The true density is 0.44 tokens per byte; a sample was within 0.04 of that in thousands of draws.
  const seen = densityOf(body({ metadata: named }));
  assert.ok(seen > 0.36, `${seen}`);
});

test("rare scripts count one token per byte", () => {
  const mongolian = String.fromCodePoint(...Array.from({ length: 4_000 }, (_, i) => 0x1820 + (i % 80)));
  assert.ok(densityOf(bodyOf(mongolian)) > 0.9);
});

test("wide characters count the same, written as they are or as escapes", () => {
  const chinese = bodyOf("这是一个很长的中文文本。".repeat(3_000));
  const escaped = chinese.toString().replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const [plain, twice] = [textOf(chinese).textTokens, textOf(Buffer.from(escaped)).textTokens];
  assert.ok(plain > 30_000 && plain < 45_000, `${plain}`);
  assert.ok(Math.abs(twice - plain) < 0.1 * plain, `${twice} ${plain}`);
});

const base64 = (seed: number) => Buffer.alloc(90_000, seed).toString("base64");
const image = (seed: number) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${base64(seed)}` } });
const text = (part: string) => ({ type: "text", text: part });

test("media does not count as text, wherever it is and however its slashes are written", () => {
  const around = (part: string) => jsonOf([image(1), text(part), image(1), image(2)]);
  const slashes = (json: string) => json.replaceAll("/", "\\/");
  for (let i = 0; i < 20; i++) {
    for (const write of [String, slashes]) {
      assert.ok(densityOf(Buffer.from(write(around(PROSE)))) < 0.4);
      assert.ok(densityOf(Buffer.from(write(around(LIST)))) > 0.6);
    }
  }
});

test("text that equals media counts as text", () => {
  const { url } = image(7).image_url;
  const once = textOf(bodyOf([image(7), text("hi")]));
  const copied = textOf(bodyOf([image(7), text(url)]));
  assert.equal(copied.textBytes - once.textBytes, url.length - 2);
  assert.ok(copied.textTokens > url.length / 8, `${copied.textTokens}`);
});

test("media that two members name is subtracted from the text once", () => {
  const file = { type: "input_file", file_data: base64(9), source: { type: "base64", data: base64(8) } };
  const { textBytes } = textOf(bodyOf([{ type: "file", file }, text(LIST)]));
  assert.ok(textBytes > LIST.length && textBytes < LIST.length + 500, `${textBytes}`);
});

test("samples are taken at random positions", () => {
  // Prose at the start of each 64th, where fixed samples would be taken, and a list everywhere else.
  const piece = `${PROSE.slice(0, 300)}${"1,".repeat(1_850)}`;
  const found = Array.from({ length: 101 }, () => densityOf(bodyOf(piece.repeat(64)))).toSorted((a, b) => a - b);
  assert.ok((found[5] as number) > 0.6, `${found[5]}`);
  assert.notEqual(found[0], found[100]);
});

test("a body with too many pieces of text counts one token per byte", () => {
  const list = { type: "function", function: { name: "f", parameters: { enum: Array(50_001).fill("a") } } };
  const body = Buffer.from(jsonOf(PROSE).replace(/}$/, `,"tools":${JSON.stringify([list])}}`));
  assert.equal(densityOf(body), 1);
});

test("a short text is not sampled", () => {
  assert.equal(textOf(bodyOf("1,".repeat(1_900))).textTokens, 0);
});

test("files are looked at within a budget; beyond it each byte is a token", () => {
  const budget = readingBudget();
  const prose = Buffer.from(PROSE);
  assert.equal(textTokens(prose, budget), Math.ceil(prose.length / 3));
  const list = textTokens(Buffer.from(LIST), budget);
  assert.ok(list > 0.75 * LIST.length, `${list}`);
  assert.equal(textTokens(prose, { ...budget, windows: 5 }), prose.length);
});
