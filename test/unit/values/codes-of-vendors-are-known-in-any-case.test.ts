/** A vendor's code alone tells what its refusal means, whatever its message says and however the code is written. */
import assert from "node:assert/strict";
import test from "node:test";
import { type RefusalMeaning, refusalMeaning } from "../../../src/values/upstream-refusals.ts";

/** By the vendor that sends it. */
const CODES: readonly (readonly [vendor: string, code: string, meaning: RefusalMeaning])[] = [
  ["OpenAI", "context_length_exceeded", "context_length_exceeded"],
  ["llama.cpp", "exceed_context_size_error", "context_length_exceeded"],
  ["GitHub Copilot", "model_max_prompt_tokens_exceeded", "context_length_exceeded"],
  ["OpenAI", "content_policy_violation", "content_policy_violation"],
  ["OpenAI", "bio_policy", "content_policy_violation"],
  ["OpenAI", "cyber_policy", "content_policy_violation"],
  ["OpenAI", "misalignment_policy_violation", "content_policy_violation"],
  ["Azure OpenAI", "content_filter", "content_policy_violation"],
  ["Alibaba", "data_inspection_failed", "content_policy_violation"],
  ["OpenAI", "unsupported_parameter", "unsupported_parameter"],
  ["OpenAI", "unsupported_value", "unsupported_parameter"],
  ["OpenAI", "unknown_parameter", "unsupported_parameter"],
  ["OpenAI", "invalid_image_url", "invalid_image"],
];

for (const [vendor, code, meaning] of CODES) {
  test(`${code} of ${vendor} means ${meaning}`, () => {
    assert.equal(refusalMeaning([code], "Something was wrong."), meaning);
    assert.equal(refusalMeaning([400, null, code.toUpperCase()], undefined), meaning);
  });
}
