/**
 * ARCHITECTURE.md promise 1: a model may have a maximum for a file. Then a file in one part does not stand for the files that other
 * parts may hold.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { type Fields, heldForChat } from "./asking.ts";

/** The most tokens of a file. */
const FILE = 3_000n;
let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        models: {
          "chat-1": {
            price: { input: "3", cached_input: "3", cache_write: "3", cache_write_1h: "3", output: "15" },
            context_tokens: 400_000,
            media_tokens: { file: Number(FILE), file_max: Number(FILE) },
          },
        },
      }),
  });
});
after(() => here.close());

/** What is held for a request with this part so many times, in nano-dollars. */
const heldFor = (part: Fields, times: number) =>
  heldForChat(here, [{ role: "user", content: Array.from({ length: times }, () => part) }]);

const url = "https://example.com/a";
const FORMS: readonly Fields[] = [
  { type: "file", file: { url } },
  { input_video: url },
  { text: "a", file_uri: url },
  { type: "recording", payload: url },
  // A server may take either the bytes or the address.
  { type: "input_file", file_data: "", file_url: url },
];

for (const part of FORMS) {
  test(`each of five parts like ${JSON.stringify(part)} is held as a file, once`, async () => {
    const added = ((await heldFor(part, 5)) - (await heldFor(part, 2))) / 3_000n;
    // The rest is the text of the parts.
    assert.ok(added >= 3n * FILE && added < 3n * FILE + 300n, `${added} tokens are held for three parts`);
  });
}
