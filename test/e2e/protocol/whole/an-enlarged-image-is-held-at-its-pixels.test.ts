/**
 * ARCHITECTURE.md promise 1: servers of Qwen models enlarge an image to the `min_pixels` of its part and bill these pixels. Before, an image of 8 x 8 pixels was
 * held at its own size: on a balance of 0.20 USD a client could send twenty that cost 0.98 USD.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, heldForChat } from "./asking.ts";

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

/** Pixels of a token. */
const PATCH = 28 * 28;
/** The most that these servers allow. */
const MOST = 16_384 * PATCH;

function png(sidePx: number): string {
  const head = Buffer.alloc(60);
  head.write("\x89PNG\r\n\x1a\n", 0, "latin1");
  head.writeUInt32BE(13, 8);
  head.write("IHDR", 12, "latin1");
  head.writeUInt32BE(sidePx, 16);
  head.writeUInt32BE(sidePx, 20);
  return `data:image/png;base64,${head.toString("base64")}`;
}

const url = png(8);
const FORMS = [
  { type: "image_url", image_url: { url }, min_pixels: MOST },
  { type: "image_url", image_url: { url, min_pixels: MOST } },
  { type: "image_url", image_url: url, min_pixels: String(MOST) },
  { type: "image", image: url, min_pixels: MOST },
  { type: "image_url", image_url: { url }, min_pixels: [MOST, MOST] },
  { type: "image_url", image_url: { url }, min_pixels: 1e300 },
  { type: "image", image: url, resized_height: 128 * 28, resized_width: 128 * 28 },
  { type: "image_url", image_url: { url, resized_height: String(128 * 28), resized_width: 128 * 28 } },
  { type: "image", image: url, resized_height: "a", resized_width: 1, min_pixels: 1 },
];

for (const part of FORMS) {
  test(`${JSON.stringify(part).replaceAll(url, "…")}: twenty are refused on a balance for two`, async () => {
    const account = await here.account({ usd: "0.20" });
    const sent = here.simulator.count;
    const content = Array.from({ length: 20 }, () => part);
    const reply = await ask(here, "chat", account.key, { messages: [{ role: "user", content }] });
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "insufficient_balance"]);
    assert.equal(here.simulator.count, sent);
    await assertAtRest(here, account);
  });
}

test("pixels under a name that some servers read as this one, or named twice, are refused", async () => {
  const account = await here.account();
  const sent = here.simulator.count;
  const image = `"type":"image_url","image_url":{"url":"${url}"}`;
  const resized = (name: string) => [`"${name}":3584,"${name}":1`, `"${name.replace("_", "")}":3584`];
  for (const pixels of [
    ...['"Min_Pixels":1', '"minPixels":1', `"min_pixels":${MOST},"min_pixels":1`],
    ...[...resized("resized_height"), ...resized("resized_width")],
  ]) {
    const said = `{"role":"user","content":[{${image},${pixels}}]}`;
    const reply = await ask(here, "chat", account.key, {}, { raw: `{"model":"chat-1","messages":[${said}]}` });
    assert.equal(reply.status, 400, pixels);
    assert.match((await errorOf(reply)).message, /"content\[\]\.(?:min_?pixels|resized_?(?:height|width))"/i);
  }
  assert.equal(here.simulator.count, sent);
  await assertAtRest(here, account);
});

const heldFor = (part: object) => heldForChat(here, [{ role: "user", content: [part] }]);

/** More than the text of the member costs. */
const TEXT = 100_000n;

test("the hold covers what the server counts, and no more than the most that servers allow", async () => {
  const heldAt = (min_pixels: number) => heldFor({ type: "image_url", image_url: { url }, min_pixels });
  const fiveThousand = (await heldAt(10_000 * PATCH)) - (await heldAt(5_000 * PATCH));
  // A patch is taken as slightly smaller than that of any server.
  assert.ok(fiveThousand >= 15_000_000n && fiveThousand < 16_500_000n, `${fiveThousand}`);
  const [most, beyond] = [await heldAt(MOST), await heldAt(1e300)];
  assert.ok(most > 16_384n * 3_000n);
  const added = beyond - most;
  assert.ok(-TEXT < added && added < TEXT, `only the text of the member differs, not ${added}`);
});

test("a smaller figure lowers no hold", async () => {
  for (const sidePx of [8, 2_000]) {
    const image = { type: "image_url", image_url: { url: png(sidePx) } };
    const held = (more: object) => heldFor({ ...image, ...more });
    const usual = await held({});
    for (const min_pixels of [0, 1, 3_136]) {
      const added = (await held({ min_pixels })) - usual;
      assert.ok(
        added >= 0n && added < TEXT,
        `${sidePx} px, ${min_pixels}: only the text of the member is added, not ${added}`,
      );
    }
  }
});
