/**
 * docs/translation-rules.md rule 18: images that a model made, as parts of its message or next to it (OpenRouter's
 * `images`, openrouter.ai/docs/features/multimodal/image-generation), are moved to the front of the next user message
 * if the server's assistants cannot have images.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const url = (name: string) => `data:image/png;base64,${Buffer.from(name).toString("base64")}`;
const image = (name: string) => ({ type: "image_url", image_url: { url: url(name) } });
const block = (name: string) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: Buffer.from(name).toString("base64") },
});
const input = (name: string) => ({ type: "input_image", image_url: url(name), detail: "auto" });

const user = (content: string) => ({ role: "user", content });

test("images of the content and next to it come before the user's next text", () => {
  const messages = [
    user("draw"),
    { role: "assistant", content: [image("one"), { type: "text", text: "Here." }], images: [image("two")] },
    user("larger"),
  ];
  const sent = upstreamBody("chat", { messages }, routeTo("messages")).messages as unknown[];
  assert.deepEqual(sent.slice(1), [
    { role: "assistant", content: [{ type: "text", text: "Here." }] },
    { role: "user", content: [block("one"), block("two"), { type: "text", text: "larger" }] },
  ]);
  const items = upstreamBody("chat", { messages }, routeTo("responses")).input as { content: unknown }[];
  assert.deepEqual(items.at(-1)?.content, [input("one"), input("two"), { type: "input_text", text: "larger" }]);
});

test("if the user says nothing, images come after the results of the calls", () => {
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const messages = [
    user("draw"),
    { role: "assistant", content: [image("one")], tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "r" },
  ];
  const sent = upstreamBody("chat", { messages }, routeTo("messages")).messages as { content: { type: string }[] }[];
  assert.deepEqual(
    sent.map(({ content }) => content.map(({ type }) => type)),
    [["text"], ["tool_use"], ["tool_result", "image"]],
  );
});

test("a model that reads no images gets a refusal with the path of the image", () => {
  const messages = [user("draw"), { role: "assistant", content: [image("one")] }, user("larger")];
  assert.throws(
    () => upstreamBody("chat", { messages }, routeTo("messages", { vision: false })),
    /messages\[1\]\.content\[0\]/,
  );
});
