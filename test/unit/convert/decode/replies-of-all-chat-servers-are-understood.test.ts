/**
 * What chat servers add to their replies or leave out, whole and streamed (docs/translation-rules.md rules 38 to 46).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodePayloads, decodeWhole, gather, outline, planFor, wholeOf } from "./decoding.ts";

const PLAN = planFor("chat");
const IMAGE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const END = [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"];

/** Decodes one message whole and as one delta, and checks that the results are the same. */
function itemsOf(body: object, choice: object = {}) {
  const whole = wholeOf({ choices: [{ index: 0, message: body, finish_reason: "stop", ...choice }] }, PLAN);
  const { events } = decodePayloads([{ choices: [{ index: 0, delta: body, ...choice }] }, ...END], PLAN);
  assert.deepEqual(gather(events).items, whole.items);
  return whole.items;
}

test("reasoning is read once, under either name", () => {
  for (const body of [{ reasoning: "hm" }, { reasoning_content: "hm" }, { reasoning: "hm", reasoning_content: "hm" }]) {
    assert.deepEqual(itemsOf(body), [
      { type: "reasoning", text: "hm", opaque: undefined, native: "hm", redacted: false },
    ]);
  }
});

const thoughts = (body: object) => itemsOf(body).map((item) => item.type === "reasoning" && item.text);
const detail = (text: string, index?: number) => ({ type: "reasoning.text", text, index });

test("reasoning in a list is read if no other form has it, with its blocks separated by blank lines", () => {
  const summary = { type: "reasoning.summary", summary: "b", index: 0 };
  const sealed = { type: "reasoning.encrypted", data: "x", index: 1 };
  assert.deepEqual(thoughts({ reasoning_details: [detail("a", 0), summary, sealed] }), ["a\n\nb"]);
  assert.deepEqual(thoughts({ reasoning_details: [detail("a", 0), detail("b", 0), detail("c", 1)] }), ["ab\n\nc"]);
  const thinking_blocks = [
    { type: "thinking", thinking: "a", signature: "s" },
    { type: "redacted_thinking", data: "x" },
  ];
  assert.deepEqual(thoughts({ thinking_blocks }), ["a"]);
  assert.deepEqual(thoughts({ thinking_blocks: [...thinking_blocks, thinking_blocks[0]] }), ["a\n\na"]);
  assert.deepEqual(thoughts({ thinking_blocks, reasoning_details: [detail("a")] }), ["a"]);
  assert.deepEqual(thoughts({ thinking_blocks, reasoning_content: "a" }), ["a"]);
});

test("deltas of a listed block are one text, whichever form repeats it", () => {
  const streams = [
    [{ reasoning_details: [detail("h", 0)] }, { reasoning_details: [detail("m", 0)] }],
    [{ thinking_blocks: [{ thinking: "h" }] }, { thinking_blocks: [{ thinking: "m" }] }],
    [{ reasoning_details: [detail("hm")] }, { reasoning: "hm" }],
    [{ reasoning: "hm" }, { reasoning_details: [detail("hm")] }],
    [{ reasoning_content: "h", thinking_blocks: [{ thinking: "h" }] }, { reasoning_content: "m" }],
    [{ reasoning_details: [detail("hm", 0)] }, { thinking_blocks: [{ thinking: "hm" }] }],
  ];
  for (const deltas of streams) {
    const payloads = [...deltas, { content: "x" }].map((delta) => ({ choices: [{ index: 0, delta }] }));
    const { items } = gather(decodePayloads([...payloads, ...END], PLAN).events);
    assert.deepEqual(
      items.map((item) => "text" in item && item.text),
      ["hm", "x"],
    );
  }
});

test("content may be a list of parts", () => {
  const content = [{ type: "text", text: "a" }, { type: "image" }, null, { type: "text", text: "b" }];
  assert.deepEqual(
    itemsOf({ content }).map((item) => item.type === "text" && item.text),
    ["ab"],
  );
});

test("content may have parts of the responses type, parts without a type, or be one part instead of a list", () => {
  const textIn = (content: unknown) => itemsOf({ content }).map((item) => item.type === "text" && item.text);
  assert.deepEqual(textIn([{ type: "output_text", text: "a" }, { text: "b" }, { type: "audio", text: "c" }]), ["ab"]);
  assert.deepEqual(textIn({ type: "text", text: "a" }), ["a"]);
  assert.deepEqual(
    itemsOf({ content: { type: "thinking", thinking: { text: "hm" } } }).map(({ type }) => type),
    ["reasoning"],
  );
  assert.deepEqual(itemsOf({ content: IMAGE }), [{ type: "image", url: IMAGE.image_url.url }]);
});

test("empty strings and nulls open no block", () => {
  assert.deepEqual(
    itemsOf({ role: "assistant", content: "", reasoning_content: "", refusal: null, tool_calls: [] }),
    [],
  );
  assert.deepEqual(itemsOf({ content: null, reasoning_content: null, function_call: null, tool_calls: null }), []);
});

test("log probabilities and web sources are read", () => {
  const url_citation = { url: "https://a.test", title: "A", start_index: 0, end_index: 2 };
  const content = [{ token: "hi", logprob: -0.1, bytes: [104, 105], top_logprobs: [] }];
  const annotations = [{ type: "url_citation", url_citation }, { type: "file_citation" }];
  assert.deepEqual(itemsOf({ content: "hi", annotations }, { logprobs: { content } }), [
    {
      type: "text",
      text: "hi",
      startsMessage: true,
      citations: [{ url: "https://a.test", title: "A", startIndex: 0, endIndex: 2 }],
      logprobs: content,
    },
  ]);
});

test("a message or a text instead of a delta is read at once", () => {
  const tool_calls = ["a", "b"].map((name) => ({ id: name, function: { name, arguments: "{}" } }));
  const message = { role: "assistant", reasoning: "hm", content: "hi", tool_calls };
  for (const choice of [{ message }, { text: "hi" }, { message: { role: "assistant" }, text: "hi" }]) {
    const whole = wholeOf({ choices: [{ index: 0, ...choice, finish_reason: "stop" }] }, PLAN);
    const { events, decoder } = decodePayloads(
      [{ choices: [{ index: 0, ...choice, finish_reason: "stop" }] }, "[DONE]"],
      PLAN,
    );
    assert.deepEqual(gather(events).items, whole.items);
    assert.equal(whole.items.length, "text" in choice ? 1 : 4);
    assert.ok(decoder.counts().produced.tokens > 0);
  }
});

test("a message after deltas adds only what the deltas have not sent", () => {
  const message = { role: "assistant", content: "hi", reasoning: "hm", images: [IMAGE] };
  const said = [{ reasoning_content: "hm" }, { content: "h" }, { content: "i" }];
  const payloads = [...said.map((delta) => ({ choices: [{ index: 0, delta }] })), { choices: [{ index: 0, message }] }];
  assert.deepEqual(
    gather(decodePayloads([...payloads, ...END], PLAN).events).items.map((item) => item.type),
    ["reasoning", "text", "image"],
  );
});

test("a refusal in the model's words does not change the stop reason", () => {
  assert.deepEqual(itemsOf({ content: null, refusal: "no" }), [{ type: "refusal", text: "no" }]);
  const reply = wholeOf({ choices: [{ message: { refusal: "no" }, finish_reason: "stop" }] }, PLAN);
  assert.equal(reply.stop.reason, "end");
});

test("known and unknown finish reasons are read", () => {
  const reasonOf = (finish_reason: unknown) =>
    wholeOf({ choices: [{ message: { content: "x" }, finish_reason }] }, PLAN).stop.reason;
  const words = ["stop", "length", "max_tokens", "model_length", "content_filter", "function_call", "eos", null, "", 7];
  assert.deepEqual(words.map(reasonOf), [
    ...["end", "output-limit", "output-limit", "context-limit", "refusal", "end", "end", "end", "end", "end"],
  ]);
});

test("a failure of the server behind a router's plain stop is reported with the server's own word", () => {
  const ended = { finish_reason: "stop", native_finish_reason: "MALFORMED_FUNCTION_CALL" };
  const whole = decodeWhole({ choices: [{ message: { content: "x" }, ...ended }] }, PLAN);
  assert.ok("reason" in whole);
  assert.match(whole.reason, /MALFORMED_FUNCTION_CALL/);
  const { decoder } = decodePayloads([{ choices: [{ delta: { content: "x" }, ...ended }] }, "[DONE]"], PLAN);
  assert.match(decoder.fault?.reason ?? "", /MALFORMED_FUNCTION_CALL/);
});

test("usage is read on any chunk, inside the choice, or in a chunk without choices", () => {
  const usage = { prompt_tokens: 4, completion_tokens: 2 };
  const text = { index: 0, delta: { content: "x" } };
  const streams = [
    [{ choices: [text], usage }, ...END],
    [{ choices: [{ ...text, usage }] }, ...END],
    [{ choices: [text] }, END[0], { usage }, "[DONE]"],
    [
      { choices: [text], usage: { prompt_tokens: 4, completion_tokens: 1 } },
      ...END.slice(0, 1),
      { choices: [], usage },
    ],
  ];
  for (const payloads of streams) {
    const { decoder } = decodePayloads(payloads, PLAN);
    assert.deepEqual([decoder.counts().usage?.output, decoder.counts().final], [2, true]);
  }
});

test("other choices, empty finish reasons and leading chunks without choices are ignored", () => {
  const payloads = [
    { choices: [], prompt_filter_results: [] },
    { choices: [{ index: 1, delta: { content: "other" } }] },
    { choices: [{ delta: { content: "one" }, finish_reason: "" }] },
    ...END,
  ];
  const { events } = decodePayloads(payloads, PLAN);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])),
    ["one"],
  );
});

test("text after calls or reasoning is another text", () => {
  const say = (delta: object) => ({ choices: [{ index: 0, delta }] });
  const call = { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }] };
  const payloads = [
    say({ content: "a" }),
    say(call),
    say({ content: "b" }),
    say({ reasoning: "r" }),
    say({ content: "c" }),
  ];
  const { events } = decodePayloads([...payloads, ...END], PLAN);
  assert.deepEqual(outline(events), [
    ...["reply-start", "text-start", "text-delta", "text-end", "tool-start", "tool-delta", "tool-end"],
    ...["text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"],
    ...["text-start", "text-delta", "text-end", "reply-stop", "reply-end"],
  ]);
});

test("[DONE] without a finish reason ends the reply", () => {
  const { events } = decodePayloads([{ choices: [{ delta: { content: "x" } }] }, " [DONE]"], PLAN);
  assert.equal(gather(events).stop.reason, "end");
});

test("the input of a wrapped freeform call is the string under input, or the text as it is", () => {
  const plan = planFor("chat", { patch: { kind: "custom", name: "patch", namespace: "ns" } });
  const inputOf = (text: string) => {
    const tool_calls = [{ id: "c", index: 0, function: { name: "patch", arguments: text } }];
    const [item] = wholeOf({ choices: [{ message: { tool_calls } }] }, plan).items;
    const { events } = decodePayloads([{ choices: [{ delta: { tool_calls } }] }, ...END], plan);
    assert.deepEqual(gather(events).items, [item]);
    return item?.type === "tool-call" ? item.input : undefined;
  };
  assert.equal(inputOf('{"input":"a\\nb"}'), "a\nb");
  assert.equal(inputOf('{"input":7}'), '{"input":7}');
  assert.equal(inputOf("*** Begin"), "*** Begin");
  assert.equal(inputOf(""), "");
});

test("native freeform calls keep their text, including blanks", () => {
  const plan = planFor("chat", { patch: { kind: "custom", name: "patch" } });
  const call = (input: string) => ({ index: 0, id: "c", type: "custom", custom: { name: "patch", input } });
  const first = { choices: [{ delta: { tool_calls: [call("  \n")] } }] };
  const second = { choices: [{ delta: { tool_calls: [{ index: 0, custom: { input: '{"input":"x"}' } }] } }] };
  assert.deepEqual(gather(decodePayloads([first, second, ...END], plan).events).items, [
    { type: "tool-call", id: "c", tool: { kind: "custom", name: "patch" }, input: '  \n{"input":"x"}' },
  ]);
});

test("an invalid creation time is left out", () => {
  const createdOf = (created: unknown) => wholeOf({ created, choices: [{ message: { content: "x" } }] }, PLAN).createdS;
  assert.deepEqual([1.9, 0, -1, 1e12, "7", null].map(createdOf), [1, 0, undefined, undefined, undefined, undefined]);
});
