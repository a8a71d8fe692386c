/**
 * ARCHITECTURE.md promise 1: servers of Qwen models read `video` and `audio` of a part whatever its type. Only a part of type
 * `video` was held as a file, so a part without a type cost more than its hold.
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

const url = "https://example.com/a.mp4";
const FORMS = [
  { video: url },
  { video: [url, url] },
  { video: { url } },
  { type: "text", text: "a", video: url },
  { audio: url },
  { type: "text", text: "a", audio: [url] },
];

/** More than the text of these parts costs. */
const TEXT = 100_000n;

for (const part of FORMS) {
  test(`${JSON.stringify(part)} is held like a part of type video`, async () => {
    const known = await heldFor({ type: "video", video: [url] });
    const found = await heldFor(part);
    assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  });
}

test("neither an empty member nor a text is held as a recording", async () => {
  const usual = await heldFor({ type: "text", text: "a" });
  for (const more of [{ video: null }, { audio: null }]) {
    assert.ok((await heldFor({ type: "text", text: "a", ...more })) - usual < TEXT);
  }
});
