/** A key cannot be guessed faster at the endpoints that cost nothing than on the model paths. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { FAILED_KEY_LIMITS } from "../../../../src/accept/failed-keys.ts";
import { newAccountTag, newKey } from "../../../../src/values/key.ts";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { HandClock } from "../whole/hand-clock.ts";

const ENDPOINTS: readonly (readonly [method: string, path: string])[] = [
  ["GET", "/v1/models"],
  ["GET", "/v1/usage"],
  ["POST", "/v1/messages/count_tokens"],
  ["GET", "/v1/responses/resp_1"],
];

test("an address with too many bad keys gets 429 at each endpoint", async (t) => {
  const config = (places: Parameters<typeof testConfig>[0]) => `${testConfig(places)}trust_proxy: [127.0.0.1/32]\n`;
  const here = await startGatewayHere({ config, clock: new HandClock() });
  t.after(() => here.close());
  for (const [at, [method, path]] of ENDPOINTS.entries()) {
    const headers = { "x-forwarded-for": `203.0.113.${at}` };
    const guess = async () => {
      const authorization = `Bearer ${newKey(newAccountTag(randomBytes), randomBytes).text}`;
      const body = method === "POST" ? { body: "{}" } : {};
      const type = { "content-type": "application/json" };
      const reply = await fetch(here.url + path, { method, headers: { ...headers, ...type, authorization }, ...body });
      await reply.arrayBuffer();
      return reply.status;
    };
    const statuses: number[] = [];
    for (let n = 0; n <= FAILED_KEY_LIMITS.failuresPerMinute; n++) statuses.push(await guess());
    assert.deepEqual(statuses, [...Array(FAILED_KEY_LIMITS.failuresPerMinute).fill(401), 429], path);
  }
});
