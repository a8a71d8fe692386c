/** docs/failure-model.md row 83: a page of a configured origin may read what other clients read, and use every method. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, PROTOCOL_LIST } from "./asking.ts";

const ORIGIN = "https://app.test";
/** Headers that every page may read (Fetch standard, CORS-safelisted response-header name), or that only servers and caches use. */
const UNIVERSAL = /^(?:cache-control|content-length|content-type|access-control-.*|vary|date|connection|keep-alive)$/;

test("rate limits and everything else that the gateway says about an answer is exposed", async (t) => {
  const here = await startGatewayHere({ config: (places) => testConfig(places, { cors_origins: [ORIGIN] }) });
  t.after(() => here.close());
  for (const protocol of PROTOCOL_LIST) {
    const account = await here.account({ group: "limited-money" });
    for (const status of [200, 200, 429]) {
      const reply = await ask(here, protocol, account.key, {}, { headers: { origin: ORIGIN } });
      assert.equal(reply.status, status);
      await reply.arrayBuffer();
      const exposed = new Set(reply.headers.get("access-control-expose-headers")?.split(", "));
      const said = [...reply.headers.keys()].filter(
        (name) => !UNIVERSAL.test(name) && name !== "x-content-type-options",
      );
      assert.ok(said.some((name) => name.includes("ratelimit")));
      assert.deepEqual(
        said.filter((name) => !exposed.has(name)),
        [],
      );
    }
  }
});

test("a page may delete a stored response", async (t) => {
  const here = await startGatewayHere({ config: (places) => testConfig(places, { cors_origins: [ORIGIN] }) });
  t.after(() => here.close());
  const headers = { origin: ORIGIN, "access-control-request-method": "DELETE" };
  const preflight = await fetch(`${here.url}/v1/responses/resp_1`, { method: "OPTIONS", headers });
  assert.equal(preflight.status, 204);
  assert.ok(preflight.headers.get("access-control-allow-methods")?.split(", ").includes("DELETE"));
});
