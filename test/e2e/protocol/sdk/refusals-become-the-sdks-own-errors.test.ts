/**
 * 400, 401, 403, 404 and 429 become the SDKs' own error classes, with request id; SDKs retry only what may be retried.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const REQUEST_ID = /^req_[0-9A-Za-z]{24}$/;
const USER = { role: "user", content: "hello" } as const;

interface Wanted {
  readonly name: string;
  readonly status: number;
  readonly key: () => Promise<string>;
  readonly model?: string;
  readonly limit?: number;
  /** Requests that succeed before the one that is refused. */
  readonly before?: number;
}

const rich = async () => (await here.account()).key;
const CASES: readonly Wanted[] = [
  { name: "BadRequestError", status: 400, key: rich, limit: -1 },
  { name: "AuthenticationError", status: 401, key: async () => `sk-${"a".repeat(48)}` },
  { name: "PermissionDeniedError", status: 403, key: async () => (await here.account({ usd: "0" })).key },
  { name: "NotFoundError", status: 404, key: rich, model: "no-such-model" },
  {
    name: "RateLimitError",
    status: 429,
    key: async () => (await here.account({ group: "limited-money" })).key,
    before: 2,
  },
];

/** One call of each SDK and protocol, whole or streamed. */
type Call = (key: string, wanted: Wanted, stream: boolean, maxRetries?: number) => Promise<unknown>;

const openaiFor = (apiKey: string, maxRetries = 0) => new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries });

const CALLS: Readonly<Record<string, Call>> = {
  chat: (key, { model = "chat-1", limit = 50 }, stream, maxRetries) =>
    openaiFor(key, maxRetries).chat.completions.create({ model, max_tokens: limit, messages: [USER], stream }),
  responses: (key, { model = "responses-1", limit = 50 }, stream, maxRetries) =>
    openaiFor(key, maxRetries).responses.create({ model, max_output_tokens: limit, input: "hello", stream }),
  messages: (key, { model = "messages-1", limit = 50 }, stream, maxRetries = 0) =>
    new Anthropic({ baseURL: here.url, apiKey: key, maxRetries }).messages.create({
      model,
      max_tokens: limit,
      messages: [USER],
      stream,
    }),
};

for (const [protocol, call] of Object.entries(CALLS)) {
  for (const wanted of CASES) {
    for (const stream of [false, true]) {
      test(`${protocol}${stream ? ", streamed" : ""}: ${wanted.status} is ${wanted.name}`, async () => {
        const key = await wanted.key();
        for (let i = 0; i < (wanted.before ?? 0); i++) await call(key, wanted, false);
        const sdk = (protocol === "messages" ? Anthropic : OpenAI) as unknown as Record<string, unknown>;
        const error = await call(key, wanted, stream).then(
          () => assert.fail("the request was not refused"),
          (reason: unknown) => reason as InstanceType<typeof OpenAI.APIError>,
        );
        assert.ok(error instanceof (sdk[wanted.name] as typeof Error), String(error));
        assert.equal(error.status, wanted.status);
        assert.match(String((error as { requestID?: string }).requestID), REQUEST_ID);
      });
    }
  }

  test(`${protocol}: a refused key is not retried, whatever the client's retries`, async () => {
    const requests = () => here.log.filter((line) => line.msg === "request").length;
    const before = requests();
    await assert.rejects(call(`sk-${"c".repeat(48)}`, {} as Wanted, false, 3));
    assert.equal(requests(), before + 1);
  });

  test(`${protocol}: an upstream failure is retried by the client although its status is 403`, async () => {
    const key = await rich();
    // Both attempts of the first request fail; `x-should-retry` makes the client retry.
    here.simulator.program({ fault: { status: 500 } }, { times: 2 });
    await call(key, {} as Wanted, false, 2);
  });
}
