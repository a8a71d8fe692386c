/** The official SDKs send an `Idempotency-Key` only if the caller gives one, and then with every retry of the call. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { usageLines } from "../whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    settings: (settings) => ({ ...settings, idempotency: { enabled: true, keepMs: 86_400_000 } }),
  });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const USER = { role: "user", content: "hello" } as const;
/** One call of each SDK, whole; `headers` as a caller gives them. */
type Call = (key: string, headers?: Record<string, string>) => Promise<unknown>;

const openaiFor = (apiKey: string) => new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 2 });
const CALLS: Readonly<Record<string, Call>> = {
  chat: (key, headers) =>
    openaiFor(key).chat.completions.create({ model: "chat-1", max_tokens: 50, messages: [USER] }, { headers }),
  responses: (key, headers) =>
    openaiFor(key).responses.create({ model: "responses-1", max_output_tokens: 50, input: "hello" }, { headers }),
  messages: (apiKey, headers) =>
    new Anthropic({ baseURL: here.url, apiKey, maxRetries: 2 }).messages.create(
      { model: "messages-1", max_tokens: 50, messages: [USER] },
      { headers },
    ),
};

const requests = () => here.log.filter(({ msg }) => msg === "request").length;

for (const [protocol, call] of Object.entries(CALLS)) {
  test(`${protocol}: an attempt that failed upstream is retried under its key, answered, and charged once`, async () => {
    const account = await here.account();
    here.simulator.program({ fault: { status: 500 } }, { times: 2 });
    const [before, headers] = [requests(), { "Idempotency-Key": "order-1" }];
    await call(account.key, headers);
    await here.logged(() => requests() === before + 2);
    assert.equal((await usageLines(here, account)).length, 1);
    const error = await call(account.key, headers).then(
      () => assert.fail("the request was answered twice"),
      (reason: unknown) => reason as InstanceType<typeof OpenAI.APIError>,
    );
    const { ConflictError } = protocol === "messages" ? Anthropic : OpenAI;
    assert.ok(error instanceof ConflictError, String(error));
    assert.match(String(error), /req_[0-9A-Za-z]{24}/);
    await here.logged(() => requests() >= before + 3);
    assert.equal(requests(), before + 3, "the SDK does not retry a 409 that a retry cannot change");
  });

  test(`${protocol}: if the caller gives no key, the SDK sends none, and every call is a separate request`, async () => {
    const account = await here.account();
    for (let i = 0; i < 2; i++) await call(account.key);
    assert.deepEqual((await here.store.inspect(account.tag))?.idempotency, []);
  });
}
