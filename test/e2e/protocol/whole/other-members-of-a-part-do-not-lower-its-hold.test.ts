/**
 * ARCHITECTURE.md promise 1: a part that has the member of another type, a role, or an empty member besides its media was held
 * at the small thing beside it, or as text: 0.01 USD for a video that costs 0.40.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { heldForChat } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

const heldFor = (part: object) => heldForChat(here, [{ role: "user", content: [part] }]);

const url = "https://example.com/a";
const TEXT = Buffer.from("hello").toString("base64");
/** A tenth of a second of plain samples. */
const SOUND = { data: soundOf(3_200), format: "wav" };

function soundOf(bytes: number): string {
  const head = Buffer.alloc(44);
  head.write("RIFF\0\0\0\0WAVEfmt ", "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(16_000, 24);
  head.writeUInt32LE(32_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(bytes, 40);
  return Buffer.concat([head, Buffer.alloc(bytes)]).toString("base64");
}

const LIKE_FILE = [
  ...["image_embeds", "file_uri", "document", "input_video"].map((name) => ({ role: "user", [name]: url })),
  ...["file_url", "file_uri", "url"].map((name) => ({ type: "file", file: { file_data: TEXT, [name]: url } })),
  { type: "file", file: { file_data: TEXT }, file_uri: url },
  { type: "file", file: url, input_audio: SOUND },
  { type: "input_file", file_data: TEXT, file_uri: url },
  { type: "input_file", file_data: url, file: { file_data: TEXT } },
  { type: "video", url, input_audio: SOUND },
  { type: "video", url, file: { file_data: TEXT } },
  { type: "video_url", url, input_audio: SOUND },
  { type: "audio", url, input_audio: SOUND },
  { type: "document_url", document_url: { url }, input_audio: SOUND },
];

for (const part of LIKE_FILE) {
  test(`${shown(part)} is held like a file of unknown size`, async () => {
    const [known, found] = [await heldFor({ type: "file", file: { url } }), await heldFor(part)];
    assert.ok(found >= known, `${found} is held, not ${known}`);
  });
}

const LIKE_IMAGES: readonly (readonly [images: bigint, part: object])[] = [
  [1n, { role: "user", input_image: url }],
  [1n, { type: "image", url, input_audio: SOUND }],
  [1n, { type: "image_url", url, image_url: null, file: { file_data: TEXT } }],
  [1n, { text: "a", images: { url, result: 1 } }],
  [3n, { type: "image_url", image_url: [1, 2, 3].map(() => ({ url, file: null })) }],
  [3n, { text: "a", images: [1, 2, 3].map(() => ({ url, source: 1 })) }],
];

for (const [images, part] of LIKE_IMAGES) {
  test(`${shown(part)} is held like images of unknown size: ${images}`, async () => {
    const text = await heldFor({ type: "text", text: "a" });
    const image = (await heldFor({ type: "image_url", image_url: { url } })) - text;
    const found = (await heldFor(part)) - text;
    // A tenth is for the text of the addresses.
    assert.ok(found > images * image - image / 10n, `${found} is held, not ${images * image}`);
  });
}

test("what the protocols define is held at its size", async () => {
  const image = await heldFor({ type: "image_url", image_url: { url } });
  const parts = [
    { type: "file", file: { filename: "a.txt", file_data: TEXT, file_url: null } },
    { type: "input_file", filename: "a.txt", file_data: TEXT },
    { type: "input_audio", input_audio: SOUND },
    { type: "document", title: "a", source: { type: "base64", media_type: "text/plain", data: TEXT } },
    { type: "document", title: "a", source: { type: "text", media_type: "text/plain", data: "hello" } },
  ];
  for (const part of parts) assert.ok((await heldFor(part)) < image, JSON.stringify(part));
  assert.ok((await heldFor({ type: "image", source: { type: "url", url } })) - image < image / 10n);
});

function shown(part: object): string {
  return JSON.stringify(part).replace(SOUND.data, "...");
}
