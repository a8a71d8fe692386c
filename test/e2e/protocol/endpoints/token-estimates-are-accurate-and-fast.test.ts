/** The local estimate is near the known count of known texts, and never blocks the event loop. */
import assert from "node:assert/strict";
import test from "node:test";
import { estimateInput, estimateText, isCount } from "../../../../src/convert/count.ts";
import { workTimer } from "../../../rig/stopwatch.ts";

const MEDIA = { image: 1_600, file: 3_000 };
const CARD = `{"id":42,"name":"tea","tags":["green","loose"],"price":{"amount":"12.50","currency":"EUR"},"stock":true}`;
const PROSE =
  "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. " +
  "However little known the feelings or views of such a man may be on his first entering a neighbourhood, this truth is so " +
  "well fixed in the minds of the surrounding families, that he is considered as the rightful property of some one or other " +
  "of their daughters.";
const CODE = `export function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) throw new RangeError("not a number");
    total += value;
  }
  return total;
}
`;
const CHINESE = "我们在图书馆学习中文，因为那里很安静，也有很多书可以看。";

/** Counts of the o200k_base encoding, determined once with an exact tokenizer. */
const KNOWN = { prose: [PROSE, 77], code: [CODE, 55], json: [CARD, 34], chinese: [CHINESE, 19] } as const;

for (const [name, [text, tokens]] of Object.entries(KNOWN)) {
  test(`${name} is estimated within a third of its count`, () => {
    const estimate = estimateText(text);
    assert.ok(Math.abs(estimate - tokens) <= tokens / 3, `${estimate} for ${tokens}`);
  });
}

const turn = (content: unknown) => ({ messages: [{ role: "user", content }] });
const messages = (json: Record<string, unknown>) => estimateInput("messages", json, MEDIA);
const responses = (json: Record<string, unknown>) => estimateInput("responses", json, MEDIA);

test("the smallest request counts a few tokens, never zero", () => {
  assert.ok(messages(turn("")) >= 1);
  assert.ok(messages(turn("hello")) <= 12);
});

test("system text, turns, tools, calls and results are all counted", () => {
  const base = messages(turn("hello"));
  const tool = {
    name: "get_weather",
    description: "Weather of a city",
    input_schema: { type: "object", properties: { city: {} } },
  };
  assert.ok(messages({ ...turn("hello"), system: PROSE }) > base + 50);
  assert.ok(messages({ ...turn("hello"), system: [{ type: "text", text: PROSE }] }) > base + 50);
  assert.ok(messages({ ...turn("hello"), tools: [tool] }) > base + 15);
  const call = [{ type: "tool_use", id: "toolu_1", name: "edit", input: { old_string: CODE, new_string: PROSE } }];
  assert.ok(messages(turn(call)) > base + 110);
  const result = [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: PROSE }] }];
  assert.ok(messages(turn(result)) > base + 50);
});

test("audio counts like a file", () => {
  const sound = { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } };
  const asked = (content: readonly object[]) => responses({ input: [{ role: "user", content }] });
  assert.ok(asked([sound]) >= asked([]) + MEDIA.file / 3);
});

test("a count among very many member names is not used, and not parsed", () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `"n${index}":0`).join(",");
  assert.equal(isCount(Buffer.from(`{"input_tokens":5,${names}}`)), false);
});

test("both protocols give the same count for one conversation", () => {
  const asMessages = messages({ system: PROSE, ...turn(CODE) });
  const asResponses = responses({
    instructions: PROSE,
    input: [{ role: "user", content: [{ type: "input_text", text: CODE }] }],
  });
  assert.equal(asResponses, asMessages);
});

test("media are counted per item, whatever their bytes", () => {
  const data = "iVBORw0KGgo".repeat(10_000);
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data } };
  const base = messages(turn([]));
  assert.equal(messages(turn([image, image])), base + 2 * MEDIA.image);
  assert.equal(messages(turn([{ type: "tool_result", tool_use_id: "t", content: [image] }])), base + MEDIA.image);
  assert.equal(messages(turn([pdf])), base + MEDIA.file);
  const text = { type: "document", source: { type: "text", media_type: "text/plain", data: PROSE } };
  assert.equal(messages(turn([text])), messages(turn(PROSE)));
  const input = [{ role: "user", content: [{ type: "input_image", image_url: `data:image/png;base64,${data}` }] }];
  assert.equal(responses({ input }), base + MEDIA.image);
});

test("signatures and encrypted reasoning are not counted, because no model reads them", () => {
  const secret = "A1b2".repeat(5_000);
  const thinking = { type: "thinking", thinking: "hm", signature: secret };
  assert.equal(messages(turn([thinking])), messages(turn("hm")));
  assert.equal(messages(turn([{ type: "redacted_thinking", data: secret }])), messages(turn("")));
  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: secret };
  assert.equal(responses({ input: [reasoning] }), messages(turn("")));
});

test("a long text is estimated from samples to the same result as from the whole", () => {
  const mixed = (PROSE + CODE).repeat(300);
  const whole = 300 * estimateText(PROSE + CODE);
  const sampled = estimateText(mixed);
  assert.ok(Math.abs(sampled - whole) < whole / 20, `${sampled} for ${whole}`);
});

for (const [name, text] of Object.entries({
  prose: PROSE.repeat(3_000),
  "one letter": "a".repeat(1_000_000),
  spaces: " ".repeat(1_000_000),
  punctuation: ".;(){}".repeat(170_000),
  accents: "äé".repeat(500_000),
  emoji: "😀👍🏽".repeat(170_000),
  chinese: CHINESE.repeat(35_000),
})) {
  test(`a megabyte of ${name} does not block the event loop`, () => {
    const json = JSON.parse(JSON.stringify(turn(text))) as Record<string, unknown>;
    messages(json); // The first run compiles.
    const best = Math.min(...Array.from({ length: 3 }, () => timed(() => messages(json))));
    assert.ok(best < 50, `${best.toFixed(1)} ms`);
  });
}

function timed(task: () => void): number {
  const worked = workTimer();
  task();
  return worked();
}

test("deep nesting is handled", () => {
  let content: unknown = [{ type: "text", text: PROSE }];
  for (let depth = 0; depth < 5_000; depth++) content = [{ type: "tool_result", content }];
  assert.ok(messages(turn(content)) > 50);
});

for (const [reply, good] of [
  ['{"input_tokens":0}', true],
  ['{"input_tokens":7,"context_management":{}}', true],
  ['{"input_tokens":-1}', false],
  ['{"input_tokens":1.5}', false],
  ['{"input_tokens":"7"}', false],
  ['{"tokens":7}', false],
  ["[7]", false],
  ["<html>", false],
] as const) {
  test(`${reply} is ${good ? "a" : "no"} count`, () => assert.equal(isCount(Buffer.from(reply)), good));
}
