/**
 * ARCHITECTURE.md promise 1: some servers take a list of images in place of one. Before, such a list was held as one image, or as the text of its addresses: on a
 * balance of 0.20 USD a client could send twenty that cost 0.98 USD.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, heldForChat } from "./asking.ts";

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

const heldFor = (messages: readonly Fields[]) => heldForChat(here, messages);

const URL = "https://x.test/a.png";
/** One pixel. */
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const SMALL = { type: "image_url", image_url: { url: PIXEL } };
const USER = { role: "user", content: "hi" };
const part = (one: Fields) => ({ ...USER, content: [one] });
const urls = (count: number) => Array.from({ length: count }, () => URL);
const objects = (count: number) => urls(count).map((url) => ({ url }));

/** Messages with this many images. */
const FORMS: readonly (readonly [string, (count: number) => Fields])[] = [
  ["addresses in image_url", (count) => part({ type: "image_url", image_url: urls(count) })],
  ["objects in image_url", (count) => part({ type: "image_url", image_url: objects(count) })],
  ["addresses in the url of image_url", (count) => part({ type: "image_url", image_url: { url: urls(count) } })],
  ["addresses in image", (count) => part({ type: "image", image: urls(count) })],
  ["addresses in images of a part", (count) => part({ type: "image", images: urls(count) })],
  ["addresses in images of a message", (count) => ({ ...USER, images: urls(count) })],
  ["objects in images of a message", (count) => ({ ...USER, images: objects(count) })],
];

for (const [form, messageWith] of FORMS) {
  test(`${form}: twenty are refused on a balance for four`, () => assertTwentyRefused(messageWith(20)));

  test(`${form}: each is held once`, async () => {
    const [two, five] = [await heldFor([messageWith(2)]), await heldFor([messageWith(5)])];
    assertTokens(five - two, 3n * IMAGE);
    assertTokens(two - (await heldFor([USER])), 2n * IMAGE);
  });
}

/** Twenty images that have a small one beside them. */
const BESIDE_SMALL: readonly (readonly [string, Fields])[] = [
  ["lists", { ...USER, content: urls(20).map((url) => ({ ...SMALL, images: [url] })) }],
  ["objects", { ...USER, content: objects(20).map((image) => ({ ...SMALL, image })) }],
  ["addresses in images", { ...USER, content: urls(20).map((images) => ({ ...SMALL, images })) }],
  ["frames of a video", part({ ...SMALL, type: "video", video: urls(20) })],
];

for (const [form, message] of BESIDE_SMALL) {
  test(`${form} beside small images are refused on a balance for four`, () => assertTwentyRefused(message));
}

/** An image whose size is not known. */
const UNKNOWN = { type: "image_url", image_url: { url: URL } };
/** Parts with one such image and a list of two. */
const BESIDE_UNKNOWN: readonly (readonly [string, Fields])[] = [
  ["an address in image_url", { ...UNKNOWN, images: urls(2) }],
  ["an address in image_url and a list in image", { ...UNKNOWN, image: urls(2) }],
  ["an address in image", { type: "image", image: URL, images: urls(2) }],
  ["an address in image and a list in image_url", { type: "image", image: URL, image_url: urls(2) }],
  ["one more in another list", { type: "image", image_url: [URL], images: urls(2) }],
];

for (const [form, one] of BESIDE_UNKNOWN) {
  test(`${form} does not stand for an image of a list beside it`, async () => {
    assertTokens((await heldFor([part(one)])) - (await heldFor([USER])), 3n * IMAGE);
  });
}

test("images of a message in OpenRouter's form are held once each", async () => {
  const image = { type: "image_url", image_url: { url: URL } };
  const held = (more: Fields) => heldFor([USER, { role: "assistant", content: "made", ...more }, USER]);
  assertTokens((await held({ images: [image, image] })) - (await held({})), 2n * IMAGE);
});

test("a small image in an object is held by its size", async () => {
  const account = await here.account({ usd: "0.03" });
  for (const form of [SMALL, { type: "image", image: { url: PIXEL } }, { type: "image", image: PIXEL }]) {
    const reply = await ask(here, "chat", account.key, { messages: [part(form)] });
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.text();
    await assertAtRest(here, account);
  }
});

test("members that say that there are no media are not held", async () => {
  const account = await here.account({ usd: "0.05" });
  const none = { image_url: null, input_audio: null, audio_url: null, video_url: null, video: null, images: null };
  const reply = await ask(here, "chat", account.key, { messages: [part({ type: "text", text: "hi", ...none })] });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  await assertAtRest(here, account);
});

async function assertTwentyRefused(message: Fields): Promise<void> {
  const account = await here.account({ usd: "0.20" });
  const sent = here.simulator.count;
  const reply = await ask(here, "chat", account.key, { messages: [message] });
  assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "insufficient_balance"]);
  assert.equal(here.simulator.count, sent);
  await assertAtRest(here, account);
}

/** The most tokens of an image whose size is not known. */
const IMAGE = 16_384n;

/** @param nano the hold of this many tokens, and of some text. */
function assertTokens(nano: bigint, tokens: bigint): void {
  const added = nano / 3_000n;
  assert.ok(added >= tokens && added < tokens + 200n, `${added} tokens`);
}
