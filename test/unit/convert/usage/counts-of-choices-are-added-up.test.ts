/** docs/usage-forms.md: counts of single choices are added up, and a reply that cites the web counts as one search. */
import assert from "node:assert/strict";
import test from "node:test";
import { readWholeUsage } from "../../../../src/convert/chat/usage.ts";

const choice = (index: number, prompt: number, completion: number) => ({
  index,
  message: { role: "assistant", content: "x" },
  usage: { prompt_tokens: prompt, completion_tokens: completion },
});

const citing = { index: 0, message: { role: "assistant", annotations: [{ type: "url_citation" }] } };

test("of choices with their own counts the larger input is used, and outputs add up", () => {
  for (const choices of [
    [choice(0, 10, 3), choice(1, 12, 4)],
    [choice(0, 12, 3), choice(1, 10, 4)],
  ]) {
    const usage = readWholeUsage({ choices });
    assert.deepEqual([usage?.input, usage?.output], [12, 7]);
  }
});

test("a reply that cites the web counts as one search, unless its count has a number", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 3 };
  assert.equal(readWholeUsage({ choices: [citing], usage })?.toolCalls.web_search, 1);
  const counted = { ...usage, server_tool_use: { web_search_requests: 3 } };
  const uncited = readWholeUsage({ choices: [], usage: counted })?.toolCalls.web_search;
  assert.equal(uncited, 3);
  assert.equal(readWholeUsage({ choices: [citing], usage: counted })?.toolCalls.web_search, uncited);
  assert.equal(readWholeUsage({ choices: [], usage })?.toolCalls.web_search, undefined);
});
