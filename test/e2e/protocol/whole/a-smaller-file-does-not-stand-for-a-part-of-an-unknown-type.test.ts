/**
 * ARCHITECTURE.md promise 1: nobody knows what a server reads of a part of an unknown type, so it is held as a file of unknown
 * size. Before, an image or a file of known size in it was held instead.
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

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WORD = { file_data: Buffer.from("hello").toString("base64"), filename: "a.txt" };

const FORMS = [
  { type: "recording", image_url: { url: PIXEL }, payload: url },
  { type: "recording", image_url: PIXEL, payload: url },
  { type: "recording", image: PIXEL, payload: url },
  { type: "recording", file: WORD, payload: url },
  // The type is known, but what it stands for is not among its members.
  { type: "video", image_url: PIXEL, frames: url },
  { type: "file", image_url: PIXEL, file: url },
  { type: "document", source: { type: "text", media_type: "text/plain", data: "a" }, image_url: PIXEL, pages: url },
  // A server may take either the bytes or the address.
  { type: "input_file", file_data: WORD.file_data, file_url: url },
];

for (const part of FORMS) {
  test(`${JSON.stringify(part).replace(PIXEL, "…")} is held like a file of unknown size`, async () => {
    const known = await heldFor({ type: "file", file: { url } });
    const found = await heldFor(part);
    assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  });
}

test("an image and a file of known types are held by their size", async () => {
  const unknown = await heldFor({ type: "image_url", image_url: { url } });
  for (const part of [
    { type: "image_url", image_url: { url: PIXEL } },
    { image_url: PIXEL },
    { type: "file", file: WORD },
  ]) {
    assert.ok((await heldFor(part)) < unknown);
  }
});
