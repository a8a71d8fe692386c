/**
 * docs/translation-rules.md rule 38: envelopes that the gateway did not seal cost a request at most a thousand attempts
 * to open them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { contextOf } from "../../../src/request/context.ts";
import { createSealing } from "../../../src/request/sealing.ts";
import { newAccountTag } from "../../../src/values/key.ts";
import { Secret } from "../../../src/values/secret.ts";
import { systemClock } from "../../../src/values/time.ts";

test("a request has a thousand failing attempts, and the next request has a thousand of its own", () => {
  const own = createSealing([new Secret("a-sealing-key-of-thirty-two-chars")]);
  let tried = 0;
  const sealing = {
    ...own,
    open(envelope: string, context: string) {
      tried++;
      return own.open(envelope, context);
    },
  };
  const tag = newAccountTag((length) => Buffer.alloc(length, 7));
  const contextOfRequest = () => contextOf({ clock: systemClock, sealing }, { tag });
  const first = contextOfRequest();
  const sealed = first.seal(Buffer.from("reasoning"), "chat");
  for (let i = 0; i < 999; i++) assert.equal(first.open(`gw1.${"A".repeat(60)}${i}`, "chat"), undefined);
  for (let i = 0; i < 3; i++) assert.equal(Buffer.from(first.open(sealed, "chat") ?? "").toString(), "reasoning");
  assert.equal(first.open(sealed, "messages"), undefined);
  assert.equal(tried, 1_003);
  assert.equal(first.open(sealed, "chat"), undefined);
  assert.equal(tried, 1_003);
  assert.equal(Buffer.from(contextOfRequest().open(sealed, "chat") ?? "").toString(), "reasoning");
});
