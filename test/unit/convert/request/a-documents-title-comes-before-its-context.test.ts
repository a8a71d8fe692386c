/** Rule 18: the description of a document in parts is text before it, for servers without a member for it. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("the title of a document in parts comes before what the client says about it", () => {
  const source = { type: "content", content: [{ type: "text", text: "part" }] };
  const content = [{ type: "document", source, title: "title", context: "context" }];
  const body = { model: "m", max_tokens: 9, messages: [{ role: "user", content }] };
  const [message] = upstreamBody("messages", body, routeTo("chat")).messages as { content: { text: string }[] }[];
  assert.deepEqual(
    message?.content.map(({ text }) => text),
    ["title", "context", "part"],
  );
});
