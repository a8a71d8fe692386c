/** `GET /v1/models` in the messages form is read page by page, as Anthropic's own list. */
import assert from "node:assert/strict";
import test from "node:test";
import { asAnthropicPage } from "../../../src/endpoints/models.ts";
import type { Model } from "../../../src/values/catalog.ts";

const MODELS = Array.from({ length: 30 }, (_, at) => ({ name: `m-${at}` }) as Model);

function page(query: string) {
  const answer = asAnthropicPage(MODELS, new URLSearchParams(query)) as {
    readonly data: readonly { readonly id: string }[];
    readonly has_more: boolean;
  };
  return [answer.data.length, answer.data[0]?.id, answer.has_more];
}

test("a page has twenty models by default, and as many as asked for otherwise", () => {
  assert.deepEqual(page(""), [20, "m-0", true]);
  assert.deepEqual(page("after_id=m-19"), [10, "m-20", false]);
  assert.deepEqual(page("limit=30"), [30, "m-0", false]);
  assert.deepEqual(page("limit=7&after_id=m-0"), [7, "m-1", true]);
});
