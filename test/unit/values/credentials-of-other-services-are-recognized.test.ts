import assert from "node:assert/strict";
import test from "node:test";
import { resemblesCredential } from "../../../src/values/words/credential.ts";
import { workTimer } from "../../rig/stopwatch.ts";

/** Not real ones: the forms of the vendors with letters in order. */
const LONG = "AbCd1234EfGh5678IjKl9012MnOp3456QrSt7890";
const CREDENTIALS = [
  `sk-${LONG}`,
  `sk-proj-${LONG}_x-${LONG}`,
  `sk-ant-api03-${LONG}-AA`,
  `sk-or-v1-${"0a".repeat(32)}`,
  `sk_live_${LONG}`,
  `AIzaSy${LONG}`,
  `AQ.Ab8R-${LONG}`,
  `ya29.a0Af-${LONG}`,
  `xai-${LONG}`,
  `gsk_${LONG}`,
  `hf_${LONG}`,
  `r8_${LONG}`,
  `pplx-${LONG}`,
  `nvapi-${LONG}`,
  `csk-${LONG}`,
  `fw_${LONG}`,
  `tgp_v1_${LONG}`,
  `tgp_v1_AbCd1234-EfGh5678_IjKl9012-MnOp3456_QrSt7890`,
  `ghp_${LONG}`,
  `github_pat_${LONG}`,
  `glpat-${LONG}`,
  `xoxb-${LONG}`,
  "AKIAABCDEFGHIJKLMNOP",
  `ABSK${LONG}`,
  `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${LONG}`,
  `Bearer ${LONG}`,
  "0123456789abcdef0123456789abcdef",
  "01234567-89ab-cdef-0123-456789abcdef",
  `${"0123456789abcdef".repeat(2)}.AbCdEfGh12345678`,
];

const MODELS = [
  "gpt-5.2-codex",
  "claude-opus-4-5-20251101",
  "gemini-3-pro-preview-11-2025",
  "xai/grok-4-fast-reasoning",
  "accounts/fireworks/models/qwen3-coder-480b-a35b-instruct",
  "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
  "us.anthropic.claude-sonnet-4-20250514-v1:0",
  "ft:gpt-4.1-mini-2025-04-14:acme::BxY12abc",
  "hf:zai-org/GLM-4.6",
  "hf_transformers_default",
  "sk-model",
  "task-embedding-model-large-v2",
  "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
  "thisisaverylongnameofamodelwithoutanydigit",
  "12345678901234567890123456789012345",
];

test("credentials of other services are recognized alone, behind a provider's name and percent-encoded", () => {
  for (const one of CREDENTIALS) {
    for (const typed of [one, `openai/${one}`, ` ${one} `, `"${one}"`, encodeURIComponent(`/${one}`)])
      assert.ok(resemblesCredential(typed), typed);
  }
});

test("names of models are not taken for credentials", () => {
  for (const name of MODELS) assert.ok(!resemblesCredential(name), name);
});

test("a name of 1,024 characters of any form is searched in less than ten milliseconds", () => {
  for (const piece of ["a", "1", "a1", "sk-", "eyJ", "eyJaaaaaaaa.", "bearer ", "AIza", "0a1b2c3d-", "%25", "-", "_"]) {
    const text = piece.repeat(1_024).slice(0, 1_024);
    resemblesCredential(text);
    const worked = workTimer();
    for (let round = 0; round < 100; round += 1) resemblesCredential(text);
    assert.ok(worked() < 1_000, piece);
  }
});
