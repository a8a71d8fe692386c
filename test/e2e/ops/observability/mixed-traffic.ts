/** Traffic of every kind that a dashboard or an alert shows: answers, refusals, faults, cards, cuts. */
import assert from "node:assert/strict";
import { loadConfig } from "../../../../src/config/config.ts";
import type { ConfigPlaces, GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { testConfig } from "../../../rig/gateway.ts";
import { ask, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";

/**
 * The common test configuration, with an upstream that has room for one request at a time, and one that keeps its
 * answers.
 */
export function sightConfig(places: ConfigPlaces): string {
  const narrow = [{ upstream: "up-narrow", cost: { input: "1", output: "10", tools: { web_search: "0.01" } } }];
  const keeping = [{ upstream: "up-keeping", cost: { input: "1", output: "10" } }];
  const text = testConfig(places, {
    upstreams: {
      "up-narrow": { protocol: "chat", base_url: places.upstreamUrl, api_key: "k", max_concurrency: 1 },
      "up-keeping": { protocol: "responses", base_url: places.upstreamUrl, api_key: "k", stateful: true },
    },
    models: {
      "responses-kept": {
        plans: ["free"],
        price: { input: "1", output: "10" },
        context_tokens: 200000,
        default_output_tokens: 16,
        routes: keeping,
      },
      "chat-narrow": {
        plans: ["free"],
        price: { input: "1", output: "10" },
        context_tokens: 200000,
        default_output_tokens: 16,
        routes: narrow,
      },
    },
  });
  assert.ok("settings" in loadConfig({ file: "sight.yaml", text, env: {} }));
  return text;
}

export interface Visitors {
  readonly rich: TestAccount;
  readonly poor: TestAccount;
  readonly limited: TestAccount;
  readonly carded: TestAccount;
}

export async function visitors(here: GatewayHere): Promise<Visitors> {
  return {
    rich: await here.account({ usd: "100" }),
    poor: await here.account({ usd: "0" }),
    limited: await here.account({ group: "limited-money" }),
    carded: await here.account({ group: "cards", usd: "0" }),
  };
}

const REPLY = {
  id: "c",
  object: "chat.completion",
  model: "chat-narrow",
  choices: [{ index: 0, message: { role: "assistant", content: "found" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 4, completion_tokens: 5, total_tokens: 9 },
};
const text = "some words ".repeat(20);
const REASONING_REFUSED = JSON.stringify({
  error: { type: "invalid_request_error", message: "messages.1.content.0: Invalid `signature` in `thinking` block" },
});
const REASONED = [
  { role: "user", content: "Hi." },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "hm", signature: "c2lnbmVk" },
      { type: "text", text: "Hello." },
    ],
  },
  { role: "user", content: "And now?" },
];

/** One round; it includes each kind of answer. */
export async function round(here: GatewayHere, { rich, poor, limited, carded }: Visitors): Promise<void> {
  const { simulator } = here;
  const read = async (reply: Promise<Response>) => void (await (await reply).text());
  for (const protocol of PROTOCOL_LIST) {
    simulator.program({ text, pace: { betweenMs: 2 } }, { times: 2 });
    await read(ask(here, protocol, rich.key, { stream: true }));
    await read(ask(here, protocol, rich.key));
    // Through a translation that leaves a field out.
    await read(
      ask(here, protocol, rich.key, {
        model: protocol === "chat" ? "messages-1" : "chat-1",
        top_k: 3,
        seed: 7,
        stream: true,
      }),
    );
  }
  await read(ask(here, "chat", poor.key));
  await read(ask(here, "chat", carded.key));
  await read(ask(here, "chat", undefined));
  await read(ask(here, "chat", rich.key, { model: "no-such-model" }));
  for (let index = 0; index < 3; index++) await read(ask(here, "messages", limited.key));
  // A server that answers with another model than the requested one.
  simulator.program({ text, model: "another-model" });
  await read(ask(here, "chat", rich.key));
  // A server that counts searches that the request did not offer.
  simulator.program({ body: { ...REPLY, usage: { ...REPLY.usage, num_search_queries: 3 } } });
  await read(ask(here, "chat", rich.key, { model: "chat-narrow" }));
  // A server that counts more output than its model can produce.
  simulator.program({
    body: { ...REPLY, usage: { prompt_tokens: 4, completion_tokens: 40_000, total_tokens: 40_004 } },
  });
  await read(ask(here, "chat", rich.key, { model: "chat-narrow" }));
  // A limit above what the model can produce.
  await read(ask(here, "chat", rich.key, { max_tokens: 1_000_000 }));
  // An upstream that fails, and one whose credential is refused.
  simulator.program({ fault: { status: 500 } }, { times: 2 });
  await read(ask(here, "chat", rich.key));
  simulator.program({ fault: { status: 401 } });
  await read(ask(here, "messages", rich.key));
  // A server that refuses the reasoning of an earlier turn, and answers without it.
  simulator.program({ fault: { status: 400, body: REASONING_REFUSED } });
  await read(ask(here, "messages", rich.key, { messages: REASONED }));
  // A stream that is cut after its first words, and a client that disconnects before any.
  simulator.program({ text, fault: { resetAfterEvents: 6 } });
  await read(ask(here, "chat", rich.key, { stream: true }));
  // The same of a server that keeps its answers: the gateway asks it for this one.
  simulator.program({ text, fault: { resetAfterEvents: 6 } });
  await read(ask(here, "responses", rich.key, { model: "responses-kept", stream: true, store: undefined }));
  simulator.program({ text, fault: { jsonErrorIn200: true } });
  await read(ask(here, "responses", rich.key, { stream: true }));
  simulator.program({ text, fault: { stallAfterEvents: 1 } });
  await leftBeforeTheFirstWord(here, rich);
  // Two at once where one has room, without an output limit: their holds grow.
  simulator.program({ text, pace: { betweenMs: 2 } }, { times: 2 });
  await Promise.all(
    [1, 2].map(() => read(ask(here, "chat", rich.key, { model: "chat-narrow", stream: true, max_tokens: undefined }))),
  );
  await read(fetch(`${here.url}/v1/models`, { headers: { authorization: `Bearer ${rich.key}` } }));
}

/** The opening event has come, but no content: the upstream's cost is absorbed. */
async function leftBeforeTheFirstWord(here: GatewayHere, { key }: TestAccount): Promise<void> {
  const leaving = new AbortController();
  const reply = await ask(here, "messages", key, { stream: true }, { signal: leaving.signal });
  await reply.body?.getReader().read();
  leaving.abort();
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
}
