/** A person who opens the gateway's address in a browser finds the console, if there is one. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";

async function pageOf(t: test.TestContext, console: object): Promise<{ url: string; text: string }> {
  const gateway = await startGatewayHere({ config: (places) => testConfig(places, { console }) });
  t.after(() => gateway.close());
  const reply = await fetch(gateway.url);
  assert.equal(reply.status, 200);
  return { url: gateway.url, text: await reply.text() };
}

const LINK = /<a href="([^"]+)">/;

test("the built-in page links to the console's pages", async (t) => {
  const { url, text } = await pageOf(t, { path: "/me" });
  assert.doesNotMatch(text, /nothing to see/);
  const [, link = ""] = LINK.exec(text) ?? [];
  assert.equal(link, "/me/");
  const pages = await fetch(new URL(link, url));
  assert.deepEqual([pages.status, pages.redirected], [200, false]);
  assert.match(await pages.text(), /<div id="app">/);
});

test("the link has the address that browsers know, if it is configured", async (t) => {
  const { text } = await pageOf(t, { public_url: "https://api.example" });
  assert.equal(LINK.exec(text)?.[1], "https://api.example/console/");
});

test("without a console the built-in page says that there is nothing to see", async (t) => {
  const { text } = await pageOf(t, { enabled: false });
  assert.match(text, /nothing to see/);
  assert.doesNotMatch(text, LINK);
});
