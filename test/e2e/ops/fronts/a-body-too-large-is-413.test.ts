/**
 * docs/failure-model.md row 55 through a front: the limit and the error text are the gateway's, and no other limit
 * applies below it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startNginx } from "../../../rig/nginx.ts";
import { bodyOf, errorOf } from "../../protocol/whole/asking.ts";
import { behindFront, behindOf, FRONTS } from "./fronts.ts";

const LIMIT_BYTES = 1024 * 1024;
/** The answer is sent while the front still sends the body: a race that must always end the same way. */
const ROUNDS = 10;

/** A valid request of exactly this many bytes. */
function sized(bytes: number): string {
  const short = JSON.stringify(bodyOf("chat", { messages: [{ role: "user", content: "" }] }));
  return JSON.stringify(bodyOf("chat", { messages: [{ role: "user", content: "x".repeat(bytes - short.length) }] }));
}

function post(url: string, key: string, body: string | ReadableStream): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body, duplex: "half" } as RequestInit);
}

for (const kind of FRONTS) {
  test(`${kind.name}: the gateway's body limit applies`, async () => {
    const here = await startGatewayHere({ config: behindFront({ body_bytes_max: LIMIT_BYTES }) });
    const front = await kind.start([behindOf(here)]);
    const { key } = await here.account();
    try {
      const fits = await post(front.url, key, sized(LIMIT_BYTES));
      assert.equal(fits.status, 200, await fits.text());
      for (let round = 0; round < ROUNDS; round++) {
        for (const bytes of [LIMIT_BYTES + 1, 8 * LIMIT_BYTES]) {
          const reply = await post(front.url, key, sized(bytes));
          assert.equal(reply.status, 413, `${bytes} bytes`);
          assert.match(reply.headers.get("x-request-id") ?? "", /^req_/);
          assert.equal((await errorOf(reply)).type, "invalid_request_error");
        }
        const chunked = await post(front.url, key, new Blob([sized(2 * LIMIT_BYTES)]).stream());
        assert.equal(chunked.status, 413, "without Content-Length");
        assert.match(chunked.headers.get("x-request-id") ?? "", /^req_/);
        await chunked.arrayBuffer();
      }
      assert.equal(here.simulator.count, 1);
    } finally {
      await front.stop();
      await here.close();
    }
  });
}

test("nginx: its own limit, far above, answers in a form that the protocols can read", async () => {
  const here = await startGatewayHere({ config: behindFront() });
  const { listen } = behindOf(here);
  const edit = (text: string) => text.replace("client_max_body_size 48m;", "client_max_body_size 1m;");
  const front = await startNginx({ servers: [`127.0.0.1:${listen}`], edit });
  try {
    const reply = await post(front.url, "sk-none", sized(LIMIT_BYTES + 1));
    assert.equal(reply.status, 413);
    assert.equal(reply.headers.get("content-type"), "application/json");
    const { type, code } = (await errorOf(reply)) as { type: string; code?: string };
    assert.deepEqual([type, code], ["invalid_request_error", "body_too_large"]);
  } finally {
    await front.stop();
    await here.close();
  }
});

for (const kind of FRONTS) {
  test(`${kind.name}: while no gateway runs, the answer is a 503 with Retry-After`, async () => {
    const here = await startGatewayHere({ config: behindFront() });
    const front = await kind.start([behindOf(here)]);
    await here.close();
    try {
      const reply = await post(front.url, "sk-none", sized(1000));
      assert.equal(reply.status, 503);
      assert.equal(reply.headers.get("retry-after"), "2");
      const body = (await reply.json()) as { type: string; error: { type: string } };
      assert.deepEqual([body.type, body.error.type], ["error", "overloaded_error"]);
    } finally {
      await front.stop();
    }
  });
}
