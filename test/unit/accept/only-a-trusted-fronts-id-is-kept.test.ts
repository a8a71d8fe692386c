/** The id that a front gives to a request is logged, so it must come from a trusted front and look like an id. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, echo, request, startEcho } from "./echo.ts";

const NGINX = "9f86d081884c7d659a2feaa0c55ad015";
const ENVOY = "3B2c1f0e-8a77-4d1c-9b0e-5f6a7b8c9d0e";

/** Sends a request for each list of `x-request-id` headers. @returns what is kept of each. */
async function kept(t: TestContext, trustProxy: string[], sent: readonly (readonly string[])[]) {
  const seen: (string | undefined)[] = [];
  const { target } = await startEcho(t, { trustProxy }, (asked, reply) => {
    seen.push(reply.frontRequest);
    return echo(asked, reply);
  });
  const base = ["Content-Type: application/json", `Content-Length: ${CHAT_BODY.length}`];
  for (const values of sent) {
    const headers = [...base, ...values.map((value) => `X-Request-Id: ${value}`)];
    const [reply] = await exchange(target, request({ headers }));
    assert.equal(reply?.status, 200);
  }
  return seen;
}

test("an id of hex digits and dashes of a trusted front is kept", async (t) => {
  assert.deepEqual(await kept(t, ["127.0.0.1/32"], [[NGINX], [ENVOY], ["0".repeat(16)], ["0".repeat(64)], []]), [
    NGINX,
    ENVOY,
    "0".repeat(16),
    "0".repeat(64),
    undefined,
  ]);
});

test("any other value, and two values, are ignored", async (t) => {
  const others = [
    "0".repeat(15),
    "0".repeat(65),
    `${NGINX}x`,
    "my prompt is this",
    "sk-0123456789abcdef",
    `"${NGINX}"`,
  ];
  const sent = [...others.map((value) => [value]), [NGINX, ENVOY], [NGINX, NGINX], [""]];
  assert.deepEqual(await kept(t, ["127.0.0.1/32"], sent), Array(sent.length).fill(undefined));
});

test("an id of a peer that is no trusted front is ignored", async (t) => {
  assert.deepEqual(await kept(t, [], [[NGINX]]), [undefined]);
  assert.deepEqual(await kept(t, ["10.0.0.0/8", "unix"], [[NGINX]]), [undefined]);
});
