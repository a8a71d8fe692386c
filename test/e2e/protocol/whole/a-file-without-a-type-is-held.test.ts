/**
 * ARCHITECTURE.md promise 1: some servers read a part without a type by the names of its members, as vLLM does. A file or an
 * image in such a part was held as text.
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
/** More than the text of these parts costs. */
const TEXT = 100_000n;

const FILES = [
  ...["file", "file_url", "file_uri", "file_data", "document", "input_file", "input_video", "video_url"],
  ...["image_embeds", "audio_embeds"],
];
const likeFile = FILES.flatMap((name) => [{ [name]: url }, { text: "a", [name]: url }]);

for (const part of [...likeFile, { document: { url } }, { type: null, file_url: url }]) {
  test(`${JSON.stringify(part)} is held like a part of type file`, async () => {
    const known = await heldFor({ type: "file", file: { url } });
    const found = await heldFor(part);
    assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  });
}

for (const part of [{ input_image: url }, { input_image: { url } }, { text: "a", input_image: url }]) {
  test(`${JSON.stringify(part)} is held like a part of type image_url`, async () => {
    const known = await heldFor({ type: "image_url", image_url: { url } });
    const found = await heldFor(part);
    assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  });
}

test("a file of a known size is held by it, as in a part of type file", async () => {
  const file = { file_data: Buffer.from("hello").toString("base64"), filename: "a.txt" };
  const known = await heldFor({ type: "file", file });
  const found = await heldFor({ file });
  assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  assert.ok(known < (await heldFor({ type: "file", file: { url } })));
});

test("a text with the name of its document, and empty members, are held as text", async () => {
  const usual = await heldFor({ type: "text", text: "a" });
  for (const more of [{ document: "a.txt" }, { file: "a.txt" }, { file_url: null }]) {
    assert.ok((await heldFor({ type: "text", text: "a", ...more })) - usual < TEXT);
  }
  assert.ok((await heldFor({ text: "a", file: null, document: null })) - usual < TEXT);
});
