/**
 * docs/translation-rules.md rule 39: text of a chat server between `<think>` and `</think>` at the beginning of a
 * message is reasoning if the route says so, however the tags are cut, streamed and whole. Tags later in the text are
 * text.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ReplyPlan } from "../../../../src/convert/hub.ts";
import { decodePayloads, gather, outline, planFor, wholeOf } from "./decoding.ts";

type InText = "none" | "tags" | "unopened";

function planOf(inText: InText): ReplyPlan {
  const plan = planFor("chat");
  return { ...plan, reasoning: { ...plan.reasoning, inText } };
}

/** The reasoning and the text of a reply. */
function heard(items: ReturnType<typeof gather>["items"]): readonly [string, string] {
  const of = (type: "reasoning" | "text") => items.map((item) => (item.type === type ? item.text : "")).join("");
  return [of("reasoning"), of("text")];
}

const CASES: readonly (readonly [InText, string, reasoning: string, text: string])[] = [
  ["tags", "<think>a < b, so\n</think>\n\nYes.", "a < b, so\n", "Yes."],
  ["tags", "\n <think></think>Yes.", "", "Yes."],
  ["tags", "<thought>hm</thought>Yes.", "hm", "Yes."],
  ["tags", "<thought>hm</thought>Then </think>.", "hm", "Then </think>."],
  ["tags", "Use <think> and </think> as tags.", "", "Use <think> and </think> as tags."],
  ["tags", "<think>hm</think>Then </think> again <think>.", "hm", "Then </think> again <think>."],
  ["tags", "<thin ice", "", "<thin ice"],
  ["tags", "<think>cut at the li", "cut at the li", ""],
  ["tags", "<think>cut in its tag</thi", "cut in its tag</thi", ""],
  ["tags", "  blanks first", "", "  blanks first"],
  ["unopened", "hm, let me see</think>\n\nYes.", "hm, let me see", "Yes."],
  ["unopened", "<think>hm</think>Yes.", "hm", "Yes."],
  ["tags", "<thi", "", "<thi"],
  ["unopened", "<thi", "<thi", ""],
  ["none", "<think>hm</think>Yes.", "", "<think>hm</think>Yes."],
];

const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

for (const [inText, content, reasoning, text] of CASES) {
  test(`thinking_in_text ${inText}: reasoning and text of ${JSON.stringify(content)} are separated`, () => {
    const plan = planOf(inText);
    const choices = [{ message: { role: "assistant", content }, finish_reason: "stop" }];
    assert.deepEqual(heard(wholeOf({ choices }, plan).items), [reasoning, text]);
    for (let size = 1; size <= content.length; size++) {
      const pieces = Array.from({ length: Math.ceil(content.length / size) }, (_, i) =>
        chunk({ content: content.slice(i * size, (i + 1) * size) }),
      );
      const { events } = decodePayloads([...pieces, chunk({}, "stop"), "[DONE]"], plan);
      assert.deepEqual(heard(gather(events).items), [reasoning, text], `in pieces of ${size}`);
    }
  });
}

test("reasoning is streamed, and only what may be a tag is held back", () => {
  const { events } = decodePayloads(
    [
      ...["<think>", "one ", "two", "</think>", "Yes"].map((content) => chunk({ content })),
      chunk({}, "stop"),
      "[DONE]",
    ],
    planOf("tags"),
  );
  const deltas = events.flatMap((event) => (event.type === "reasoning-delta" ? [event.text] : []));
  assert.deepEqual(deltas, ["one ", "two"]);
});

test("a call ends reasoning without an end tag", () => {
  const tool_calls = [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }];
  const { events } = decodePayloads(
    [chunk({ content: "<think>hm </" }), chunk({ tool_calls }), chunk({}, "tool_calls"), "[DONE]"],
    planOf("tags"),
  );
  assert.deepEqual(outline(events), [
    ...["reply-start", "reasoning-start", "reasoning-delta", "reasoning-end"],
    ...["tool-start", "tool-delta", "tool-end", "reply-stop", "reply-end"],
  ]);
  assert.deepEqual(heard(gather(events).items), ["hm </", ""]);
});

test("Mistral's parts of type thinking are reasoning and those of type text are text, in deltas and whole", () => {
  const content = [
    {
      type: "thinking",
      thinking: [
        { type: "text", text: "h" },
        { type: "text", text: "m" },
      ],
    },
    { type: "text", text: "Yes." },
  ];
  const plan = planOf("none");
  const choices = [{ message: { role: "assistant", content }, finish_reason: "stop" }];
  assert.deepEqual(heard(wholeOf({ choices }, plan).items), ["hm", "Yes."]);
  const pieces = content.map((part) => chunk({ content: [part] }));
  const { events } = decodePayloads([...pieces, chunk({}, "stop"), "[DONE]"], plan);
  assert.deepEqual(heard(gather(events).items), ["hm", "Yes."]);
});

test("a long run of blanks is text, and is not held back for a tag", () => {
  const blanks = Array.from({ length: 300 }, () => chunk({ content: " " }));
  const { events } = decodePayloads(
    [...blanks, chunk({ content: "<think>x</think>" }), chunk({}, "stop"), "[DONE]"],
    planOf("tags"),
  );
  assert.deepEqual(heard(gather(events).items), ["", `${" ".repeat(300)}<think>x</think>`]);
});

test("text that might have become a tag comes before the refusal that follows it", () => {
  const plan = planOf("tags");
  const choices = [{ message: { role: "assistant", content: "<thi", refusal: "No." }, finish_reason: "stop" }];
  const types = (items: ReturnType<typeof gather>["items"]) => items.map(({ type }) => type);
  assert.deepEqual(types(wholeOf({ choices }, plan).items), ["text", "refusal"]);
  const deltas = [chunk({ content: "<thi" }), chunk({ refusal: "No." }), chunk({}, "stop"), "[DONE]"];
  assert.deepEqual(types(gather(decodePayloads(deltas, plan).events).items), ["text", "refusal"]);
});
