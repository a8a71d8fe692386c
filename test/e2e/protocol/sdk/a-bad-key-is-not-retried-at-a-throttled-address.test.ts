/**
 * docs/errors.md: an address that has sent too many bad keys gets 429 instead of 401. SDKs retry a 429 after its
 * `retry-after`, up to a minute each time, but a bad key stays bad, so the answer tells them not to.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { FAILED_KEY_LIMITS } from "../../../../src/accept/failed-keys.ts";
import { newAccountTag, newKey } from "../../../../src/values/key.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask } from "../whole/asking.ts";

const FROM = { "x-forwarded-for": "203.0.113.7" };
const USER = { role: "user", content: "hello" } as const;
const unknownKey = () => newKey(newAccountTag(randomBytes), randomBytes).text;

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: (places) => `${testConfig(places)}trust_proxy: [127.0.0.1/32]\n` });
  for (let i = 0; i < FAILED_KEY_LIMITS.failuresPerMinute; i++) {
    await ask(here, "chat", unknownKey(), {}, { headers: FROM });
  }
});
after(() => here.close());

let sent = 0;
const counted: typeof fetch = (...args) => {
  sent++;
  return fetch(...args);
};
const options = () => ({ apiKey: unknownKey(), maxRetries: 2, defaultHeaders: FROM, fetch: counted });
const openai = () => new OpenAI({ baseURL: `${here.url}/v1`, ...options() });
const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
  chat: () => openai().chat.completions.create({ model: "chat-1", messages: [USER] }),
  responses: () => openai().responses.create({ model: "responses-1", input: "hello" }),
  messages: () =>
    new Anthropic({ baseURL: here.url, ...options() }).messages.create({
      model: "messages-1",
      max_tokens: 50,
      messages: [USER],
    }),
};

for (const [protocol, call] of Object.entries(CALLS)) {
  test(`${protocol}: the SDK raises its RateLimitError after one request`, async () => {
    sent = 0;
    const error = await call().then(
      () => assert.fail("the request was not refused"),
      (reason: unknown) => reason as InstanceType<typeof OpenAI.APIError>,
    );
    const { RateLimitError } = protocol === "messages" ? Anthropic : OpenAI;
    assert.ok(error instanceof RateLimitError, String(error));
    assert.equal(error.headers?.get("x-should-retry"), "false");
    assert.equal(sent, 1);
  });
}
