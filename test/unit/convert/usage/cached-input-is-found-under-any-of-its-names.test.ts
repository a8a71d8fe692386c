/**
 * docs/usage-forms.md rule 3: nothing that a server calls cached is billed as plain input, whichever name it uses and
 * whether it speaks chat completions or responses. Relays write the names of the server behind them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { readUsage as readChat } from "../../../../src/convert/chat/usage.ts";
import { readUsage as readResponses } from "../../../../src/convert/responses/usage.ts";

const READERS = {
  chat: (more: object) => readChat({ prompt_tokens: 100, completion_tokens: 5, total_tokens: 105, ...more }),
  responses: (more: object) =>
    readResponses({ usage: { input_tokens: 100, output_tokens: 5, total_tokens: 105, ...more } }),
} as const;

const FORMS = {
  "cached_tokens of the details": [{ DETAILS: { cached_tokens: 60 } }, { input: 40, cachedInput: 60 }],
  cached_tokens: [{ cached_tokens: 60 }, { input: 40, cachedInput: 60 }],
  num_cached_tokens: [{ num_cached_tokens: 60 }, { input: 40, cachedInput: 60 }],
  prompt_cache_hit_tokens: [{ prompt_cache_hit_tokens: 60 }, { input: 40, cachedInput: 60 }],
  cache_read_input_tokens: [{ cache_read_input_tokens: 60 }, { input: 40, cachedInput: 60 }],
  "more than the input": [{ cache_read_input_tokens: 900 }, { input: 100, cachedInput: 900 }],
  cache_creation_input_tokens: [{ cache_creation_input_tokens: 60 }, { input: 40, cacheWrite: 60 }],
  prompt_cache_write_tokens: [{ prompt_cache_write_tokens: 60 }, { input: 40, cacheWrite: 60 }],
  "cache_write_tokens of the details": [{ DETAILS: { cache_write_tokens: 60 } }, { input: 40, cacheWrite: 60 }],
  "cache_creation_tokens of the details": [{ DETAILS: { cache_creation_tokens: 60 } }, { input: 40, cacheWrite: 60 }],
  "cache_creation by lifetime": [
    { cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 50 } },
    { input: 40, cacheWrite: 10, cacheWrite1h: 50 },
  ],
  "cache_creation by lifetime in the details": [
    { DETAILS: { cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 50 } } },
    { input: 40, cacheWrite: 10, cacheWrite1h: 50 },
  ],
} as const;

for (const [protocol, read] of Object.entries(READERS)) {
  for (const [name, [members, expected]] of Object.entries(FORMS)) {
    test(`${protocol}: ${name}`, () => {
      const { DETAILS: details, ...more } = members as { DETAILS?: object };
      const member = protocol === "chat" ? "prompt_tokens_details" : "input_tokens_details";
      const usage = read(details ? { [member]: details } : more);
      assert.deepEqual(
        { ...usage, reasoning: undefined, toolCalls: undefined },
        {
          cachedInput: 0,
          cacheWrite: 0,
          cacheWrite1h: 0,
          ...expected,
          output: 5,
          reasoning: undefined,
          toolCalls: undefined,
        },
      );
    });
  }
}
