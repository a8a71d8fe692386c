/**
 * docs/prompt-caches.md: `prompt_cache: client` of an upstream applies to all its routes, except for models with
 * `auto`.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { each } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask } from "../whole/asking.ts";

const messages = [{ role: "user", content: "Look again. ".repeat(600) }];

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        upstreams: each(["up-messages", "up-responses"], { prompt_cache: "client" }),
        models: each(["messages-alias", "responses-alias"], { capabilities: { prompt_cache: "auto" } }),
      }),
  });
});
after(() => here.close());

/** What is sent upstream for a long first turn. */
async function sentFor(client: "chat" | "messages", model: string): Promise<string> {
  const { key } = await here.account();
  const reply = await ask(here, client, key, { model, max_tokens: 16, messages });
  assert.equal(reply.status, 200, await reply.text());
  return here.simulator.requests.at(-1)?.body.toString() ?? "";
}

test("no breakpoint is added at such an upstream, unless the model asks for one", async () => {
  assert.doesNotMatch(await sentFor("chat", "messages-1"), /cache_control/);
  assert.match(await sentFor("chat", "messages-alias"), /"cache_control":\{"type":"ephemeral"\}/);
});

test("no cache key is added at such an upstream, unless the model asks for one", async () => {
  assert.doesNotMatch(await sentFor("messages", "responses-1"), /prompt_cache_key/);
  assert.match(await sentFor("messages", "responses-alias"), /"prompt_cache_key":"/);
});
