/**
 * Every third attempt at an upstream fails, in every way that is possible before its first byte. The tests check what
 * users of the official SDKs see of it, how often the upstream is called, and that each answered call is charged once.
 * The table of docs/errors.md, "When an upstream fails", is this one.
 */

import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Fault, SeenRequest } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { each } from "../../../rig/config.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { PROTOCOL_LIST, usageLines } from "../whole/asking.ts";

/** Long enough for a good answer on a busy machine. */
const FIRST_BYTE_MS = 600;
/** Calls in one run; the first attempt of the last call hits the fault. */
const CALLS = 3;
const HOW = ["whole", "streamed"] as const;

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: withSecondRoutes });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/**
 * `chat-two-whole` and so on are like `chat-1` and so on, with a second route; timeouts are short. There is one model
 * per way of asking, because a 429 keeps requests for its model away from its upstream for a while.
 */
function withSecondRoutes(places: ConfigPlaces): string {
  const timeouts = { first_byte: `${FIRST_BYTE_MS}ms`, whole: `${FIRST_BYTE_MS}ms` };
  const second = PROTOCOL_LIST.map(
    (protocol) => [`other-${protocol}`, { protocol, base_url: places.upstreamUrl, timeouts }] as const,
  );
  const model = { plans: ["free"], price: { input: "1", output: "10" }, context_tokens: 200000 };
  const models = PROTOCOL_LIST.flatMap((name) => {
    const routes = [{ upstream: `up-${name}` }, { upstream: `other-${name}` }];
    return HOW.map((how) => [`${name}-two-${how}`, { ...model, routes }] as const);
  });
  return testConfig(places, ({ upstreams }) => ({
    upstreams: { ...each(Object.keys(upstreams), { timeouts }), ...Object.fromEntries(second) },
    models: Object.fromEntries(models),
  }));
}

interface Failing {
  readonly name: string;
  readonly fault: (stream: boolean) => Fault;
  /**
   * If there is no second route and the SDK does not retry: the gateway's second attempt answers, or the SDK throws
   * this class.
   */
  readonly alone:
    | "answered"
    | { readonly error: "RateLimitError" | "PermissionDeniedError"; readonly retryAfterS: string };
  /** Whether the failed attempt may be on the upstream's bill, and so has its own ledger line. */
  readonly absorbed: boolean;
}

const OVERLOADED = { type: "overloaded_error" };
const KINDS: readonly Failing[] = [
  { name: "500", fault: () => ({ status: 500 }), alone: "answered", absorbed: false },
  {
    name: "429 with retry-after",
    fault: () => ({ status: 429, retryAfter: 1 }),
    alone: { error: "RateLimitError", retryAfterS: "1" },
    absorbed: false,
  },
  { name: "a reset before the head", fault: () => ({ resetBeforeHeaders: true }), alone: "answered", absorbed: true },
  {
    name: "an overload as the first event (whole: 529)",
    fault: (stream) => (stream ? { errorEventAfter: { n: 0, ...OVERLOADED } } : { status: 529, ...OVERLOADED }),
    alone: "answered",
    absorbed: false,
  },
  {
    name: "silence until the timeout",
    fault: () => ({ stallBeforeHeaders: true }),
    alone: { error: "PermissionDeniedError", retryAfterS: "2" },
    absorbed: true,
  },
];

/** What the SDK got from the gateway, answer by answer. */
interface Http {
  readonly status: number;
  readonly retryAfter: string | null;
}

/** Sends requests as the SDK does, records the answers, and removes the SDK's delay before a retry. */
function noting(got: Http[]): typeof fetch {
  return async (input, init) => {
    const reply = await fetch(input, init);
    got.push({ status: reply.status, retryAfter: reply.headers.get("retry-after") });
    if (!reply.headers.has("retry-after")) return reply;
    const headers = new Headers(reply.headers);
    headers.set("retry-after-ms", "1");
    return new Response(reply.body, { status: reply.status, headers });
  };
}

interface Client {
  readonly key: string;
  readonly model: string;
  readonly stream: boolean;
  readonly maxRetries: number;
  readonly fetch: typeof fetch;
}

const USER = { role: "user", content: "hello" } as const;

/** One call of each SDK, read to its end. @returns the text. */
const ASK: Readonly<Record<Protocol, (client: Client) => Promise<string>>> = {
  async chat({ key, model, stream, ...options }) {
    const { completions } = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: key, ...options }).chat;
    const body = { model, max_tokens: 200, messages: [USER] };
    const done = stream ? await completions.stream(body).finalChatCompletion() : await completions.create(body);
    return done.choices[0]?.message.content ?? "";
  },
  async messages({ key, model, stream, ...options }) {
    const { messages } = new Anthropic({ baseURL: here.url, apiKey: key, ...options });
    const body = { model, max_tokens: 200, messages: [USER] };
    const done = stream ? await messages.stream(body).finalMessage() : await messages.create(body);
    return done.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  },
  async responses({ key, model, stream, ...options }) {
    const { responses } = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: key, ...options });
    const body = { model, max_output_tokens: 200, input: "hello" };
    const done = stream ? await responses.stream(body).finalResponse() : await responses.create(body);
    return done.output_text;
  },
};

/** Makes every third request of each protocol fail. @returns how many have come, by path. */
function failEveryThird(fault: Fault): Map<string, number> {
  const counts = new Map<string, number>();
  here.simulator.clearPrograms();
  here.simulator.program({ text: "fine" }, { times: Infinity });
  here.simulator.program(
    { text: "fine", fault },
    {
      times: Infinity,
      when({ path }: SeenRequest) {
        const count = (counts.get(path) ?? 0) + 1;
        counts.set(path, count);
        return count % 3 === 0;
      },
    },
  );
  return counts;
}

interface Run {
  readonly said: readonly (string | { readonly error: Error })[];
  readonly http: readonly Http[];
  readonly kinds: readonly string[];
}

/** Some calls one after the other on a new account, and the kinds of its ledger lines in the end. */
async function callsOf(protocol: Protocol, model: string, stream: boolean, maxRetries: number): Promise<Run> {
  const account = await here.account();
  const http: Http[] = [];
  const said: (string | { readonly error: Error })[] = [];
  const client = { key: account.key, model, stream, maxRetries, fetch: noting(http) };
  const ended = () => here.log.filter((line) => line.msg === "request" && line.protocol === protocol).length;
  const before = ended();
  for (let i = 0; i < CALLS; i++) said.push(await ASK[protocol](client).catch((error: Error) => ({ error })));
  await here.logged(() => ended() === before + http.length);
  return { said, http, kinds: (await usageLines(here, account)).map(({ kind }) => kind).sort() };
}

const ANSWERED = ["fine", "fine", "fine"];
const USAGE = ["usage", "usage", "usage"];

for (const { name, fault, alone, absorbed } of KINDS) {
  const lost = absorbed ? ["absorbed"] : [];
  const pathOf = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" };

  for (const how of HOW) {
    const stream = how === "streamed";

    test(`${name}, ${how}: with a second route no user notices, without retries of the SDK`, async () => {
      const counts = failEveryThird(fault(stream));
      for (const [protocol, run] of await allOf((protocol) => callsOf(protocol, `${protocol}-two-${how}`, stream, 0))) {
        assert.deepEqual(run.said, ANSWERED, protocol);
        assert.equal(run.http.length, CALLS);
        assert.equal(counts.get(pathOf[protocol]), CALLS + 1);
        assert.deepEqual(run.kinds, [...lost, ...USAGE]);
      }
    });

    test(`${name}, ${how}: with one route and without retries of the SDK`, async () => {
      const counts = failEveryThird(fault(stream));
      for (const [protocol, run] of await allOf((protocol) => callsOf(protocol, `${protocol}-1`, stream, 0))) {
        assert.equal(run.http.length, CALLS);
        if (alone === "answered") {
          assert.deepEqual(run.said, ANSWERED, protocol);
          assert.equal(counts.get(pathOf[protocol]), CALLS + 1);
          assert.deepEqual(run.kinds, [...lost, ...USAGE]);
          continue;
        }
        const last = run.said[CALLS - 1];
        assert.ok(typeof last === "object", "the last call was answered");
        const sdk = protocol === "messages" ? Anthropic : OpenAI;
        assert.ok(last.error instanceof sdk[alone.error], String(last.error));
        assert.equal(run.http.at(-1)?.retryAfter, alone.retryAfterS);
        assert.equal(counts.get(pathOf[protocol]), CALLS);
        assert.deepEqual(run.kinds, [...lost, "usage", "usage"]);
      }
    });

    test(`${name}, ${how}: with one route and the SDK's default retries everything is answered`, async () => {
      const counts = failEveryThird(fault(stream));
      for (const [protocol, run] of await allOf((protocol) => callsOf(protocol, `${protocol}-1`, stream, 2))) {
        assert.deepEqual(run.said, ANSWERED, protocol);
        assert.equal(run.http.length, alone === "answered" ? CALLS : CALLS + 1);
        assert.equal(counts.get(pathOf[protocol]), CALLS + 1);
        assert.deepEqual(run.kinds, [...lost, ...USAGE]);
      }
    });
  }
}

/** Runs the protocols concurrently: three at once, for which the retry budget always has room. */
async function allOf(run: (protocol: Protocol) => Promise<Run>): Promise<[Protocol, Run][]> {
  return Promise.all(PROTOCOL_LIST.map(async (protocol): Promise<[Protocol, Run]> => [protocol, await run(protocol)]));
}
