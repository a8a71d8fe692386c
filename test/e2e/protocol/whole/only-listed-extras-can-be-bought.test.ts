/**
 * ARCHITECTURE.md promise 14: only listed extras can be bought. Before the lists, each body of the first table went
 * upstream as it was: requested at the price of `chat-1`, answered and billed by the vendor as something else.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { ask, assertAtRest, bodyOf, errorOf, type Fields, memoOf, PROTOCOL_LIST, usageLines } from "./asking.ts";

/** A model with prices for extras, and servers that receive more than what is listed. */
function config(places: ConfigPlaces): string {
  const plain = { input: "1", output: "10" };
  const priced = {
    ...plain,
    tiers: { us: { input: "2", output: "20" }, "fast+us": { input: "3", output: "30" } },
    tools: { web_search: "0.01" },
    options: { search_parameters: "0.025", provider: "0", mcp_servers: "0.5" },
  };
  const model = (upstream: string, price: typeof plain) => ({
    plans: ["free"],
    price,
    context_tokens: 200000,
    routes: [{ upstream }],
  });
  const server = { protocol: "chat", base_url: places.upstreamUrl } as const;
  return testConfig(places, {
    upstreams: {
      "up-open": { ...server, unknown_members: "pass" },
      "up-some": { ...server, pass_members: ["num_ctx", "chat_template_kwargs.documents"] },
    },
    models: {
      ...Object.fromEntries(PROTOCOL_LIST.map((one) => [`${one}-priced`, model(`up-${one}`, priced)])),
      "chat-open": model("up-open", plain),
      "chat-some": model("up-some", plain),
    },
  });
}

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere({ config });
  account = await here.account();
});
after(() => here.close());

const sent = () => here.simulator.requests.at(-1)?.body.toString() ?? "";
const web = [{ type: "web_search" }];

/** Protocol, body as a client writes it in addition to the usual members, and the member that the refusal names. */
const REFUSED: readonly (readonly [Protocol, Fields, string])[] = [
  ["responses", { multi_agent: { enabled: true } }, "multi_agent"],
  ["chat", { Model: "o1-pro", Max_Tokens: 100_000, N: 64 }, "Model"],
  ["chat", { Max_Tokens: 100_000 }, "Max_Tokens"],
  ["chat", { N: 64 }, "N"],
  ["chat", { "max_to\u212aens": 100_000 }, "max_to\u212aens"],
  ["chat", { models: ["o1-pro"] }, "models"],
  ["chat", { fallbacks: [{ model: "o1-pro" }] }, "fallbacks"],
  ["chat", { plugins: [{ id: "web" }] }, "plugins"],
  ["chat", { route: "fallback" }, "route"],
  ["chat", { provider: { order: ["dear"] } }, "provider"],
  ["chat", { search_parameters: { mode: "on" } }, "search_parameters"],
  ["chat", { enable_search: true }, "enable_search"],
  ["chat", { best_of: 8 }, "best_of"],
  ["chat", { n_predict: 100_000 }, "n_predict"],
  ["chat", { max_new_tokens: 100_000 }, "max_new_tokens"],
  ["chat", { tools: web }, "tools"],
  ["chat", { tools: [{ type: "builtin_function", function: { name: "$web_search" } }] }, "tools"],
  ["chat", { tools: [{ type: "function", Type: "web_search", function: { name: "f" } }] }, "tools.Type"],
  ["chat", { modalities: ["text", "audio"], audio: { voice: "a", format: "wav" } }, "modalities"],
  ["messages", { inference_geo: "us" }, "inference_geo"],
  ["messages", { fallbacks: "default" }, "fallbacks"],
  ["messages", { fallback_credit_token: "t" }, "fallback_credit_token"],
  ["messages", { mcp_servers: [{ type: "url", url: "https://x", name: "x" }] }, "mcp_servers"],
  ["messages", { tools: [{ type: "advisor_20260301", name: "advisor", model: "dear" }] }, "tools"],
  ["responses", { models: ["o1-pro"] }, "models"],
  ["responses", { reasoning: { mode: "pro" } }, "reasoning.mode"],
  ["responses", { input: [{ type: "configuration_update", reasoning: { mode: "pro" } }] }, "input[].reasoning.mode"],
  ["responses", { max_tokens: 100_000 }, "max_tokens"],
  [
    "responses",
    {
      input: [
        { type: "additional_tools", tools: web },
        { role: "user", content: "hi" },
      ],
    },
    "tools",
  ],
];

for (const [protocol, fields, param] of REFUSED) {
  for (const stream of [false, true]) {
    test(`${protocol}${stream ? ", streamed" : ""}: ${JSON.stringify(fields).slice(0, 80)} is 400 and names ${param}`, async () => {
      const count = here.simulator.count;
      const reply = await ask(here, protocol, account.key, { ...fields, stream });
      const error = await errorOf(reply);
      assert.deepEqual([reply.status, error.cause], [400, "unsupported_parameter"], JSON.stringify(error));
      assert.equal(protocol === "messages" ? error.message.split(": ")[0] : error.param, param);
      assert.equal(here.simulator.count, count, "nothing is sent to the upstream");
      await assertAtRest(here, account);
    });
  }
}

/** Protocol, body with the tier or extra, and what it adds to the charge of the tokens, in USD. */
const PRICED: readonly (readonly [Protocol, Fields, string])[] = [
  ["chat", { search_parameters: { mode: "on" } }, "0.025"],
  ["chat", { provider: { order: ["dear"] } }, "0"],
  ["chat", { provider: { order: ["dear"] }, search_parameters: { mode: "auto" } }, "0.025"],
  ["messages", { mcp_servers: [{ type: "url", url: "https://x", name: "x" }] }, "0.5"],
];

for (const [protocol, fields, usd] of PRICED) {
  test(`${protocol}: ${JSON.stringify(fields).slice(0, 60)} with a price passes and is charged ${usd} USD, once`, async () => {
    const one = await here.account();
    const model = `${protocol}-priced`;
    await (await ask(here, protocol, one.key, { model })).text();
    const reply = await ask(here, protocol, one.key, { model, ...fields });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    assert.deepEqual(JSON.parse(sent()), { ...bodyOf(protocol, { model, ...fields }) });
    await assertAtRest(here, one);
    const [plain, extra] = await usageLines(here, one);
    const tokens = (line: typeof plain) =>
      BigInt(memoOf(line).input as number) * 1_000n + BigInt(memoOf(line).output as number) * 10_000n;
    assert.equal(plain?.amount, tokens(plain));
    assert.equal(extra?.amount, tokens(extra) + BigInt(Math.round(Number(usd) * 1e9)));
    assert.ok(BigInt(memoOf(extra).hold as string) > BigInt(Math.round(Number(usd) * 1e9)));
  });
}

test("a region with a price is charged at its prices, and combined with a speed at the combination's prices", async () => {
  for (const [fields, nano] of [
    [{ inference_geo: "us" }, 2_000n],
    [{ inference_geo: "us", speed: "fast" }, 3_000n],
    [{ inference_geo: "global", speed: "standard" }, 1_000n],
  ] as const) {
    const one = await here.account();
    await (await ask(here, "messages", one.key, { model: "messages-priced", ...fields })).text();
    await assertAtRest(here, one);
    const [line] = await usageLines(here, one);
    const { input, output } = memoOf(line) as { input: number; output: number };
    assert.equal(line?.amount, BigInt(input) * nano + BigInt(output) * nano * 10n);
  }
});

for (const protocol of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    test(`${protocol}${stream ? ", streamed" : ""}: an unknown member is left out, named and counted; strict is 400`, async () => {
      const metric = () => lossOf(here, protocol);
      const fields = { stream, stream_options: undefined, num_ctx: 4_096, api_base: "https://evil", "x\r\ny": 1 };
      const before = await metric();
      const reply = await ask(here, protocol, account.key, fields);
      assert.equal(reply.status, 200, await reply.clone().text());
      await reply.text();
      assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=num_ctx,api_base,x__y");
      const { num_ctx, api_base, ...left } = JSON.parse(sent());
      assert.deepEqual([num_ctx, api_base, left["x\r\ny"]], [undefined, undefined, undefined]);
      assert.equal((await metric()) - before, 3);
      const count = here.simulator.count;
      const strict = await ask(here, protocol, account.key, fields, { headers: { "x-tollgate-strict": "1" } });
      const error = await errorOf(strict);
      assert.deepEqual([strict.status, error.cause], [400, "unsupported_parameter"]);
      assert.match(error.message, /num_ctx/);
      assert.equal(here.simulator.count, count);
      await assertAtRest(here, account);
    });
  }
}

async function lossOf({ adminUrl }: GatewayHere, protocol: Protocol): Promise<number> {
  const headers = { authorization: "Bearer test-admin-token" };
  const page = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  const line = new RegExp(
    `tollgate_translation_loss_total\\{from="${protocol}",to="${protocol}",field="([^"]*)"\\} (\\d+)`,
    "g",
  );
  const found = [...page.matchAll(line)];
  assert.deepEqual(
    new Set(found.map((match) => match[1])),
    new Set(found.length > 0 ? ["unlisted"] : []),
    "names sent by clients are not label values",
  );
  return found.reduce((sum, match) => sum + Number(match[2]), 0);
}

test("an upstream gets the members that its configuration passes, byte for byte, and they are not named as lost", async () => {
  const kwargs = { enable_thinking: false, documents: [1] };
  const asked = (model: string) =>
    bodyOf("chat", { model, num_ctx: 4_096, x_y: { Model: 1 }, chat_template_kwargs: kwargs });
  const open = await ask(here, "chat", account.key, asked("chat-open"));
  assert.equal(open.status, 200, await open.clone().text());
  assert.equal(open.headers.get("x-tollgate-translation"), null);
  assert.equal(sent(), JSON.stringify(asked("chat-open")));
  const some = await ask(here, "chat", account.key, asked("chat-some"));
  assert.equal(some.headers.get("x-tollgate-translation"), "lossy; dropped=x_y");
  const { x_y: _, ...rest } = asked("chat-some");
  assert.equal(sent(), JSON.stringify(rest));
  // Members that cost extra, and those that could be taken for another, are refused here as well.
  for (const fields of [{ models: ["dear"] }, { Model: "dear" }, { n_predict: 9 }]) {
    assert.equal((await ask(here, "chat", account.key, { model: "chat-open", ...fields })).status, 400);
  }
  await assertAtRest(here, account);
});

test("a token count is requested with listed members only", async () => {
  const reply = await ask(
    here,
    "messages",
    account.key,
    { max_tokens: undefined, num_ctx: 1 },
    { path: "/v1/messages/count_tokens" },
  );
  assert.equal(reply.status, 200);
  assert.ok(sent().includes('"messages"') && !sent().includes("num_ctx"), sent());
});
