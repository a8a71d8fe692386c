/**
 * Places of counts that the goldens of docs/usage-forms.md show only together with others, or in one proportion only.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readUsage, readWholeUsage } from "../../../../src/convert/chat/usage.ts";
import { HostedCalls } from "../../../../src/convert/responses/usage.ts";

test("chat: cached tokens are read from details that are spelled without the second s", () => {
  const usage = readUsage({ prompt_tokens: 80, completion_tokens: 2, prompt_token_details: { cached_tokens: 70 } });
  assert.deepEqual([usage?.input, usage?.cachedInput, usage?.output], [10, 70, 2]);
});

test("chat: in a local server's timings the cached tokens are separate from the evaluated ones, whichever are more", () => {
  const usage = readWholeUsage({ choices: [], timings: { cache_n: 100, prompt_n: 300, predicted_n: 5 } });
  assert.deepEqual([usage?.input, usage?.cachedInput, usage?.output], [300, 100, 5]);
});

test("chat: if more is cached than there is input, tokens written to the cache are separate from the input as well", () => {
  const prompt_tokens_details = { cached_tokens: 90, cache_write_tokens: 20 };
  const usage = readUsage({ prompt_tokens: 30, completion_tokens: 5, prompt_tokens_details });
  assert.deepEqual([usage?.input, usage?.cachedInput, usage?.cacheWrite], [30, 90, 20]);
});

test("responses: a search counts even if its item names no action, and opening a page does not count", () => {
  const calls = new HostedCalls();
  for (const action of [undefined, { type: "search" }, { type: "open_page" }, { type: "find_in_page" }]) {
    calls.see({ type: "web_search_call", action });
  }
  assert.deepEqual(calls.calls, { web_search: 2 });
});
