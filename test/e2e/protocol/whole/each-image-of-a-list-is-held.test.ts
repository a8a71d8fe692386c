/**
 * ARCHITECTURE.md promise 1: some servers take a list of images in place of one. Before, such a list was held as one image, or as the text of its addresses: on a
 * balance of 0.20 USD a client could send twenty that cost 0.98 USD.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, memoOf, usageLines } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        models: {
          "chat-1": {
            price: { input: "3", cached_input: "3", cache_write: "3", cache_write_1h: "3", output: "15" },
            context_tokens: 400_000,
          },
        },
      }),
  });
});
after(() => here.close());

const URL = "https://x.test/a.png";
const URLS = Array.from({ length: 20 }, () => URL);
const OBJECTS = URLS.map((url) => ({ url }));
const USER = { role: "user", content: "hi" };
const part = (one: Fields) => ({ ...USER, content: [one] });

const FORMS: readonly (readonly [string, Fields])[] = [
  ["addresses in image_url", part({ type: "image_url", image_url: URLS })],
  ["objects in image_url", part({ type: "image_url", image_url: OBJECTS })],
  ["addresses in the url of image_url", part({ type: "image_url", image_url: { url: URLS } })],
  ["addresses in image", part({ type: "image", image: URLS })],
  ["addresses in images of a part", part({ type: "image", images: URLS })],
  ["addresses in images of a message", { ...USER, images: URLS }],
  ["objects in images of a message", { ...USER, images: OBJECTS }],
];

for (const [form, message] of FORMS) {
  test(`${form}: twenty are refused on a balance for four`, async () => {
    const account = await here.account({ usd: "0.20" });
    const sent = here.simulator.count;
    const reply = await ask(here, "chat", account.key, { messages: [message] });
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "insufficient_balance"]);
    assert.equal(here.simulator.count, sent);
    await assertAtRest(here, account);
  });
}

test("images of a message in OpenRouter's form are held once each", async () => {
  const account = await here.account();
  const image = { type: "image_url", image_url: { url: URL } };
  const held = async (more: Fields) => {
    const made = { role: "assistant", content: "made", ...more };
    const reply = await ask(here, "chat", account.key, { messages: [USER, made, USER] });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    await assertAtRest(here, account);
    return BigInt(memoOf((await usageLines(here, account)).at(-1)).hold as string);
  };
  const [none, two] = [await held({}), await held({ images: [image, image] })];
  const added = (two - none) / 3_000n;
  assert.ok(added > 2n * 16_384n && added < 2n * 16_384n + 100n, `${added} tokens`);
});
