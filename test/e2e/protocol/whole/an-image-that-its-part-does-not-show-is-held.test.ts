/** ARCHITECTURE.md promise 1: a part whose type says that it is an image is held as one, whatever its members are called. */
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

const url = "https://example.com/a.png";
/** More than the text of these parts costs. */
const TEXT = 100_000n;

for (const type of ["image", "image_url", "input_image", "computer_screenshot"]) {
  for (const part of [
    { type, payload: url },
    { type, image_url: null, payload: url },
  ]) {
    test(`${JSON.stringify(part)} is held like a part of type image_url`, async () => {
      const known = await heldFor({ type: "image_url", image_url: { url } });
      const found = await heldFor(part);
      assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
    });
  }
}
