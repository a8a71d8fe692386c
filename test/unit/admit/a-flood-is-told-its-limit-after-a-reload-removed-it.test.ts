/**
 * A refusal from memory (src/admit/seen-keys.ts) names the limit that has refused the key, even if a reload has removed the
 * limit or its group since.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { knownLimit } from "../../../src/admit/refused.ts";
import { createSeenKeys } from "../../../src/admit/seen-keys.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import { hashKey } from "../../../src/values/key.ts";

const KEY = { hash: hashKey("sk-one") };
const NO_GROUPS = { models: new Map(), groups: new Map() } as unknown as Catalog;
const LIMITS = { requests: { limit: 60, remaining: 0, resetMs: 60_000 }, tokens: undefined };

test("a flood above a limit that was removed is told that limit", () => {
  const seenKeys = createSeenKeys({ monotonicMs: () => 5_000 });
  const answer = { outcome: "refused", cause: "requests", group: "g", retryAfterMs: 1_000, limits: LIMITS } as const;
  for (let i = 0; i < 20; i++) seenKeys.noteLimited(KEY.hash, answer, 100);
  const refused = knownLimit(KEY, "chat", NO_GROUPS, { seenKeys, wallMs: () => 5_000 });
  assert.equal(refused?.facts.detail, "The limit is 60 requests per minute.");
});
