/**
 * ARCHITECTURE.md promise 1: some servers read `image` of a part whatever its type, as an address or as an object with one.
 * The object was not held.
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

const url = "https://example.com/a.png";
/** More than the text of these parts costs. */
const TEXT = 100_000n;

for (const part of [{ image: url }, { image: { url } }, { type: "text", text: "a", image: { url } }]) {
  test(`${JSON.stringify(part)} is held like a part of type image`, async () => {
    const known = await heldFor({ type: "image", image: { url } });
    const found = await heldFor(part);
    assert.ok(known - found < TEXT && found - known < TEXT, `${found} is held, not ${known}`);
  });
}
